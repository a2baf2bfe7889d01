package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"go.uber.org/goleak"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/stats"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// totals is the in-memory part of a store: what Snapshot and Changes promise,
// and nothing else.
type totals struct {
	mu   sync.Mutex
	seq  int64
	jobs map[string]job.Change
	err  error
}

func (t *totals) Snapshot() stats.Snapshot {
	t.mu.Lock()
	defer t.mu.Unlock()
	return stats.Snapshot{Seq: t.seq, Totals: stats.Totals{Failed: t.seq}, Depths: stats.Depths{"retryable": t.seq}}
}

func (t *totals) Changes(_ context.Context, ids []string) ([]job.Change, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var found []job.Change
	for _, id := range ids {
		if c, ok := t.jobs[id]; ok {
			found = append(found, c)
		}
	}
	return found, t.err
}

// Newer counts the jobs of a status that changed after the place.
func (t *totals) Newer(_ context.Context, f filter.Filter, than filter.Cursor, limit int) (n int, more bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.jobs {
		if c.Status() == f.Status && c.ChangedAt.After(than.At) {
			n++
		}
	}
	return min(n, limit), n > limit, t.err
}

// commit moves jobs as a store's writer does: first the totals, then the changes.
func (t *totals) commit(h *Hub, changes ...job.Change) {
	t.mu.Lock()
	t.seq++
	for _, c := range changes {
		if t.jobs == nil {
			t.jobs = map[string]job.Change{}
		}
		t.jobs[c.ID] = c
	}
	t.mu.Unlock()
	h.Changed(changes)
}

// house is a hub behind a real HTTP server whose connections are pipes, so
// that it can live in a synctest bubble.
type house struct {
	*totals
	hub   *Hub
	conns chan net.Conn
	done  chan struct{}
}

func start(t *testing.T, o Options) *house {
	t.Helper()
	h := &house{totals: &totals{}, conns: make(chan net.Conn), done: make(chan struct{})}
	h.hub = New(h.totals, o)
	server := &http.Server{Handler: h.hub}
	var serving sync.WaitGroup
	serving.Go(func() {
		if err := server.Serve(h); !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
	t.Cleanup(func() {
		h.hub.Close()
		server.Close()
		serving.Wait()
	})
	return h
}

func (h *house) Accept() (net.Conn, error) {
	select {
	case c := <-h.conns:
		return c, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}

func (h *house) Close() error   { close(h.done); return nil }
func (h *house) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 80} }

func (h *house) connect(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	h.conns <- far
	return near, nil
}

// page is a browser's end of a websocket.
type page struct {
	t *testing.T
	*websocket.Conn
}

func (h *house) dial(t *testing.T) page {
	t.Helper()
	dialer := websocket.Dialer{NetDialContext: h.connect}
	conn, _, err := dialer.Dial("ws://localhost/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return page{t, conn}
}

// message has the fields of every kind of message.
type message struct {
	Type   string `json:"type"`
	Seq    int64  `json:"seq"`
	Failed int64  `json:"jobs_failed"`
	Count  int    `json:"count"`
	Jobs   []row  `json:"jobs"`
	States map[string]int64
}

func (p page) next() message {
	p.t.Helper()
	_, data, err := p.ReadMessage()
	if err != nil {
		p.t.Fatal(err)
	}
	var m message
	if err := json.Unmarshal(data, &m); err != nil {
		p.t.Fatalf("%s: %v", data, err)
	}
	return m
}

// nextOf skips to the next message of a kind.
func (p page) nextOf(kind string) message {
	p.t.Helper()
	for {
		if m := p.next(); m.Type == kind {
			return m
		}
	}
}

func (p page) send(text string) {
	p.t.Helper()
	if err := p.WriteMessage(websocket.TextMessage, []byte(text)); err != nil {
		p.t.Fatal(err)
	}
}

func (p page) subscribe(newer bool, filter string, ids ...string) {
	p.t.Helper()
	list, err := json.Marshal(ids)
	if err != nil {
		p.t.Fatal(err)
	}
	p.send(fmt.Sprintf(`{"type":"subscribe","ids":%s,"filter":%s,"newer":%v}`, list, filter, newer))
}

// closeCode reads until the connection ends and says how it was closed.
func (p page) closeCode() int {
	p.t.Helper()
	for {
		_, _, err := p.ReadMessage()
		var closed *websocket.CloseError
		if errors.As(err, &closed) {
			return closed.Code
		}
		if err != nil {
			p.t.Fatal(err)
		}
	}
}

func moved(id string, state job.State, attempts int) job.Change {
	return job.Change{
		Token: job.Token{ID: id, Run: 1, Execution: attempts}, Queue: "mail", Type: "email.send",
		State: state, Attempts: attempts, MaxAttempts: 3,
	}
}

// storm commits a change of each id in turn, at a steady rate, until the
// returned function is called.
func (h *house) storm(perSecond int, ids ...string) (stop func()) {
	var quit atomic.Bool
	var running sync.WaitGroup
	running.Go(func() {
		for i := 0; !quit.Load(); i++ {
			h.commit(h.hub, moved(ids[i%len(ids)], job.Retryable, i))
			time.Sleep(time.Second / time.Duration(perSecond))
		}
	})
	return func() { quit.Store(true); running.Wait() }
}
