package limit

import (
	"container/list"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"
)

const (
	idleOf        = 4               // one connection of so many may be idle: each has buffers and a goroutine
	fewIdle       = 100             // may be idle in any case
	rejections    = 16              // connections that are told at once why they are refused; others are only closed
	rejectionTime = 2 * time.Second // for the answer to one
)

// Connections bounds the connections that are open. An address that has its share,
// or a server that is full, closes the connection that is idle longest before it
// refuses a new one.
type Connections struct {
	share   *Share
	trusted []netip.Prefix // may have as many as there are
	refused func(Refusal)  // is told of each connection that was refused or closed

	mu       sync.Mutex
	open     map[net.Conn]*connection
	idle     map[Address]*list.List // of *connection, the one idle longest in front
	idling   int                    // connections in them
	mostIdle int

	rejecting chan struct{} // one place for each answer that says why
}

// connection is one that was accepted.
type connection struct {
	net.Conn
	from  Address
	all   *Connections
	place *list.Element // among the idle ones, or nil

	framing   framing     // for Read alone
	ambiguous atomic.Bool // what it found
}

// NewConnections bounds connections by a share. Trusted networks, those of a proxy
// that stands for many addresses, are bounded by its total only.
func NewConnections(total, percent int, trusted []netip.Prefix, refused func(Refusal)) *Connections {
	return &Connections{
		share: NewShare(total, percent), trusted: trusted, refused: refused, mostIdle: max(fewIdle, total/idleOf),
		open: map[net.Conn]*connection{}, idle: map[Address]*list.List{}, rejecting: make(chan struct{}, rejections),
	}
}

// Listen returns a listener that accepts no more than the limit. The server that
// uses it reports the state of connections to State.
func (c *Connections) Listen(l net.Listener) net.Listener { return listener{l, c} }

type listener struct {
	net.Listener
	all *Connections
}

// Accept returns the next connection that is not refused.
func (l listener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}

		admitted, refused := l.all.admit(conn)
		if admitted != nil {
			return admitted, nil
		}

		l.all.refused(refused)
		l.all.reject(conn, refused)
	}
}

// admit takes a place for a connection. When the address has none left, admit makes
// one by closing an idle connection of the same address; when there is none left for
// anyone, an idle one of the address that has the most.
func (c *Connections) admit(conn net.Conn) (net.Conn, Refusal) {
	from := AddressOf(conn.RemoteAddr().String())
	if c.trusts(from) {
		from = Address{}
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	for {
		refused := c.share.Take(from, 1)
		if refused == "" {
			made := &connection{Conn: conn, from: from, all: c}
			c.open[made] = made
			c.rest(made)
			return made, ""
		}

		evicted := c.evictable(from, refused)
		if evicted == nil {
			return nil, refused
		}

		c.end(evicted, refused)
	}
}

// trusts reports whether an address is a trusted proxy's.
func (c *Connections) trusts(from Address) bool {
	for _, network := range c.trusted {
		if network.Contains(from.Addr()) {
			return true
		}
	}

	return false
}

// evictable is the connection to close for a new one, or nil.
func (c *Connections) evictable(from Address, refused Refusal) *connection {
	if refused == ByAll {
		biggest, ok := c.share.biggest(from)
		if !ok {
			return nil
		}

		from = biggest
	}

	if idle := c.idle[from]; idle != nil {
		return idle.Front().Value.(*connection)
	}

	return nil
}

// State is the hook of http.Server that tells which connections are idle: those
// between two requests, and those that have not sent anything yet.
func (c *Connections) State(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()

	known := c.open[conn]
	if known == nil {
		return
	}

	switch state {
	case http.StateIdle:
		c.rest(known)
	case http.StateActive, http.StateHijacked:
		c.wake(known)
	}
}

// rest puts a connection behind all that are idle.
func (c *Connections) rest(known *connection) {
	c.wake(known)

	if c.idle[known.from] == nil {
		c.idle[known.from] = list.New()
	}

	known.place = c.idle[known.from].PushBack(known)
	c.idling++
	for c.idling > c.mostIdle {
		c.end(c.mostIdling().Front().Value.(*connection), ByAll)
	}
}

// mostIdling are the idle connections of the address that has the most of them.
func (c *Connections) mostIdling() (most *list.List) {
	for _, idle := range c.idle {
		if most == nil || idle.Len() > most.Len() {
			most = idle
		}
	}

	return most
}

// end closes an idle connection. For its client it ends as any idle one does.
func (c *Connections) end(evicted *connection, why Refusal) {
	c.refused(why)
	c.forget(evicted)
	_ = evicted.Conn.Close()
}

// wake takes a connection out of those that are idle.
func (c *Connections) wake(known *connection) {
	idle := c.idle[known.from]
	if known.place == nil || idle == nil {
		return
	}

	idle.Remove(known.place)

	c.idling--
	known.place = nil
	if idle.Len() == 0 {
		delete(c.idle, known.from)
	}
}

// forget gives the place of a connection back.
func (c *Connections) forget(known *connection) {
	if c.open[known] != nil {
		delete(c.open, known)
		c.wake(known)
		c.share.Give(known.from, 1)
	}
}

// CloseWrite ends the sending half only, so that a client reads the last answer
// before it learns that the server no longer reads.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// Close gives the place back and closes the connection.
func (c *connection) Close() error {
	c.all.mu.Lock()
	c.all.forget(c)
	c.all.mu.Unlock()
	return c.Conn.Close()
}

// reject says why a connection is refused, and closes it. It does not wait.
func (c *Connections) reject(conn net.Conn, refused Refusal) {
	select {
	case c.rejecting <- struct{}{}:
		go func() {
			defer func() { <-c.rejecting }()

			sendRejection(conn, refused)
		}()
	default:
		_ = conn.Close() // the client is not told
	}
}

// sendRejection answers the request that will come, without reading it. What the client
// sends meanwhile is taken, because closing before would tear the answer away.
func sendRejection(conn net.Conn, refused Refusal) {
	defer conn.Close()

	status, text := "503 Service Unavailable", "too many connections are open; try again\n"
	if refused == ByAddress {
		status, text = "429 Too Many Requests", "your address has too many connections open; close some, or try again\n"
	}

	err := conn.SetDeadline(time.Now().Add(rejectionTime))
	if err != nil {
		return
	}

	_, err = fmt.Fprintf(conn, "HTTP/1.1 %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %d\r\n"+
		"Retry-After: 2\r\nConnection: close\r\n\r\n%s", status, len(text), text)
	if half, ok := conn.(interface{ CloseWrite() error }); ok && err == nil {
		_ = half.CloseWrite() // then it is closed as a whole
		_, _ = io.Copy(io.Discard, io.LimitReader(conn, 64<<10))
	}
}
