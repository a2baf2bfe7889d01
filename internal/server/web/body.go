package web

import (
	"bytes"
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/labstack/echo/v4"
)

// MaxSmall is how many bytes a small form or body may have.
const MaxSmall = 64 << 10

const placeWait = 2 * time.Second // how long whatever is bounded waits for its turn

// ReadForm reads a small form.
func ReadForm(c echo.Context) error { return ReadFormOf(c, MaxSmall) }

// ReadFormOf reads a form of at most limit bytes, once.
func ReadFormOf(c echo.Context, limit int64) error {
	r := c.Request()
	if r.PostForm != nil {
		return nil
	}
	if kind := r.Header.Get("Content-Type"); !strings.HasPrefix(kind, echo.MIMEApplicationForm) {
		return Fail(MediaType, "send the fields as a form")
	}
	if err := checkEncoding(r); err != nil {
		return err
	}
	r.Body = http.MaxBytesReader(c.Response(), r.Body, limit)
	err := r.ParseForm()
	if err == nil || errors.As(err, new(*http.MaxBytesError)) {
		return err
	}
	return Fail(Malformed, "the form cannot be read")
}

// Received reads a body of at most limit bytes, whatever they are.
func Received(c echo.Context, limit int64) ([]byte, error) {
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

// ContentType is the kind of a body, without its parameters.
func ContentType(r *http.Request) string {
	kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil {
		return ""
	}
	return kind
}

// checkEncoding refuses what would have to be unpacked first.
func checkEncoding(r *http.Request) error {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return Fail(MediaType, "send the body as it is, without a Content-Encoding")
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
		return Fail(Malformed, "the body ended early")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return Fail(Malformed, "the body did not arrive in time")
	}
	return Fail(Malformed, "the body cannot be read")
}

// Places bounds how much is done at once.
type Places chan struct{}

// Take takes one of the places, or says that all are taken. It is given back by
// release.
func (p Places) Take(ctx context.Context, full string) (release func(), err error) {
	late := time.NewTimer(placeWait)
	defer late.Stop()
	select {
	case p <- struct{}{}:
		return func() { <-p }, nil
	case <-late.C:
		return nil, Fail(Overloaded, full)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
