package web

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"
)

// WantsJSON reports whether the answer is for a program.
func WantsJSON(r *http.Request) bool {
	return r.URL.Path == "/live" || strings.HasPrefix(r.URL.Path, "/api/") || strings.Contains(r.Header.Get("Accept"), "application/json")
}

// IsForm reports whether a route is one of the pages, whose acts are forms, and
// not one of the API.
func IsForm(c echo.Context) bool { return !strings.HasPrefix(c.Path(), "/api/") }

// IsRead reports whether a request changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// RequestID names a request, in its answer and in the log.
func RequestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// LastSegment is the last part of a route.
func LastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// Done answers a form: in place when a script asks, else by sending the browser
// back to the page with the form.
func Done(c echo.Context, elsewhere string, says ...any) error {
	if WantsJSON(c.Request()) {
		return c.JSONBlob(http.StatusOK, Object(says).Encode())
	}
	if page, ok := LocalPath(c.FormValue("back")); ok {
		elsewhere = page
	}
	return c.Redirect(http.StatusSeeOther, elsewhere)
}

// Download sends the exact bytes of something as a file: of a kind of text if they
// are JSON.
func Download(c echo.Context, name, kind string, data []byte) error {
	suffix := ".json"
	if !json.Valid(data) {
		kind, suffix = "application/octet-stream", ".bin"
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+name+suffix+`"`)
	return c.Blob(http.StatusOK, kind, data)
}

// LocalPath returns a form's way back if it stays on this host, as every browser
// understands it: one slash first, and nothing that a browser reads as another
// slash or skips.
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

// Object is a JSON object: names and values in turn, in the order in which they
// are written.
type Object []any

// Encode writes the object on a line of its own.
func (o Object) Encode() []byte {
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i+1 < len(o); i += 2 {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, "%q:%s", o[i], Encode(o[i+1]))
	}
	b.WriteString("}\n")
	return b.Bytes()
}

// Raw is JSON that is written byte for byte.
type Raw []byte

// List writes an array out of what shape makes of each item.
func List[T, S any](items []T, shape func(T) S) Raw {
	all := make([][]byte, len(items))
	for i, x := range items {
		all[i] = Encode(shape(x))
	}
	return bytes.Join([][]byte{[]byte("["), bytes.Join(all, []byte(",")), []byte("]")}, nil)
}

// Encode writes a value.
func Encode(v any) []byte {
	if raw, ok := v.(Raw); ok {
		return raw
	}
	data, err := json.Marshal(v)
	if err != nil { // unreachable: shapes hold strings, numbers and valid JSON
		panic(fmt.Sprintf("web.Encode(%T): %v", v, err))
	}
	return data
}
