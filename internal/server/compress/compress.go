// Package compress sends answers, compressed where that is worth it and safe.
//
// The length of a compressed answer says how much of it repeats. Who can make a
// browser ask again and again, with guesses that the answer repeats, and can watch
// the lengths, could so learn what else is in the answer (BREACH). Therefore what a
// page of another site asked for is not compressed, nor is the answer to a POST,
// which may have secrets: a revealed payload, a new token. The lengths of all
// others are blurred. Exports and downloads of payloads do not come through here.
package compress

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/labstack/echo/v4"
)

// A list of 50 rows and two charts, 218 kB: gzip makes 18.1 kB of it in 1.1 ms at level 8,
// and 17.7 kB in 3 ms at level 9.
const (
	minSize     = 1 << 10 // bytes; less fits into one packet anyway
	gzipLevel   = 9
	brotliLevel = 5
	window      = 18  // 256 kB, the size of a large page; with the usual 4 MB, a writer takes 10 MB instead of 3
	mask        = 100 // bytes
)

// The names of the codings.
const (
	Gzip   = "gzip"
	Brotli = "br"
)

// Sender sends answers. The zero Sender is ready.
type Sender struct {
	gzips, brotlis sync.Pool // of their writers: a new one takes a megabyte or more, and delays a page by 1 ms
}

// Send answers with the whole of data.
func (s *Sender) Send(c echo.Context, status int, kind string, data []byte) error {
	h, r := c.Response().Header(), c.Request()
	h.Set(echo.HeaderVary, echo.HeaderAcceptEncoding)

	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	coding := Coding(r)
	if len(data) < minSize || !reads || coding == "" || fromElsewhere(r) {
		return c.Blob(status, kind, data)
	}

	pack := s.gzip
	if coding == Brotli {
		pack = s.brotli
	}

	var b bytes.Buffer
	if err := pack(&b, data, 1+rand.IntN(mask)); err != nil {
		return fmt.Errorf("compress an answer: %w", err)
	}

	h.Set(echo.HeaderContentEncoding, coding)

	return c.Blob(status, kind, b.Bytes())
}

// gzip compresses data and adds so many bytes of padding, in the comment of the head.
func (s *Sender) gzip(b *bytes.Buffer, data []byte, padding int) error {
	w, ok := s.gzips.Get().(*gzip.Writer)
	if !ok {
		var err error

		w, err = gzip.NewWriterLevel(io.Discard, gzipLevel)
		if err != nil { // unreachable: the level exists
			return err
		}
	}
	defer s.gzips.Put(w)

	w.Reset(b)

	w.Comment = strings.Repeat("-", padding)
	if _, err := w.Write(data); err != nil {
		return err
	}

	return w.Close()
}

// brotli compresses data and adds so many bytes of padding: a block of metadata
// (RFC 7932, 9.2), which begins where a byte does, as it does after a flush. Its two
// bytes of head say that it is one, and how long.
func (s *Sender) brotli(b *bytes.Buffer, data []byte, padding int) error {
	w, ok := s.brotlis.Get().(*brotli.Writer)
	if !ok {
		w = brotli.NewWriterOptions(io.Discard, brotli.WriterOptions{Quality: brotliLevel, LGWin: window})
	}
	defer s.brotlis.Put(w)

	w.Reset(b)

	if _, err := w.Write(data); err != nil {
		return err
	}

	if err := w.Flush(); err != nil {
		return err
	}

	head := 0b01_0_11_0 | (padding-1)<<6
	b.Write([]byte{byte(head), byte(head >> 8)})
	b.WriteString(strings.Repeat("-", padding))

	return w.Close()
}

// fromElsewhere reports whether a page of another origin made a browser ask.
func fromElsewhere(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}

	return true
}

// Coding is the best coding that the client can read; empty: none. Browsers name
// brotli only when they talk to this machine or over TLS.
func Coding(r *http.Request) string {
	for _, name := range []string{Brotli, Gzip} {
		if takes(r, name) {
			return name
		}
	}

	return ""
}

func takes(r *http.Request, coding string) bool {
	for accepted := range strings.SplitSeq(strings.Join(r.Header.Values("Accept-Encoding"), ","), ",") {
		name, weight, weighed := strings.Cut(accepted, ";")
		if !strings.EqualFold(strings.TrimSpace(name), coding) {
			continue
		}

		q, err := strconv.ParseFloat(strings.TrimPrefix(strings.TrimSpace(weight), "q="), 64)

		return !weighed || err == nil && q > 0
	}

	return false
}
