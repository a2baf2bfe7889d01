// Package live brings the newest totals and row changes to every open page.
//
// The store's writer calls [Hub.Changed] after each commit. That only puts the
// changes into an inbox; the hub's one goroutine takes them out in batches and
// marks, for each client, what it has not seen yet: a flag for the counters,
// the newest change of each row that it shows, a number of newer jobs. This is
// the client's mailbox. It has one slot for each thing that a page can show,
// so it never grows, and a client that is slow skips to the newest instead of
// falling behind. The engine and the store never wait for a client.
//
//	store ─ Changed ─▶ inbox ─ dispatch ─▶ mailbox ─ write ─▶ browser
//	                                          ▲                  │
//	                                          └─── subscribe ────┘
//
// What a client gets is absolute: totals with a sequence number that never
// falls, and rows as they are. Whatever was skipped is therefore not missing.
// The writing side of a client takes the totals at the moment of writing, and
// writes a message each quarter of a second at most.
//
// Messages carry ids, states, numbers and times, never payloads or error
// texts, so nothing that is hidden from a reader can leak here.
package live

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/stats"
)

const (
	pace          = 250 * time.Millisecond // between two messages to one client
	dispatchPause = 20 * time.Millisecond  // between two dispatches
	pingEvery     = 30 * time.Second
	passLimit     = 2 * time.Second // for the answer whether a pass is valid
	writeLimit    = 5 * time.Second // for one message
	readLimit     = 16 << 10        // bytes of one message from a client
	queryLimit    = 2 * time.Second // for one look at the store
	closeLimit    = time.Second     // for a client to close
	inboxLimit    = 1 << 16         // changes; beyond, every client looks again
	newerLimit    = 10_000          // jobs that are counted; beyond, there are more
)

const (
	goingAway = "the server is stopping"                          // with the close code 1001
	passOver  = "the login that opened this connection has ended" // with the close code 1008
)

// Totaler is what the hub asks the store. Snapshot is called often and must be
// cheap; its Seq never falls. Changes returns where the jobs stand now, in any
// order, without those that do not exist. Newer counts, up to a limit, the jobs
// that stand before a place in a list.
type Totaler interface {
	Snapshot() stats.Snapshot
	Changes(ctx context.Context, ids []string) ([]job.Change, error)
	Newer(ctx context.Context, f filter.Filter, than filter.Cursor, limit int) (n int, more bool, err error)
}

// Options are what has a default.
type Options struct {
	CheckOrigin func(*http.Request) bool // whether a websocket may be opened; default: gorilla's same-origin rule
	MaxClients  int                      // default 12,000
	MaxPerIP    int                      // default 100
	Log         *slog.Logger             // default: none
}

// Hub knows the open clients. All methods are safe for concurrent use.
type Hub struct {
	totals   Totaler
	opts     Options
	upgrader websocket.Upgrader
	inbox    inbox
	done     chan struct{}  // closed by Close
	running  sync.WaitGroup // the dispatcher and every client's two goroutines

	frameMu sync.Mutex
	frame   frame

	mu      sync.Mutex // guards the rest; taken before a client's own
	closed  bool
	perIP   map[string]int
	clients map[*client]struct{}
	rows    map[string]map[*client]struct{}        // by the job that they show
	newer   map[filter.Filter]map[*client]struct{} // by the list that they show
}

// frame is the totals as a message, made once for all clients.
type frame struct {
	seq  int64
	data []byte
}

// New starts a hub. Close stops it.
func New(totals Totaler, o Options) *Hub {
	o.MaxClients = cmp.Or(o.MaxClients, 12_000)
	o.MaxPerIP = cmp.Or(o.MaxPerIP, 100)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))

	h := &Hub{
		totals: totals, opts: o, done: make(chan struct{}),
		inbox:   inbox{wake: make(chan struct{}, 1)},
		perIP:   map[string]int{},
		clients: map[*client]struct{}{},
		rows:    map[string]map[*client]struct{}{},
		newer:   map[filter.Filter]map[*client]struct{}{},
	}
	h.upgrader = websocket.Upgrader{
		HandshakeTimeout: writeLimit, ReadBufferSize: 512, WriteBufferSize: 1024,
		WriteBufferPool: &sync.Pool{}, CheckOrigin: o.CheckOrigin,
	}
	h.running.Go(h.dispatch)

	return h
}

// Changed records jobs that moved. It never blocks for longer than it takes to
// copy them.
func (h *Hub) Changed(changes []job.Change) { h.inbox.put(changes) }

// Redraw tells every page that something changed that is neither a job nor a count.
func (h *Hub) Redraw() {
	h.mu.Lock()
	defer h.mu.Unlock()

	for c := range h.clients {
		c.redraw()
	}
}

