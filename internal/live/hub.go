// Package live sends the newest totals and row changes to every open page, over websockets.
//
// The writer of the store calls [Hub.Changed] after each commit, which only puts the changes into
// an inbox. One goroutine of the hub takes them out in batches, and puts into the mailbox of each
// client what that client has not been sent yet: a flag for the counters, the newest change of each
// row that it shows, and a number of newer jobs. A mailbox has one slot for each thing that a page
// can show, so it does not grow, and a slow client skips to the newest state instead of falling
// behind. The engine and the store never wait for a client.
//
//	store ─ Changed ─▶ inbox ─ dispatch ─▶ mailbox ─ write ─▶ browser
//	                                          ▲                  │
//	                                          └─── subscribe ────┘
//
// A message says how things are, and not by how much they have changed: totals with a sequence
// number that never falls, and rows as they are. So a client misses nothing by what was skipped. It
// is sent at most one message each quarter of a second, with the totals of that moment.
//
// Messages have ids, states, numbers and times, but no payloads or error texts, so they cannot
// disclose what is hidden from their reader.
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
	pace          = 250 * time.Millisecond // from one message to a client to the next, at least
	dispatchPause = 20 * time.Millisecond  // from one dispatch to the next, at least
	pingEvery     = 30 * time.Second
	passLimit     = 2 * time.Second // how long it may take to learn whether a pass is valid
	writeLimit    = 5 * time.Second // how long a client may take to accept a message
	readLimit     = 16 << 10        // how large a message of a client may be, in bytes
	queryLimit    = 2 * time.Second // how long a query may take
	closeLimit    = time.Second     // how long a client may take to close
	inboxLimit    = 1 << 16         // how many changes the inbox has; with more, every client looks its rows up again
	newerLimit    = 10_000          // how many newer jobs are counted
)

const (
	goingAway = "the server is stopping"                          // sent with the close code 1001
	passOver  = "the login that opened this connection has ended" // sent with the close code 1008
)

// Totaler is what the hub reads from the store.
type Totaler interface {
	// Snapshot returns the totals as of the last commit. It is called often, and must be cheap. Its
	// Seq never falls.
	Snapshot() stats.Snapshot

	// Changes returns how the jobs with these ids are now, in any order. Those that do not exist are
	// missing.
	Changes(ctx context.Context, ids []string) ([]job.Change, error)

	// Newer counts the jobs that come before a place in the list of a filter. It stops at limit: more
	// reports whether there are others.
	Newer(ctx context.Context, f filter.Filter, than filter.Cursor, limit int) (n int, more bool, err error)
}

// Options are the settings of a hub. All have defaults.
type Options struct {
	CheckOrigin func(*http.Request) bool // whether a websocket may be opened; default: gorilla's same-origin rule
	MaxClients  int                      // default 12,000
	MaxPerIP    int                      // default 100
	Log         *slog.Logger             // default: none
}

// Hub has the open websockets. All methods are safe for concurrent use.
type Hub struct {
	totals   Totaler
	opts     Options
	upgrader websocket.Upgrader
	inbox    inbox
	done     chan struct{}  // closed by Close
	running  sync.WaitGroup // the dispatcher and every client's two goroutines

	frameMu sync.Mutex
	frame   frame

	mu      sync.Mutex // guards the fields below; locked before the mutex of a client
	closed  bool
	perIP   map[string]int                         // how many places each address has reserved
	clients map[*client]struct{}                   // all clients
	rows    map[string]map[*client]struct{}        // the clients that show a job, by its id
	newer   map[filter.Filter]map[*client]struct{} // the clients that count newer jobs of a list, by its filter
}

// frame is a message with the totals, which is encoded once for all clients.
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

// Changed is told which jobs a commit changed. It copies the changes, and does not wait for a client.
func (h *Hub) Changed(changes []job.Change) { h.inbox.put(changes) }

