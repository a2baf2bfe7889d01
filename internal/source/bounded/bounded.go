// Package bounded limits what a source may send.
//
// Drivers believe what a server announces: they allocate a value of 20 GB before its first
// byte has come, and end the program when that fails. So each connection of a source is
// read through a [Line], which understands just enough of its protocol to see what is
// announced, and fails every later read before the driver sees too much, so that the driver
// closes the connection.
//
//	Redis       lines, announced lengths, elements and depth of an answer; a value that is
//	            too large is left out of the answer, and what stands in its place says so
//	RabbitMQ    frames, and the announced size of a message
//	MySQL       messages that are split into packets, and the number of columns
//	PostgreSQL  messages
//
// A line counts the bytes of all connections of its source together, for each request
// alone, and closes them when the context of the request ends: not every driver heeds that.
//
// The other way would be a process for each source, with a limit of its memory. It would
// also hold where a line cannot look, such as in the encrypted connections that the driver
// of MySQL makes, but costs a protocol between the processes, 20 MB for each source, and a
// source that is away for all of its records because of one. So the lines it is.
package bounded

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"

	"redrive/internal/source"
)

// What a source may say.
const (
	MaxRequest = 1_000_000_000 // bytes in answer to one request, with those that are left out
	MaxAnswer  = 64_000_000    // bytes of an answer that reach the driver
	MaxMessage = 40_000_000    // bytes of a message of a database, which is a row
	MaxBody    = 135_000_000   // bytes of a message of RabbitMQ, whose own limit is not higher by default
)

// Protocol makes the filter of a connection.
type Protocol func(*Line) Filter

// Filter reads along with a connection. Pass returns what the driver gets of the next
// bytes, which can be more or less; the result is valid until the next call. After an
// error, every read of the connection fails with it.
type Filter interface {
	Pass(in []byte) (out []byte, err error)
}

// asker is a filter that is told of commands before they are sent. An error keeps the
// command back.
type asker interface {
	Asked() error
}

// Line has the connections of a source, and what they may say. Its methods are safe for
// concurrent use.
type Line struct {
	protocol Protocol
	marker   string // begins what stands in the place of a value that was left out

	mu    sync.Mutex
	conns map[net.Conn]bool
	limit int64 // of bytes that may be read in answer to this request
	read  int64 // bytes that were
	kept  int64 // bytes of them that went on to a driver
	fault error // the first limit that was exceeded in this request
	cut   bool  // connections were closed from here
}

// New returns a line of connections that speak a protocol.
func New(p Protocol) *Line {
	return &Line{protocol: p, marker: "(left out " + rand.Text() + ")", conns: map[net.Conn]bool{}, limit: MaxRequest}
}

// Begin starts a request whose answer may have at most limit bytes. The caller must call end
// with the request's error before it cancels ctx. If a limit was exceeded, end replaces that
// error with the reason. If ctx ends first, the line closes all of its connections.
func (l *Line) Begin(ctx context.Context, limit int64) (end func(*error)) {
	l.mu.Lock()
	l.limit, l.fault = limit, nil
	l.mu.Unlock()
	l.Renew()

	stop := context.AfterFunc(ctx, l.Close)

	return func(err *error) {
		stop()
		l.mu.Lock()
		defer l.mu.Unlock()

		if *err != nil && l.fault != nil {
			*err = l.fault
		}
	}
}

// Renew counts the bytes of a request from zero, where it asks for one part after another.
func (l *Line) Renew() {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.read, l.kept = 0, 0
}

// Close closes all connections. Others can be opened after it.
func (l *Line) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()

	for c := range l.conns {
		l.cut = true
		_ = c.Close() // it is of no use any more
	}

	clear(l.conns)
}

// CloseError is err, with which a driver was closed. It is nil if the line has closed a
// connection before, because then the driver only complains about that.
func (l *Line) CloseError(err error) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	if l.cut {
		return nil
	}

	return err
}

// Dial opens a connection of the line, with TLS unless secure is nil.
func (l *Line) Dial(ctx context.Context, d *net.Dialer, network, address string, secure *tls.Config) (net.Conn, error) {
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}

	c := l.add(raw)
	if secure == nil {
		c.reader = l.Reader(raw)
		return &open{c}, nil
	}

	encrypted := tls.Client(raw, secure)
	c.Conn, c.reader = encrypted, l.Reader(encrypted)
	if err := encrypted.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}

	return c, nil
}

