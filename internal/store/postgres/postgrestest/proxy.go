package postgrestest

import (
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Proxy stands between a program and its server.
type Proxy struct {
	DSN      string        // for the program
	Held     chan struct{} // closed when something was kept from getting through
	server   string
	listener net.Listener
	cut      atomic.Int32           // where to cut at the next commit
	after    atomic.Int64           // so many bytes of it, or of its answer
	beside   atomic.Pointer[string] // only a commit together with this text is cut; nil: any
	sent     atomic.Int64           // bytes that the server has sent
	taken    atomic.Int64           // connections
	slow     atomic.Int64           // seconds that an answer takes
	holds    sync.Once
	keeps    atomic.Bool // the connections to the server outlive those of the program

	mu   sync.Mutex
	gate *sync.RWMutex // of the connections that are opened; while it is locked, nothing gets through

	clients, servers []net.Conn
}

// NewProxy returns a proxy in front of the server of a database, until the test ends.
func NewProxy(tb testing.TB, dsn string) *Proxy {
	tb.Helper()

	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check(tb, err)

	config, err := pgconn.ParseConfig(dsn)
	check(tb, err)

	server := net.JoinHostPort(config.Host, strconv.Itoa(int(config.Port)))
	p := &Proxy{
		server: server, DSN: strings.Replace(dsn, server, listener.Addr().String(), 1), listener: listener, gate: new(sync.RWMutex),
		Held: make(chan struct{}),
	}
	tb.Cleanup(p.Leave)

	go p.serve(listener)

	return p
}

// Where a proxy cuts a connection.
const (
	nowhere      = iota
	beforeCommit // nothing of it reaches the server
	afterCommit  // its answer is lost
	inCommit     // a part of it reaches the server
	inAnswer     // a part of its answer reaches the program
	passing      // the commit, or the answer, that was to be cut is on its way
)

// CutAtCommit cuts the connection at the next commit.
func (p *Proxy) CutAtCommit(reaches bool) {
	if reaches {
		p.cut.Store(afterCommit)
	} else {
		p.cut.Store(beforeCommit)
	}
}

// CutAfter cuts the connection after so many bytes of the next commit, with what travels together
// with it, or of the answer. Where these are fewer, nothing is cut.
func (p *Proxy) CutAfter(bytes int, answer bool) {
	p.after.Store(int64(bytes))
	if answer {
		p.cut.Store(inAnswer)
	} else {
		p.cut.Store(inCommit)
	}
}

// CutBeside loses the answer to the next commit that travels together with a text.
func (p *Proxy) CutBeside(text string) {
	p.beside.Store(&text)
	p.cut.Store(afterCommit)
}

// HasCut reports whether the connection that was to be cut was.
func (p *Proxy) HasCut() bool { return p.cut.Load() == nowhere }

// Sent is how many bytes the server has sent.
func (p *Proxy) Sent() int64 { return p.sent.Load() }

// Taken is how many connections it has taken.
func (p *Proxy) Taken() int64 { return p.taken.Load() }

// Freeze lets nothing through any more, in either direction, and ends no connection. New ones
// are taken, and are silent too.
func (p *Proxy) Freeze(tb testing.TB) {
	p.mu.Lock()
	gate := p.gate
	p.mu.Unlock()

	gate.Lock()
	tb.Cleanup(gate.Unlock)
}

// FreezeOpen freezes the connections that are open by now.
func (p *Proxy) FreezeOpen(tb testing.TB) {
	p.Freeze(tb)

	p.mu.Lock()
	p.gate = new(sync.RWMutex)
	p.mu.Unlock()
}

// LoseClients ends the connections of the program. The server does not learn of it.
func (p *Proxy) LoseClients() {
	p.keeps.Store(true)

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, c := range p.clients {
		_ = c.Close()
	}
}

// Lead lets the connections that are opened from now on lead to another server.
func (p *Proxy) Lead(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()

	p.server = to
}

// Slow lets each answer take so many seconds.
func (p *Proxy) Slow(seconds int64) { p.slow.Store(seconds) }

// Refuse takes no more connections.
func (p *Proxy) Refuse() { _ = p.listener.Close() }

// Return takes connections again, at the same address.
func (p *Proxy) Return(tb testing.TB) {
	tb.Helper()

	listener, err := net.Listen("tcp", p.listener.Addr().String())
	check(tb, err)

	p.listener = listener

	go p.serve(listener)
}

// Leave ends all connections and takes no more.
func (p *Proxy) Leave() {
	p.Refuse()

	p.mu.Lock()
	defer p.mu.Unlock()

	for _, c := range slices.Concat(p.clients, p.servers) {
		_ = c.Close()
	}
}

func (p *Proxy) serve(listener net.Listener) {
	for {
		client, err := listener.Accept()
		if err != nil {
			return
		}

		p.taken.Add(1)

		p.mu.Lock()
		to := p.server
		p.mu.Unlock()

		server, err := net.Dial("tcp", to)
		if err != nil {
			_ = client.Close()
			continue
		}

		p.mu.Lock()
		gate := p.gate
		p.clients, p.servers = append(p.clients, client), append(p.servers, server)
		p.mu.Unlock()

		answered := new(atomic.Int64) // so many bytes of answers still reach the program
		answered.Store(math.MaxInt64)
		go p.requests(client, server, gate, answered)
		go p.answers(server, client, gate, answered)
	}
}

// requests carries what the program sends, and cuts the connection at a commit.
func (p *Proxy) requests(client, server net.Conn, gate *sync.RWMutex, answered *atomic.Int64) {
	defer func() {
		_ = client.Close()
		if !p.keeps.Load() {
			_ = server.Close()
		}
	}()

	buffer := make([]byte, 1<<16)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}

		commits := strings.Contains(string(buffer[:n]), "COMMIT\x00")
		if beside := p.beside.Load(); beside != nil && !strings.Contains(string(buffer[:n]), *beside) {
			commits = false
		}

		passes := n
		switch {
		case !commits:
		case p.cut.CompareAndSwap(beforeCommit, nowhere):
			passes = 0
		case p.cut.CompareAndSwap(afterCommit, nowhere):
			answered.Store(0)
		case p.cut.CompareAndSwap(inCommit, passing):
			passes = min(n, int(p.after.Load()))
		case p.cut.CompareAndSwap(inAnswer, passing):
			answered.Store(p.after.Load())
		}

		err = p.send(server, buffer[:passes], gate)
		if err != nil {
			return
		}

		if passes < n {
			p.cut.Store(nowhere)
			p.hold()

			return
		}
	}
}

// answers carries what the server sends.
func (p *Proxy) answers(server, client net.Conn, gate *sync.RWMutex, answered *atomic.Int64) {
	defer client.Close()

	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		p.sent.Add(int64(n))
		if err != nil {
			return
		}

		left := answered.Load()
		passes := min(int64(n), left)
		if left < math.MaxInt64 {
			answered.Add(-passes)
		}

		time.Sleep(time.Duration(p.slow.Load()) * time.Second)

		err = p.send(client, buffer[:passes], gate)
		if err != nil {
			return
		}

		if passes < int64(n) {
			p.cut.Store(nowhere)
			return
		}
	}
}

// send sends what was received, once the gate is open.
func (p *Proxy) send(to net.Conn, what []byte, gate *sync.RWMutex) error {
	if !gate.TryRLock() {
		p.hold()
		gate.RLock()
	}
	defer gate.RUnlock()

	_, err := to.Write(what)

	return err
}

// hold says that something was kept.
func (p *Proxy) hold() { p.holds.Do(func() { close(p.Held) }) }
