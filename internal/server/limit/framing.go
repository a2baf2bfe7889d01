package limit

import (
	"bytes"
	"context"
	"net"
)

// A request whose head has both Content-Length and Transfer-Encoding may end elsewhere
// for a proxy in front than for this server, and what follows on the connection may then
// be the request of another visitor. RFC 9112, 6.1, wants such a connection closed after
// the answer. net/http takes the length out before a handler sees the head, so the bytes
// are looked at here.

// framing looks for lines that begin with one of the two headers, without an empty line
// between them, as a head has none. It does not know where a body ends: the connection of a
// body with such lines may be closed after its answer as well, which does no harm.
type framing struct {
	line          []byte // the beginning of a line that is not over, as far as it matters
	length, coded bool   // the headers since the last empty line
}

// The headers that say where a body ends.
var (
	lengthHeader = []byte("content-length:")
	codingHeader = []byte("transfer-encoding:")
)

// read looks at the next bytes of a connection.
func (f *framing) read(p []byte) {
	for len(p) > 0 && !f.ambiguous() {
		rest := p
		end := bytes.IndexByte(p, '\n')
		if end >= 0 {
			rest, p = p[:end], p[end+1:]
		} else {
			p = nil
		}

		// Only the beginning of a line matters, which may come in pieces.
		if room := len(codingHeader) - len(f.line); room > 0 {
			f.line = append(f.line, rest[:min(room, len(rest))]...)
		}

		f.length = f.length || begins(f.line, lengthHeader)
		f.coded = f.coded || begins(f.line, codingHeader)
		if end >= 0 {
			f.endLine()
		}
	}
}

// endLine forgets a line. An empty one is the end of a head, and the next head may say in
// another way where its body ends.
func (f *framing) endLine() {
	empty := len(bytes.TrimSuffix(f.line, []byte("\r"))) == 0
	if empty && !f.ambiguous() {
		f.length, f.coded = false, false
	}

	f.line = f.line[:0]
}

func begins(line, name []byte) bool {
	return len(line) >= len(name) && bytes.EqualFold(line[:len(name)], name)
}

// ambiguous reports whether both headers came.
func (f *framing) ambiguous() bool { return f.length && f.coded }

// Read reads from the connection and looks at how its requests say where they end.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.framing.read(p[:n])

	if c.framing.ambiguous() {
		c.ambiguous.Store(true)
	}

	return n, err
}

// connectionKey is where the context of a request has its connection.
type connectionKey struct{}

// WithConnection is the hook of http.Server that gives requests their connection.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, conn)
}

// Ambiguous reports whether a proxy may have another opinion about where the requests of
// a connection end. The head of a request has been read when its handler asks.
func Ambiguous(ctx context.Context) bool {
	c, ok := ctx.Value(connectionKey{}).(*connection)
	return ok && c.ambiguous.Load()
}
