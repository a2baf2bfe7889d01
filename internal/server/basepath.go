package server

import (
	"net/url"
	"regexp"
	"strings"

	"github.com/labstack/echo/v4"
)

// Below a base path everything inside stays as it is at the root: routes,
// handlers, the addresses in forms, and what they redirect to. The path is
// taken off each request before it is routed, and put before each address that
// leaves: in Location and in the attributes of a page. Nobody guesses whether
// an address has it already; inside, none has.

// rebase takes the base path off a request, and puts it before where its answer
// sends the browser. Whatever is not below the base path does not exist.
func (s *Server) rebase(next echo.HandlerFunc) echo.HandlerFunc {
	if s.BasePath == "" {
		return next
	}
	return func(c echo.Context) error {
		answer, u := c.Response(), c.Request().URL
		answer.Before(func() {
			if to := answer.Header().Get(echo.HeaderLocation); strings.HasPrefix(to, "/") {
				answer.Header().Set(echo.HeaderLocation, s.BasePath+to)
			}
		})
		if u.Path == s.BasePath || u.Path == "/" { // the front page, where people look for it
			return c.Redirect(308, "/")
		}
		if !s.strip(u) {
			return echo.ErrNotFound
		}
		return next(c)
	}
}

// strip takes the base path off an address, and reports whether it was there.
func (s *Server) strip(u *url.URL) bool {
	path, ok := strings.CutPrefix(u.Path, s.BasePath)
	raw, also := strings.CutPrefix(u.RawPath, s.BasePath)
	if !ok || !strings.HasPrefix(path, "/") || u.RawPath != "" && !also {
		return false
	}
	u.Path, u.RawPath = path, raw
	return true
}

// address is an attribute that holds an address on this server. A quote within
// data is escaped everywhere on a page, so that no data can look like one.
var address = regexp.MustCompile(`(\s(?:href|src|action|formaction|data-live|data-on|data-off|data-[a-z-]+-url)=")/`)

// rebased is a page whose addresses begin with the base path.
func rebased(base string, page []byte) []byte {
	if base == "" {
		return page
	}
	return address.ReplaceAll(page, []byte("${1}"+base+"/"))
}
