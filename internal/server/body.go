package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

const (
	maxLarge  = 4               // bodies larger than maxBody that are held at once
	placeWait = 2 * time.Second // how long whatever is bounded waits for its turn
)

// body reads a JSON document of at most limit bytes. What it returns is valid
// JSON in valid UTF-8, no deeper than job.MaxDepth. Forms are refused: a page
// elsewhere can send those without being asked.
func body(c echo.Context, limit int64) (json.RawMessage, error) {
	r := c.Request()
	if !isJSON(r) {
		return nil, &failure{mediaType, "", "send the body with Content-Type: application/json", nil}
	}
	data, err := received(c, limit)
	if err != nil {
		return nil, err
	}
	return data, checkJSON(data)
}

// optional reads a small body that may be missing: then it is an empty object.
func optional(c echo.Context) (json.RawMessage, error) {
	r := c.Request()
	if r.ContentLength == 0 && (r.Header.Get("Content-Type") == "" || isJSON(r)) {
		return json.RawMessage("{}"), nil
	}
	return body(c, maxSmall)
}

// received reads a body of at most limit bytes, whatever they are.
func received(c echo.Context, limit int64) ([]byte, error) {
	r := c.Request()
	if err := checkEncoding(r); err != nil {
		return nil, err
	}
	if r.ContentLength > limit {
		return nil, &http.MaxBytesError{Limit: limit}
	}
	data, err := readAll(http.MaxBytesReader(c.Response(), r.Body, limit), r.ContentLength)
	if err != nil {
		return nil, unreadable(err)
	}
	return data, nil
}

func isJSON(r *http.Request) bool { return contentType(r) == "application/json" }

// contentType is the kind of a body, without its parameters.
func contentType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// checkEncoding refuses what would have to be unpacked first.
func checkEncoding(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return &failure{mediaType, "", "send the body as it is, without a Content-Encoding", nil}
	}
	return nil
}

// readAll reads a body whose length may have been announced. Whoever announces
// much and sends nothing takes no memory.
func readAll(r io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	b.Grow(int(min(max(length, 0), 64<<10)) + bytes.MinRead)
	_, err := b.ReadFrom(r)
	return b.Bytes(), err
}

// unreadable says in what way a body did not arrive: that is its sender's
// fault.
func unreadable(err error) error {
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF):
		return &failure{malformed, "", "the body ended early", nil}
	case errors.Is(err, os.ErrDeadlineExceeded):
		return &failure{malformed, "", "the body did not arrive in time", nil}
	}
	return &failure{malformed, "", "the body cannot be read", nil}
}

// admit bounds how many large bodies are held at once. The place is taken
// until release is called; a body that is known to be small needs none.
func (s *Server) admit(r *http.Request) (release func(), err error) {
	if r.ContentLength >= 0 && r.ContentLength <= maxBody {
		return func() {}, nil
	}
	return place(r.Context(), s.large, "other large batches are being read; nothing was changed, try again")
}

// place takes one of the places, or says that all are taken. It is given back
// by release.
func place(ctx context.Context, places chan struct{}, full string) (release func(), err error) {
	late := time.NewTimer(placeWait)
	defer late.Stop()
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-late.C:
		return nil, &failure{overloaded, "", full, nil}
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
