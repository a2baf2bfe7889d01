package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
)

// WantsJSON reports whether the answer is for a program.
func WantsJSON(r *http.Request) bool {
	return r.URL.Path == "/live" || strings.HasPrefix(r.URL.Path, "/api/") || strings.Contains(r.Header.Get("Accept"), "application/json")
}

// IsForm reports whether a route belongs to the pages, whose acts are forms, and
// not to the API.
func IsForm(c echo.Context) bool { return !strings.HasPrefix(c.Path(), "/api/") }

// IsRead reports whether a request changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// RequestID names a request, in its answer and in the log.
func RequestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// LastSegment is the last part of a route.
func LastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// JSON answers with one object: the members of all parts, of which a nil one has
// none.
func JSON(c echo.Context, status int, parts ...any) error {
	return c.JSONBlob(status, append(apitype.Encode(parts...), '\n'))
}

// Done answers a form: in place when a script asks, otherwise by redirecting the
// browser to the page with the form.
func Done(c echo.Context, elsewhere string, says ...any) error {
	if WantsJSON(c.Request()) {
		return JSON(c, http.StatusOK, says...)
	}

	if page, ok := LocalPath(c.FormValue("back")); ok {
		elsewhere = page
	}

	return c.Redirect(http.StatusSeeOther, elsewhere)
}

// Download sends the exact bytes of something as a file. They are never shown as
// a page, whatever is in them.
func Download(c echo.Context, name, kind string, data []byte) error {
	suffix := ".json"
	if !json.Valid(data) {
		kind, suffix = "application/octet-stream", ".bin"
	}

	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+name+suffix+`"`)

	return c.Blob(http.StatusOK, kind, data)
}

// LocalPath returns the way back that a form names, if it stays on this host in
// the eyes of every browser: it begins with one slash, and has nothing that a
// browser takes for another slash or skips.
func LocalPath(back string) (string, bool) {
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || len(back) > 2048 {
		return "", false
	}

	for i := range len(back) {
		if c := back[i]; c <= ' ' || c == '\\' || c >= 0x7f {
			return "", false
		}
	}

	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil {
		return "", false
	}

	return back, true
}

// Tolerate turns the end of a deadline into a fact about the answer: what was
// found by then is shown.
func Tolerate(err error) (slow bool, _ error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// InTime is Tolerate for a result.
func InTime[T any](found T, err error) (_ T, slow bool, _ error) {
	slow, err = Tolerate(err)
	return found, slow, err
}