// Clients returns how many pages are connected.
func (h *Hub) Clients() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// Close tells every client that the server goes away (1001), cuts off those
// that do not close within a second, and returns when all
// goroutines have ended.
func (h *Hub) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}

	h.mu.Unlock()

	// The clients are asked to close first.
	ended := make(chan struct{})
	go func() { h.running.Wait(); close(ended) }()

	select {
	case <-ended:
	case <-time.After(closeLimit):
		h.cutOff()
		<-ended
	}
}

// cutOff closes what is still open; that ends the goroutines of each client.
func (h *Hub) cutOff() {
	h.mu.Lock()
	defer h.mu.Unlock()

	for c := range h.clients {
		c.conn.Close()
	}
}

// Pass is the right to a websocket, for as long as it is valid.
type Pass struct {
	Address string                     // of the browser; default: the peer's
	Valid   func(context.Context) bool // asked every half minute, and by Recheck; default: it stays valid
}

// Recheck asks of every open websocket at once whether its pass is still valid.
// It is called when a user has logged out, or when rights were taken away.
func (h *Hub) Recheck() {
	h.mu.Lock()
	defer h.mu.Unlock()

	for c := range h.clients {
		signal(c.recheck)
	}
}

// ServeHTTP is Serve with a pass that stays valid.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.Serve(w, r, Pass{}) }

// Serve opens a websocket. It returns as soon as the websocket is open. A
// refusal is plain text: no page can read the answer to a failed handshake.
func (h *Hub) Serve(w http.ResponseWriter, r *http.Request, p Pass) {
	ip := cmp.Or(p.Address, peer(r))

	status, problem := h.admit(ip)
	if problem != "" {
		w.Header().Set("Retry-After", "10")
		http.Error(w, problem, status)
		return
	}

	conn, err := h.upgrader.Upgrade(w, r, nil)
	if err != nil { // the upgrader has answered
		h.opts.Log.Debug("no websocket", "peer", ip, "error", err)
		h.releasePlace(ip)
		return
	}

	h.open(newClient(h, conn, ip, p))
}

// admit reserves a place for a client, or says why there is none.
func (h *Hub) admit(ip string) (status int, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var all int
	for _, n := range h.perIP {
		all += n
	}

	switch {
	case h.closed:
		return http.StatusServiceUnavailable, goingAway
	case all >= h.opts.MaxClients:
		return http.StatusServiceUnavailable, fmt.Sprintf("%d pages are connected, no more are accepted", all)
	case h.perIP[ip] >= h.opts.MaxPerIP:
		return http.StatusTooManyRequests, fmt.Sprintf("%d pages are connected from your address, no more are accepted", h.perIP[ip])
	}

	h.perIP[ip]++

	return 0, ""
}

// releasePlace gives back the place that admit reserved.
func (h *Hub) releasePlace(ip string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.perIP[ip]--
	if h.perIP[ip] == 0 {
		delete(h.perIP, ip)
	}
}

// open starts the client's two goroutines, unless the hub was closed while
// the websocket was being opened.
func (h *Hub) open(c *client) {
	h.mu.Lock()

	closed := h.closed
	if !closed {
		h.clients[c] = struct{}{}
		h.running.Go(c.read)
		h.running.Go(c.write)
	}
	h.mu.Unlock()

	if closed {
		c.closeWith(websocket.CloseGoingAway, goingAway)
		c.conn.Close()
		h.releasePlace(c.ip)
	}
}

// leave forgets a client whose connection has ended.
func (h *Hub) leave(c *client) {
	h.subscribe(c, subscription{})

	h.mu.Lock()
	delete(h.clients, c)
	h.mu.Unlock()

	h.releasePlace(c.ip)
}

// counters is the newest message of the totals.
func (h *Hub) counters() frame {
	h.frameMu.Lock()
	defer h.frameMu.Unlock()

	s := h.totals.Snapshot()
	if h.frame.data == nil || s.Seq > h.frame.seq {
		h.frame = frame{s.Seq, encode(newCounters(s))}
	}

	return h.frame
}

// look asks the store where jobs stand.
func (h *Hub) look(ctx context.Context, ids []string) ([]job.Change, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()

	return h.totals.Changes(ctx, ids)
}

// count asks the store how many jobs are newer than the first row of a list.
func (h *Hub) count(ctx context.Context, l List) (newerMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()

	n, more, err := h.totals.Newer(ctx, l.Filter, l.First, newerLimit)

	return newerMessage{"newer", n, more}, err
}

// encode writes a message.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil { // unreachable: the messages are strings, numbers and maps of them
		panic(fmt.Sprintf("live.encode(%T): %v", v, err))
	}

	return data
}

// peer is the address that a request came from, whatever its headers claim.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return host
}
