package httpclient

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"
)

// unpacked undoes what the header Content-Encoding names, the last one first, up to [MaxWords].
// cut tells that the text may go on. The transport has already undone the gzip that it
// asked for on its own.
func unpacked(body []byte, header http.Header) (text []byte, cut bool) {
	names := strings.Split(strings.Join(header.Values("Content-Encoding"), ","), ",")
	for _, name := range slices.Backward(names) {
		open := opener(strings.ToLower(strings.TrimSpace(name)), body)
		if open == nil {
			continue
		}

		whole, isCut := unpack(body, open)
		body, cut = whole, cut || isCut
	}

	return body, cut
}

// opener begins to unpack a body in an encoding; it is nil for one that is not known.
func opener(name string, body []byte) func(io.Reader) (io.Reader, error) {
	switch name {
	case "gzip", "x-gzip":
		return func(packed io.Reader) (io.Reader, error) { return gzip.NewReader(packed) }
	case "zstd":
		return openZstd
	case "br":
		return func(packed io.Reader) (io.Reader, error) { return brotli.NewReader(packed), nil }
	case "deflate":
		if hasZlibHeader(body) {
			return func(packed io.Reader) (io.Reader, error) { return zlib.NewReader(packed) }
		}
		return func(packed io.Reader) (io.Reader, error) { return flate.NewReader(packed), nil }
	}

	return nil
}

// maxWindow is how far back a body in zstd may point, which is what a reader of it keeps in
// memory. RFC 9659 has senders of HTTP stay within 8 MB.
const maxWindow = 8 << 20

// openZstd reads zstd without goroutines of its own, so there is nothing to close.
func openZstd(packed io.Reader) (io.Reader, error) {
	return zstd.NewReader(packed, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow))
}

// hasZlibHeader reports whether a body is in the format of zlib, as RFC 9110 wants it for
// deflate. Many servers leave the header out.
func hasZlibHeader(body []byte) bool {
	const method = 8 // deflate
	return len(body) >= 2 && body[0]&0x0f == method && (int(body[0])<<8|int(body[1]))%31 == 0
}

// unpack returns what came before an error, and the body itself if it is a text that was never
// packed: a service can name an encoding and not use it.
func unpack(body []byte, open func(io.Reader) (io.Reader, error)) (text []byte, cut bool) {
	packed, err := open(bytes.NewReader(body))
	if err == nil {
		text, err = io.ReadAll(io.LimitReader(packed, MaxWords))
	}

	corrupt := err != nil && !errors.Is(err, io.ErrUnexpectedEOF)
	if corrupt && utf8.Valid(body) || err != nil && len(text) == 0 {
		return body, false
	}

	return text, err != nil || len(text) == MaxWords
}
