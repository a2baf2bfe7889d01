package limit

import "testing"

// Requests that follow each other on a connection.
const (
	lengthThenChunks = "POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}" +
		"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
	chunksThenLength = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n" +
		"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}"
)

// The two headers are found however their bytes are cut into reads, and only where they
// begin a line.
func TestFraming_FindsBothLengthsInPieces(t *testing.T) {
	for text, want := range map[string]bool{
		"POST / HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n": true,
		"POST / HTTP/1.1\ntransfer-encoding:chunked\ncontent-length:2\n\n":           true,
		"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}":                             false,
		"POST /\r\nContent-Length: 2\r\nX: Transfer-Encoding: chunked\r\n\r\n":       false,
		lengthThenChunks: false,
		chunksThenLength: false,
		lengthThenChunks + chunksThenLength + "POST /\ncontent-length: 0\ntransfer-encoding: chunked\n\n": true,
		"POST /\r\nContent-Length: 2\r\nX: \r\n \r\nTransfer-Encoding: chunked\r\n\r\n":                   true,
		"POST /\r\nContent-Length: 2\r\nTransfer-Encodings: chunked\r\n\r\n":                              false,
	} {
		for size := 1; size <= len(text); size++ {
			var f framing
			for rest := []byte(text); len(rest) > 0; {
				n := min(size, len(rest))
				f.read(rest[:n])
				rest = rest[n:]
			}
			if f.ambiguous() != want {
				t.Errorf("%q in pieces of %d: %v, want %v", text, size, f.ambiguous(), want)
			}
		}
	}
}
