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

// client is one open websocket. One goroutine reads from it, and another writes to it.
type client struct {
	hub  *Hub
	conn *websocket.Conn
	ip   string
	sub  subscription // guarded by the mutex of the hub

	wake chan struct{} // has an element if the goroutine that writes should look into the mailbox
	gone chan struct{} // closed when reading has ended

	// Whether the client may stay connected.
	valid   func(context.Context) bool // see Pass.Valid; nil: it may
	recheck chan struct{}              // has an element if valid should be called now

	// What was written last. Only the goroutine that writes uses these.
	last kind
	seq  int64 // of the last totals

	// What is to be written.
	mu  sync.Mutex
	box mailbox
}

// mailbox is what a client has not been sent yet.
type mailbox struct {
	counters bool                  // there may be newer totals
	page     bool                  // the page has to load itself again
	again    []string              // the ids of rows to look up in the store
	rows     map[string]job.Change // the newest change of each row
	list     *List                 // the list whose newer jobs are to be counted in the store; nil: none
	newer    newerMessage          // how many jobs are newer than the page, as far as is known
	counted  bool                  // newer was not sent yet
}

// kind is a kind of message.
type kind int

const kinds = redrawn

const (
	none kind = iota
	counters
	rows
	newer
	redrawn
)

// newClient returns a client whose first message will be the totals.
func newClient(h *Hub, conn *websocket.Conn, ip string, p Pass) *client {
	return &client{
		hub: h, conn: conn, ip: ip,
		wake: make(chan struct{}, 1), gone: make(chan struct{}),
		valid: p.Valid, recheck: make(chan struct{}, 1),
		seq: -1, box: mailbox{counters: true},
	}
}

// patch puts the newest change of a row into the mailbox. The caller calls touch afterwards, which
// wakes the goroutine that writes.
func (c *client) patch(change job.Change) {
	c.mu.Lock()
	defer c.mu.Unlock()

	if c.box.rows == nil {
		c.box.rows = map[string]job.Change{}
	}

	c.box.rows[change.ID] = change
}

// redraw makes the client tell its page to load itself again.
func (c *client) redraw() {
	c.mu.Lock()
	c.box.page = true
	c.mu.Unlock()
	signal(c.wake)
}

// addNewer adds to the number of newer jobs. The caller calls touch afterwards.
func (c *client) addNewer(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()

	c.box.newer.Count += n
	c.box.counted = true
}

// touch makes the client write what is in its mailbox, and the newest totals. again says that changes
// were lost, so that all rows have to be looked up.
func (c *client) touch(again bool) {
	c.mu.Lock()

	c.box.counters = true
	if again {
		c.box.again = c.sub.ids
	}
	c.mu.Unlock()
	signal(c.wake)
}

// renew empties the mailbox for a new subscription. What happened between the drawing of the page and
// the subscription is not in it, so the rows and the number of newer jobs are looked up once.
func (c *client) renew(s subscription) {
	c.mu.Lock()

	c.box = mailbox{counters: c.box.counters, page: c.box.page, again: s.ids, newer: newerMessage{Type: "newer"}}
	if s.newer && s.list.First != (filter.Cursor{}) {
		c.box.list = &s.list
	}
	c.mu.Unlock()
	signal(c.wake)
}

// read accepts subscriptions until the connection ends, and then removes the client.
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

// alive extends the deadline of the next read: a client has to answer one of two pings. Its error is
// ignored, because the next read would return it.
func (c *client) alive() { _ = c.conn.SetReadDeadline(time.Now().Add(2 * pingEvery)) }

// write sends what is in the mailbox, one message at a time, until the connection ends.
func (c *client) write() {
	ping := time.NewTicker(pingEvery)
	defer ping.Stop()

	for {
		var pause <-chan time.Time

		// A message is followed by a pause, during which wake is ignored: what changes meanwhile
		// becomes a single message.
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

// wait returns true when it is time to look into the mailbox again, and false when the connection has
// ended. Meanwhile it sends pings, and checks whether the client may stay.
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

// allowed reports whether the client may stay connected. If not, it closes the connection.
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

// next returns the next message, or nil if the mailbox has nothing new. The kinds of messages take
// turns. If rows cannot be read, next returns an error, which ends the connection: the page will
// connect again.
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

// taken is what was taken out of a mailbox for one message.
type taken struct {
	kind  kind
	again []string
	rows  map[string]job.Change
	list  *List
	newer newerMessage
}

// take takes what one message needs out of the mailbox: for the first kind, after the one that was
// sent last, for which there is something.
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
			b.list, b.counted, b.newer.Count = nil, false, 0 // the count of the store will include those of newer
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

// rowsMessage returns a message with these changes and with the rows that it looks up. A row that is
// looked up replaces its change, which is older. The message is nil if there are no rows.
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

	// Sort the rows, so that the same rows always make the same message.
	var m jobsMessage
	m.Type = "job"
	for _, id := range slices.Sorted(maps.Keys(changes)) {
		m.Jobs = append(m.Jobs, newRow(changes[id]))
	}

	return encode(m), nil
}

// newerMessage returns a message with the number of jobs that are newer than the page. It is counted,
// or the number that the store returns for a list. If the store does not answer in time, the number
// has only the jobs that came since the subscription.
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

	// Add the jobs that have come since take.
	found.Count += c.box.newer.Count
	c.box.newer = found
	c.box.counted = false

	return found
}

// send writes one message. It returns an error if the client does not accept it within writeLimit.
func (c *client) send(data []byte) error {
	if err := c.conn.SetWriteDeadline(time.Now().Add(writeLimit)); err != nil {
		return err
	}
	return c.conn.WriteMessage(websocket.TextMessage, data)
}

// closeWith tells the client why the connection will be closed. Errors are ignored, because the
// connection will be closed in any case.
func (c *client) closeWith(code int, text string) {
	_ = c.conn.WriteControl(websocket.CloseMessage,
		websocket.FormatCloseMessage(code, clip.Text(text, 120)), time.Now().Add(closeLimit))
}