// Redraw tells every page to load itself again, because something changed that is neither a job nor
// a count.
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

// Close tells every client that the server is stopping (close code 1001), cuts off those that have
// not closed after closeLimit, and returns when all goroutines have ended.
func (h *Hub) Close() {
	h.mu.Lock()
	if !h.closed {
		h.closed = true
		close(h.done)
	}

	h.mu.Unlock()

	// Closing done has asked the clients to close. Wait for them, but not longer than closeLimit.
	ended := make(chan struct{})
	go func() { h.running.Wait(); close(ended) }()

	select {
	case <-ended:
	case <-time.After(closeLimit):
		h.cutOff()
		<-ended
	}
}

// cutOff closes the connections that are still open, which ends the goroutines of their clients.
func (h *Hub) cutOff() {
	h.mu.Lock()
	defer h.mu.Unlock()

	for c := range h.clients {
		c.conn.Close()
	}
}

// Pass is the right of a browser to a websocket.
type Pass struct {
	Address string                     // the address of the browser; default: that of the connection
	Valid   func(context.Context) bool // whether the right still exists: called every half minute, and after Recheck; default: always
}

// Recheck makes every websocket check at once whether its pass is still valid. It is called when a
// user has logged out, or has lost a permission.
func (h *Hub) Recheck() {
	h.mu.Lock()
	defer h.mu.Unlock()

	for c := range h.clients {
		signal(c.recheck)
	}
}

// ServeHTTP calls Serve with a pass that is always valid.
func (h *Hub) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.Serve(w, r, Pass{}) }

// Serve opens a websocket, and returns when it is open or refused. A refusal has the status 429 if
// the address has too many websockets, and otherwise 503. Its body is plain text, because no page
// can read the answer to a failed handshake.
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

// admit reserves a place for a client, or returns the status and the text of a refusal.
func (h *Hub) admit(ip string) (status int, problem string) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var total int
	for _, n := range h.perIP {
		total += n
	}

	switch {
	case h.closed:
		return http.StatusServiceUnavailable, goingAway
	case total >= h.opts.MaxClients:
		return http.StatusServiceUnavailable, fmt.Sprintf("%d pages are connected, no more are accepted", total)
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

// open starts the two goroutines of a client. If the hub was closed meanwhile, it closes the
// connection instead.
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

// leave removes a client whose connection has ended.
func (h *Hub) leave(c *client) {
	h.subscribe(c, subscription{})

	h.mu.Lock()
	delete(h.clients, c)
	h.mu.Unlock()

	h.releasePlace(c.ip)
}

// counters returns a message with the newest totals.
func (h *Hub) counters() frame {
	h.frameMu.Lock()
	defer h.frameMu.Unlock()

	s := h.totals.Snapshot()
	if h.frame.data == nil || s.Seq > h.frame.seq {
		h.frame = frame{s.Seq, encode(newCounters(s))}
	}

	return h.frame
}

// look reads how jobs are now.
func (h *Hub) look(ctx context.Context, ids []string) ([]job.Change, error) {
	if len(ids) == 0 {
		return nil, nil
	}

	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()

	return h.totals.Changes(ctx, ids)
}

// count reads how many jobs are newer than the first row of a list.
func (h *Hub) count(ctx context.Context, l List) (newerMessage, error) {
	ctx, cancel := context.WithTimeout(ctx, queryLimit)
	defer cancel()

	n, more, err := h.totals.Newer(ctx, l.Filter, l.First, newerLimit)

	return newerMessage{"newer", n, more}, err
}

// encode returns a message as JSON.
func encode(v any) []byte {
	data, err := json.Marshal(v)
	if err != nil { // unreachable: the messages are strings, numbers and maps of them
		panic(fmt.Sprintf("live.encode(%T): %v", v, err))
	}

	return data
}

// peer returns the address from which the connection of a request came. It ignores the headers.
func peer(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}

	return host
}
