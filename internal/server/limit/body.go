package limit

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

// Stall is how long a client may neither send nor take a byte.
const Stall = 10 * time.Second

// drainTime is how long what was not asked for may still arrive.
const drainTime = 2 * time.Second

// Body is the body of a request. It has to go on arriving, and what has arrived
// counts until the request ends.
type Body struct {
	io.ReadCloser
	control *http.ResponseController
	until   time.Time // by when all of it has to be there
	share   *Share
	from    Address
	counted int
	whole   bool // there is no more to come
	free    bool // another limit bounds it
	refuse  func(Refusal) error
}

// NewBody bounds a body that has to be there by a time. refuse makes the error of
// what is beyond the share.
func NewBody(w http.ResponseWriter, r *http.Request, until time.Time, share *Share, from Address, refuse func(Refusal) error) *Body {
	return &Body{
		ReadCloser: r.Body, control: http.NewResponseController(w), until: until, share: share, from: from,
		whole: r.ContentLength == 0, refuse: refuse,
	}
}

// Read reads what has arrived, and waits for it no longer than a stalled client may.
func (b *Body) Read(p []byte) (n int, err error) {
	if err := b.expect(time.Now().Add(Stall)); err != nil {
		return 0, err
	}

	n, err = b.ReadCloser.Read(p)
	if n > 0 {
		if refused := b.take(n); refused != "" {
			return 0, b.refuse(refused)
		}
	}

	if errors.Is(err, io.EOF) {
		b.whole = true
		if late := b.expect(b.until); late != nil { // from here on the server only listens whether the client leaves
			return n, late
		}
	}

	return n, err
}

func (b *Body) take(n int) (refused Refusal) {
	if b.free {
		return ""
	}

	refused = b.share.Take(b.from, n)
	if refused == "" {
		b.counted += n
	}

	return refused
}

// Free says that another limit bounds this body.
func (b *Body) Free() { b.free = true }

// expect sets by when the client must have sent something. Recorders and other
// writers without a connection wait for no client.
func (b *Body) expect(by time.Time) error {
	if by.After(b.until) {
		by = b.until
	}

	if err := b.control.SetReadDeadline(by); err != nil && !errors.Is(err, http.ErrNotSupported) && !errors.Is(err, os.ErrClosed) {
		return err
	}

	return nil
}

// Done gives back what the body held. The unread rest may arrive for a moment, so
// that the connection can be used again.
func (b *Body) Done() error {
	b.share.Give(b.from, b.counted)

	b.counted = 0
	if b.whole {
		return nil
	}

	return b.expect(time.Now().Add(drainTime))
}

// Writer writes a long answer to a client that goes on taking it: a slow one may
// take long, a stalled one may not.
type Writer struct {
	io.Writer
	control *http.ResponseController
}

// chunk is how much a client has to take before the time of a stalled one is over.
const chunk = 16 << 10

// NewWriter bounds how long each piece of an answer may take.
func NewWriter(w http.ResponseWriter) *Writer {
	return &Writer{w, http.NewResponseController(w)}
}

// Write writes piece by piece.
func (w *Writer) Write(p []byte) (written int, err error) {
	for len(p) > 0 && err == nil {
		if err := w.expect(); err != nil {
			return written, err
		}

		var n int
		n, err = w.Writer.Write(p[:min(chunk, len(p))])
		written, p = written+n, p[n:]
	}

	return written, err
}

// Flush sends what was written.
func (w *Writer) Flush() error {
	if err := w.expect(); err != nil {
		return err
	}
	return w.control.Flush()
}

func (w *Writer) expect() error { return w.control.SetWriteDeadline(time.Now().Add(Stall)) }
