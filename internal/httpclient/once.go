package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"time"
)

// The errors of a request whose fate is unknown: the service may have done its work.
var (
	errClosed   = errors.New("the connection was closed before an answer came")
	errNoAnswer = errors.New("the request was sent, but the service gave no answer to it") // over HTTP/2
)

// errNotRepeated ends a repeat of a request that was sent. No caller sees it.
var errNotRepeated = errors.New("the request was sent, and is not sent again")

// once is a [http.RoundTripper] that sends each request at most once.
//
// A [http.Transport] repeats a request on its own when a connection fails that was
// used before, or when an HTTP/2 server refuses a stream, provided that it takes the
// request to be idempotent, for example because of an Idempotency-Key. But a failed
// connection does not tell whether the service did its work. So a request of which
// at least one byte was written is not repeated. One of which nothing was written
// is: its connection was closed while it was idle. The goodbye that TLS writes when this
// side closes a connection in turn is no part of a request.
type once struct{ transport *http.Transport }

// Once returns a transport that sends each request at most once, by means of t, which
// it takes over. A request that was sent in part is never repeated, whatever its method
// and headers; one of which nothing was written is.
func Once(t *http.Transport) http.RoundTripper {
	dial := t.DialContext
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}

	t.DialContext = counting(dial)

	return &once{t}
}

// RoundTrip implements [http.RoundTripper].
func (o *once) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancelCause(request.Context()) // not cancelled on success: the body of the response still uses it

	s := &sending{cancel: cancel}
	watched := request.WithContext(httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn:      s.wantsConnection,
		GotConn:      s.gotConnection,
		WroteHeaders: s.wroteHeaders,
	}))
	if body := request.GetBody; body != nil {
		watched.GetBody = func() (io.ReadCloser, error) {
			if s.stopRepeat() {
				return nil, errNotRepeated
			}
			return body()
		}
	}

	response, err := o.transport.RoundTrip(watched)
	if err != nil {
		cancel(nil)
		return nil, s.explain(err)
	}

	response.Request = request

	return response, nil
}

// CloseIdleConnections closes the connections that wait for the next request.
func (o *once) CloseIdleConnections() { o.transport.CloseIdleConnections() }

// sending watches how a transport sends one request, and ends a repeat of what was sent.
//
// The transport asks for the body again before it repeats a request that has one. For
// those without a body, the only sign of a repeat is that it wants another connection.
// The context then ends before anything is written: at HTTP/2, it is checked under the
// lock of the writer. With HTTP/1, the transport may still give it a connection, and
// gotConnection closes it.
type sending struct {
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	conn    *countedConn // of the current try; nil: unknown
	before  int64        // the count of conn before this try
	shared  bool         // conn carries other requests as well (HTTP/2)
	begun   bool         // this try has a connection
	headers bool         // the headers of this try were written, or it was attempted
	ended   bool         // a repeat was ended
}

// sent reports whether a byte of the request may have been written.
func (s *sending) sent() bool {
	switch {
	case !s.begun, s.shared && !s.headers:
		return false
	case s.conn == nil:
		return true
	}

	return s.conn.count(s.shared) != s.before
}

// stopRepeat cancels the request if a byte of it may have been sent, and reports whether the
// request is cancelled.
func (s *sending) stopRepeat() bool {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.ended && s.sent() {
		s.ended = true
		s.cancel(errNotRepeated)
	}

	return s.ended
}

// wantsConnection is called before each try.
func (s *sending) wantsConnection(string) { s.stopRepeat() }

// gotConnection is called for each try, before anything is written.
func (s *sending) gotConnection(got httptrace.GotConnInfo) {
	counted, shared := underlying(got.Conn)
	if s.stopRepeat() {
		if !shared {
			_ = got.Conn.Close() // so that nothing can be written; the request has its own error
		}
		return
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	s.conn, s.shared = counted, shared
	s.begun, s.headers = true, false
	if counted != nil {
		s.before = counted.count(shared)
	}
}

// wroteHeaders is called when the headers were written, or could not be.
func (s *sending) wroteHeaders() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.headers = true
}

// explain says why a request failed. A repeat that was ended hides the error that led
// to it; the connection still knows it.
func (s *sending) explain(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	switch {
	case s.ended && s.shared:
		return errNoAnswer
	case s.ended && s.conn != nil && s.conn.failure() != nil:
		return s.conn.failure()
	case s.ended, err == io.EOF:
		return errClosed
	}

	return err
}

// countedConn is a connection that knows how much was written to it, and why it failed.
//
// The layer of TLS sets a deadline for a write only when it is about to close the
// connection: it then holds back all other writes, and writes nothing but its goodbye
// (close_notify). Over HTTP/1, which sets no such deadline itself, what is written after
// it is therefore no byte of a request.
type countedConn struct {
	net.Conn
	written atomic.Int64 // bytes before the first deadline for a write
	leaving atomic.Bool  // there was such a deadline
	goodbye atomic.Int64 // bytes after it
	failed  atomic.Pointer[error]
}

// count returns how many bytes were written that can be a part of a request.
func (c *countedConn) count(shared bool) int64 {
	n := c.written.Load()
	if shared {
		n += c.goodbye.Load() // HTTP/2 may be told to set deadlines of its own
	}

	return n
}

// dialer opens a connection.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

// counting makes dial return connections of which underlying finds the count.
func counting(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}

		return &countedConn{Conn: conn}, nil
	}
}

// underlying finds the counted connection below TLS, and whether requests share it.
func underlying(conn net.Conn) (counted *countedConn, shared bool) {
	if secure, ok := conn.(*tls.Conn); ok {
		shared = secure.ConnectionState().NegotiatedProtocol == "h2"
		conn = secure.NetConn()
	}

	counted, _ = conn.(*countedConn) // nil if the transport dials in another way

	return counted, shared
}

func (c *countedConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.remember(err)
	return n, err
}

func (c *countedConn) Write(p []byte) (int, error) {
	counter := &c.written
	if c.leaving.Load() {
		counter = &c.goodbye
	}

	n, err := c.Conn.Write(p)
	counter.Add(int64(n))
	c.remember(err)

	return n, err
}

func (c *countedConn) SetWriteDeadline(t time.Time) error {
	c.leaving.Store(true)
	return c.Conn.SetWriteDeadline(t)
}

// remember keeps the first error that tells more than that the connection is closed.
func (c *countedConn) remember(err error) {
	if err != nil && err != io.EOF && !errors.Is(err, net.ErrClosed) {
		c.failed.CompareAndSwap(nil, &err)
	}
}

// failure is the first error of the connection, or nil.
func (c *countedConn) failure() error {
	if err := c.failed.Load(); err != nil {
		return *err
	}
	return nil
}