// Watch opens a connection whose bytes are not filtered: the caller reads it through
// [Line.Reader], above the encryption. Close closes it like the others.
func (l *Line) Watch(ctx context.Context, d *net.Dialer, network, address string) (net.Conn, error) {
	raw, err := d.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}

	c := l.add(raw)
	c.reader = raw

	return &open{c}, nil
}

// add makes a connection one of the line.
func (l *Line) add(raw net.Conn) *conn {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.conns[raw] = true

	return &conn{Conn: raw, raw: raw, line: l}
}

// Reader reads through the line what comes out of another reader, such as a connection
// whose encryption is taken off by the driver.
func (l *Line) Reader(r io.Reader) io.Reader {
	return &reader{from: r, line: l, filter: l.protocol(l), buffer: make([]byte, 16<<10)}
}

// count adds to what was read.
func (l *Line) count(n int) error {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.read += int64(n)
	if l.read > l.limit {
		return l.refuse("it answered a request with more than %s", source.Size(l.limit))
	}

	return nil
}

// keep adds to what a driver got, and returns the sum.
func (l *Line) keep(n int) int64 {
	l.mu.Lock()
	defer l.mu.Unlock()

	l.kept += int64(n)

	return l.kept
}

// refuse is the error of a limit that was exceeded. The caller holds the mutex.
func (l *Line) refuse(format string, args ...any) error {
	err := fmt.Errorf("Redrive read no further from the source, because "+format, args...)
	if l.fault == nil {
		l.fault = err
	}

	return err
}

// exceeded is refuse for a filter.
func (l *Line) exceeded(format string, args ...any) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.refuse(format, args...)
}

// conn is a connection of the line.
type conn struct {
	net.Conn
	raw    net.Conn // without encryption
	reader io.Reader
	line   *Line
}

// Read reads what the line lets pass.
func (c *conn) Read(p []byte) (int, error) { return c.reader.Read(p) }

// Write sends a command, or a part of one.
func (c *conn) Write(p []byte) (int, error) {
	if r, ok := c.reader.(*reader); ok {
		if a, ok := r.filter.(asker); ok {
			if err := a.Asked(); err != nil {
				return 0, err
			}
		}
	}

	return c.Conn.Write(p)
}

// Close ends the connection.
func (c *conn) Close() error {
	c.line.mu.Lock()
	delete(c.line.conns, c.raw)
	c.line.mu.Unlock()

	if err := c.Conn.Close(); !errors.Is(err, net.ErrClosed) { // the line may have closed it
		return err
	}

	return nil
}

// open is a connection without encryption, of which drivers ask the system whether the
// server has closed it.
type open struct{ *conn }

// SyscallConn returns the connection as the system knows it.
func (o *open) SyscallConn() (syscall.RawConn, error) {
	c, ok := o.raw.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}

	return c.SyscallConn()
}

// reader passes bytes through a filter.
type reader struct {
	from   io.Reader
	line   *Line
	filter Filter
	buffer []byte
	rest   []byte // what has passed and was not asked for yet
	late   error  // of the connection, that came with bytes
	broken error  // a limit was exceeded: nothing is read any more
}

// Read reads what has passed the filter.
func (r *reader) Read(p []byte) (int, error) {
	for len(r.rest) == 0 && len(p) > 0 {
		if r.broken != nil {
			return 0, r.broken
		}

		if err := r.late; err != nil {
			r.late = nil // one that lasts comes again
			return 0, err
		}

		r.fill()
	}

	n := copy(p, r.rest)
	r.rest = r.rest[n:]

	return n, nil
}

// fill reads the next bytes of the connection.
func (r *reader) fill() {
	n, err := r.from.Read(r.buffer)
	r.late = err

	if n == 0 {
		return
	}

	r.broken = r.line.count(n)
	if r.broken == nil {
		r.rest, r.broken = r.filter.Pass(r.buffer[:n])
	}
}

// Plain is a protocol of which only the bytes are counted.
func Plain(*Line) Filter { return plain{} }

type plain struct{}

// Pass lets everything pass.
func (plain) Pass(in []byte) ([]byte, error) { return in, nil }
