package live

import (
	"context"
	"errors"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/job"
)

// client is one open websocket. One goroutine reads, another writes.
type client struct {
	hub  *Hub
	conn *websocket.Conn
	ip   string
	sub  subscription // guarded by the hub's mu

	// What wakes the goroutine that writes, and what ends it.
	wake chan struct{}
	gone chan struct{} // closed when reading has ended

	// Whether the client may go on.
	valid   func(context.Context) bool // whether its pass still is; nil: always
	recheck chan struct{}              // one slot: ask now

	// What was written last. Only the goroutine that writes uses these.
	last kind
	seq  int64 // of the totals

	// What is to be written.
	mu  sync.Mutex
	box mailbox
}

// mailbox is what a client has not been told yet: one slot for each thing.
type mailbox struct {
	counters bool
	page     bool     // something changed that is neither a job nor a count
	again    []string // ids to look up in the store
	rows     map[string]job.Change
	list     *List        // whose newer jobs are to be counted in the store, once
	newer    newerMessage // the jobs since the page was drawn, as far as they are counted
	counted  bool         // that is another number than was sent last
}

// kind is a message's kind; each has its own slot.
type kind int

const kinds = redrawn

const (
	none kind = iota
	counters
	rows
	newer
	redrawn
)

// newClient returns a client whose first message is the totals.
func newClient(h *Hub, conn *websocket.Conn, ip string, p Pass) *client {
	return &client{
		hub: h, conn: conn, ip: ip,
		wake: make(chan struct{}, 1), gone: make(chan struct{}),
		valid: p.Valid, recheck: make(chan struct{}, 1),
		seq: -1, box: mailbox{counters: true},
	}
}

// patch takes the newest change of a row that the client shows.
func (c *client) patch(change job.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.box.rows == nil {
		c.box.rows = map[string]job.Change{}
	}

	c.box.rows[change.ID] = change
}

// redraw says that the page is no longer what the server would draw.
func (c *client) redraw() {
	c.mu.Lock()
	c.box.page = true
	c.mu.Unlock()
	signal(c.wake)
}

// addNewer counts jobs that have entered the list that the client shows.
func (c *client) addNewer(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.box.newer.Count += n
	c.box.counted = true
}

// touch says that the totals have moved; again, that row changes were lost.
func (c *client) touch(again bool) {
	c.mu.Lock()

	c.box.counters = true
	if again {
		c.box.again = c.sub.ids
	}
	c.mu.Unlock()
	signal(c.wake)
}

// renew empties the mailbox for a new subscription. Its rows are looked up
// once, for what happened between the page and the subscription, and so is the
// number of newer jobs.
func (c *client) renew(s subscription) {
	c.mu.Lock()

	c.box = mailbox{counters: c.box.counters, page: c.box.page, again: s.ids, newer: newerMessage{Type: "newer"}}
	if s.newer && s.list.First != (filter.Cursor{}) {
		c.box.list = &s.list
	}
	c.mu.Unlock()
	signal(c.wake)
}

// read takes subscriptions until the connection ends, and then cleans up.
func (c *client) read() {
	defer c.hub.leave(c)
	defer c.conn.Close()
	defer close(c.gone)

	c.conn.SetReadLimit(readLimit)
	c.alive()
	c.conn.SetPongHandler(func(string) error { c.alive(); return nil })

	for {
		_, data, err := c.conn.ReadMessage()
		if err != nil {
			return
		}

		s, err := decode(data)
		switch {
		case errors.Is(err, errIgnored):
		case err != nil:
			c.closeWith(websocket.ClosePolicyViolation, err.Error())
			return
		default:
			c.hub.subscribe(c, s)
		}
	}
}

// alive expects the next sign of life within two pings. An error would end the
// next read, as it should.
func (c *client) alive() { _ = c.conn.SetReadDeadline(time.Now().Add(2 * pingEvery)) }

// write empties the mailbox, one message at a time, until the connection ends.
func (c *client) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()

	for {
		var pause <-chan time.Time

		// After a message comes a pause, in which nothing wakes it: what changes meanwhile is one
		// message, too.
		wake := c.wake
		data, err := c.next()

		if data != nil {
			err = c.send(data)
			pause, wake = time.After(pace), nil
		}

		if err != nil {
			c.conn.Close() // ends read
			return
		}

		if !c.wait(ping.C, pause, wake) {
			return
		}
	}
}

