package postgrestest

import (
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
	cut      atomic.Int32           // 1: cut before the next commit, 2: after it
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

// CutAtCommit cuts the connection at the next commit.
func (p *Proxy) CutAtCommit(reaches bool) {
	if reaches {
		p.cut.Store(2)
	} else {
		p.cut.Store(1)
	}
}

// CutBeside loses the answer to the next commit that travels together with a text.
func (p *Proxy) CutBeside(text string) {
	p.beside.Store(&text)
	p.cut.Store(2)
}

// HasCut reports whether the connection that was to be cut was.
func (p *Proxy) HasCut() bool { return p.cut.Load() == 0 }

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

		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}

		p.mu.Lock()
		gate := p.gate
		p.clients, p.servers = append(p.clients, client), append(p.servers, server)
		p.mu.Unlock()

		silent := new(atomic.Bool) // the answers of this connection are lost
		go p.requests(client, server, gate, silent)
		go p.answers(server, client, gate, silent)
	}
}

// requests carries what the program sends, and cuts the connection at a commit.
func (p *Proxy) requests(client, server net.Conn, gate *sync.RWMutex, silent *atomic.Bool) {
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

		if commits && p.cut.CompareAndSwap(1, 0) {
			p.hold()
			return
		}

		if commits && p.cut.CompareAndSwap(2, 0) {
			silent.Store(true)
		}

		err = p.send(server, buffer[:n], gate)
		if err != nil {
			return
		}
	}
}

// answers carries what the server sends.
func (p *Proxy) answers(server, client net.Conn, gate *sync.RWMutex, silent *atomic.Bool) {
	defer client.Close()

	buffer := make([]byte, 1<<16)
	for {
		n, err := server.Read(buffer)
		p.sent.Add(int64(n))
		if err != nil || silent.Load() {
			return
		}

		time.Sleep(time.Duration(p.slow.Load()) * time.Second)

		err = p.send(client, buffer[:n], gate)
		if err != nil {
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
