package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// connectWithin is how long it may take to connect to a host, unless the address says it.
const connectWithin = 5 * time.Second

// dial connects to a host. A connection that ends without a word, as behind a firewall that has
// forgotten it, is found out by the operating system: by keepalive while nothing is sent, and
// otherwise by what the host does not acknowledge.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	dialer := net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3},
		Control:         boundUnacknowledged,
	}

	conn, err := dialer.DialContext(ctx, network, address)
	if errors.Is(err, context.DeadlineExceeded) {
		err = &silent{err}
	}

	return conn, err
}

// silent is the error of a server that has not answered in time. It is an error of the network,
// unlike the end of a deadline that a caller has set.
type silent struct{ err error }

func (s *silent) Error() string { return "the server has not answered in time: " + s.err.Error() }

// Is lets it pass for the error of a connection that is closed, which it is by then.
func (*silent) Is(target error) bool { return target == net.ErrClosed }

// silentOf makes the end of a deadline that was set below a caller's context a silent.
func silentOf(caller context.Context, err error) error {
	if caller.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
		return err
	}

	return &silent{err}
}

// silence is how long a connection waits for the server to send or take something. It is longer
// than the server lets a statement run, so that the server ends a slow statement, and this
// program a connection that is dead: one whose peer is frozen, which keepalive does not see.
const silence = statementsRun + 15*time.Second

// silenceAtStop is the same while the process stops, whose time is short. It is longer than a
// statement waits for a lock, so that the server ends that wait, but not than a statement may run.
const silenceAtStop = locksWait + 5*time.Second

// sockets are the connections with which a process works. They can be ended all at once, when
// nothing must wait for the server any longer.
type sockets struct {
	silence atomic.Int64  // how long the server may be silent, as a time.Duration
	atStop  time.Duration // how long while the process stops

	mu    sync.Mutex
	open  map[*socket]bool
	ended bool
}

func newSockets(silence, atStop time.Duration) *sockets {
	s := &sockets{atStop: atStop, open: map[*socket]bool{}}
	s.silence.Store(int64(silence))

	return s
}

// hasten bounds more tightly how long the server may be silent, also in what waits already. What it
// has bounded before is not given more time.
func (s *sockets) hasten() {
	s.mu.Lock()
	defer s.mu.Unlock()

	before := s.silence.Swap(int64(s.atStop))
	if before == int64(s.atStop) {
		return
	}

	for opened := range s.open {
		opened.wait()
	}
}

// dial connects to a host, unless the connections have been ended.
func (s *sockets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := dial(ctx, network, address)
	if err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()

	if s.ended {
		return nil, errors.Join(fmt.Errorf("this process connects no more: %w", net.ErrClosed), conn.Close())
	}

	opened := &socket{Conn: conn, of: s}
	s.open[opened] = true

	return opened, nil
}

// end ends all connections, and with them whatever waits for the server.
func (s *sockets) end() {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.ended = true
	for opened := range s.open {
		_ = opened.Conn.Close()
	}
}

// socket is one of the connections.
type socket struct {
	net.Conn
	of *sockets

	mu     sync.Mutex
	theirs bool // a user of the connection has set a deadline of its own
}

// Read reads, and ends the connection when the server is silent.
func (s *socket) Read(to []byte) (int, error) {
	s.wait()

	n, err := s.Conn.Read(to)

	return n, s.waited(err)
}

// Write writes, and ends the connection when the server is silent.
func (s *socket) Write(from []byte) (int, error) {
	s.wait()

	n, err := s.Conn.Write(from)

	return n, s.waited(err)
}

// wait bounds how long the server may be silent from now on.
func (s *socket) wait() {
	s.mu.Lock()
	defer s.mu.Unlock()

	if !s.theirs {
		_ = s.Conn.SetDeadline(time.Now().Add(time.Duration(s.of.silence.Load()))) // of a connection that is closed: reading says so
	}
}

// waited ends the connection if it was silent for too long.
func (s *socket) waited(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	if s.theirs || !errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}

	return errors.Join(&silent{err}, s.Conn.Close())
}

// SetDeadline sets a deadline in place of that of a silent server. The zero time ends it.
func (s *socket) SetDeadline(at time.Time) error {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.theirs = !at.IsZero()

	return s.Conn.SetDeadline(at)
}

// SetReadDeadline is SetDeadline: none of its users waits for longer than for both.
func (s *socket) SetReadDeadline(at time.Time) error { return s.SetDeadline(at) }

// SetWriteDeadline is SetDeadline, too.
func (s *socket) SetWriteDeadline(at time.Time) error { return s.SetDeadline(at) }

// Close ends the connection, unless it has ended.
func (s *socket) Close() error {
	s.of.mu.Lock()
	delete(s.of.open, s)
	s.of.mu.Unlock()

	err := s.Conn.Close()
	if errors.Is(err, net.ErrClosed) {
		return nil
	}

	return err
}