// wait returns true when it is time for another look into the mailbox, false
// when the connection has ended.
func (c *client) wait(ping, pause <-chan time.Time, wake <-chan struct{}) bool {
	for {
		select {
		case <-c.gone:
			return false
		case <-c.hub.done:
			c.closeWith(websocket.CloseGoingAway, goingAway)
			return false
		case <-c.recheck:
			if !c.allowed() {
				return false
			}
		case <-ping:
			if !c.allowed() {
				return false
			}

			if err := c.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeLimit)); err != nil {
				c.conn.Close()
				return false
			}
		case <-pause:
			return true
		case <-wake:
			return true
		}
	}
}

// allowed reports whether the client may go on. One that may not is closed.
func (c *client) allowed() bool {
	if c.valid == nil {
		return true
	}

	ctx, cancel := context.WithTimeout(context.Background(), passLimit)
	defer cancel()

	if c.valid(ctx) {
		return true
	}

	c.closeWith(websocket.ClosePolicyViolation, passOver)
	c.conn.Close()

	return false
}

// next is the next message with something new to say, the kinds in turn; nil
// when the mailbox is empty. Rows that cannot be read end the connection: the
// page comes back later and asks again.
func (c *client) next() ([]byte, error) {
	for {
		m := c.take()
		c.last = m.kind

		switch m.kind {
		case none:
			return nil, nil
		case newer:
			return encode(c.newerMessage(m.list, m.newer)), nil
		case redrawn:
			return encode(pageMessage{"page"}), nil
		case rows:
			data, err := c.rowsMessage(m.again, m.rows)
			if data != nil || err != nil {
				return data, err
			}
		case counters:
			totals := c.hub.counters()
			if totals.seq > c.seq {
				c.seq = totals.seq
				return totals.data, nil
			}
		}
	}
}

// taken is one slot's content.
type taken struct {
	kind  kind
	again []string
	rows  map[string]job.Change
	list  *List
	newer newerMessage
}

// take empties one slot of the mailbox: the first full one after the last.
func (c *client) take() taken {
	c.mu.Lock()
	defer c.mu.Unlock()

	b := &c.box
	for i := range kinds {
		switch k := (c.last+i)%kinds + 1; {
		case k == counters && b.counters:
			b.counters = false
			return taken{kind: k}
		case k == rows && len(b.rows)+len(b.again) > 0:
			t := taken{kind: k, again: b.again, rows: b.rows}
			b.again, b.rows = nil, nil
			return t
		case k == newer && b.list != nil:
			t := taken{kind: k, list: b.list}
			b.list, b.counted, b.newer.Count = nil, false, 0 // the store counts these, too
			return t
		case k == newer && b.counted:
			b.counted = false
			return taken{kind: k, newer: b.newer}
		case k == redrawn && b.page:
			b.page = false
			return taken{kind: k}
		}
	}

	return taken{}
}

// rowsMessage says how rows stand. What the store answers is newer than the
// changes that were taken before it was asked.
func (c *client) rowsMessage(ids []string, changes map[string]job.Change) ([]byte, error) {
	found, err := c.hub.look(context.Background(), ids)
	if err != nil {
		c.hub.opts.Log.Warn("live rows could not be read", "error", err)
		c.closeWith(websocket.CloseTryAgainLater, "the rows could not be read in time")
		return nil, err
	}

	if changes == nil {
		changes = map[string]job.Change{}
	}

	for _, change := range found {
		changes[change.ID] = change
	}

	if len(changes) == 0 {
		return nil, nil
	}

	// In an order that is the same each time.
	var m jobsMessage
	m.Type = "job"
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		m.Jobs = append(m.Jobs, newRow(changes[id]))
	}

	return encode(m), nil
}

// newerMessage says how many jobs are newer than the page. When the store does
// not know in time, it is those that came since the subscription.
func (c *client) newerMessage(list *List, counted newerMessage) newerMessage {
	if list == nil {
		return counted
	}

	found, err := c.hub.count(context.Background(), *list)
	if err != nil {
		c.hub.opts.Log.Warn("newer jobs could not be counted", "error", err)
	}

	c.mu.Lock()
	defer c.mu.Unlock()

	// Some may have come since the mailbox was emptied.
	found.Count += c.box.newer.Count
	c.box.newer = found
	c.box.counted = false

	return found
}

// send writes one message. A client that does not take it in time is given up.
func (c *client) send(data []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return c.conn.WriteMessage(websocket.TextMessage, data)
}

// closeWith says why the connection is closed. A client that cannot read it is
// closed anyway.
func (c *client) closeWith(code int, text string) {
	_ = c.conn.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(code, clip.Text(text, 120)), time.Now().Add(closeLimit))
}
