package server

import (
	"net/url"
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
	if s.basePath == "" {
		return next
	}
	return func(c echo.Context) error {
		answer, u := c.Response(), c.Request().URL
		answer.Before(func() {
			if to := answer.Header().Get(echo.HeaderLocation); strings.HasPrefix(to, "/") {
				answer.Header().Set(echo.HeaderLocation, s.basePath+to)
			}
		})
		if u.Path == s.basePath || u.Path == "/" { // the front page, where people look for it
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
	path, ok := strings.CutPrefix(u.Path, s.basePath)
	raw, also := strings.CutPrefix(u.RawPath, s.basePath)
	if !ok || !strings.HasPrefix(path, "/") || u.RawPath != "" && !also {
		return false
	}
	u.Path, u.RawPath = path, raw
	return true
}
