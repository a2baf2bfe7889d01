package live

import (
	"encoding/json"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gorilla/websocket"

	"redrive/internal/filter"
	"redrive/internal/job"
)

const (
	idA = "0197f000-0000-7000-8000-00000000000a"
	idB = "0197f000-0000-7000-8000-00000000000b"
	idC = "0197f000-0000-7000-8000-00000000000c"
)

func TestHub_TotalsComeFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.commit(h.hub, moved(idA, job.Retryable, 1))
		h.commit(h.hub, moved(idB, job.Retryable, 1))
		m := h.dial(t).next()
		if m.Type != "counters" || m.Seq != 2 || m.Failed != 2 || m.States["retryable"] != 2 {
			t.Errorf("first message %+v, want the totals as they are now", m)
		}
		if _, ok := m.States["dlq_failed"]; !ok || len(m.States) != len(job.Statuses()) {
			t.Errorf("states %v, want every status, also at zero", m.States)
		}
	})
}

func TestHub_CountersAreAbsoluteMonotoneAndPaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		stop := h.storm(10_000, idA, idB)
		defer stop()
		begin, last := time.Now(), int64(-1)
		var n int
		for ; time.Since(begin) < 10*time.Second; n++ {
			m := p.next()
			if m.Seq <= last || m.Failed != m.Seq {
				t.Fatalf("seq %d after %d, jobs_failed %d: want rising and absolute", m.Seq, last, m.Failed)
			}
			last = m.Seq
		}
		if n < 38 || n > 42 {
			t.Errorf("%d messages in 10 s under 10,000 changes/s, want 4 a second", n)
		}
	})
}

func TestHub_EveryKindSharesTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		p.subscribe(true, `{"state":"retryable"}`, idA)
		stop := h.storm(10_000, idA, idB)
		defer stop()
		begin, kinds := time.Now(), map[string]int{}
		for time.Since(begin) < 12*time.Second {
			kinds[p.next().Type]++
		}
		all := kinds["counters"] + kinds["job"] + kinds["newer"]
		if all > 50 || kinds["counters"] < 14 || kinds["job"] < 14 || kinds["newer"] < 14 {
			t.Errorf("messages in 12 s: %v, want 4 a second, each kind in turn", kinds)
		}
	})
}

func TestHub_RowsOnlyForSubscribedIDs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.commit(h.hub, moved(idA, job.Active, 1))
		p := h.dial(t)
		p.subscribe(false, `{}`, idA, idC)
		first := p.nextOf("job")
		if len(first.Jobs) != 1 || first.Jobs[0].ID != idA || first.Jobs[0].State != job.Active {
			t.Fatalf("first rows %+v, want A as the store knows it", first.Jobs)
		}
		for i := range 50 {
			h.commit(h.hub, moved(idB, job.Retryable, i), moved(idA, job.Retryable, i))
		}
		synctest.Wait()
		m := p.nextOf("job")
		if len(m.Jobs) != 1 || m.Jobs[0].ID != idA || m.Jobs[0].Attempts != 49 || m.Jobs[0].MaxAttempts != 3 {
			t.Errorf("rows %+v, want A's newest change alone", m.Jobs)
		}
	})
}

func TestHub_NewSubscriptionReplacesTheOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		p.subscribe(true, `{}`, idA)
		p.subscribe(false, `{}`, idB)
		synctest.Wait()
		h.commit(h.hub, moved(idA, job.Retryable, 1))
		h.commit(h.hub, moved(idB, job.Retryable, 1))
		if m := p.nextOf("job"); len(m.Jobs) != 1 || m.Jobs[0].ID != idB {
			t.Errorf("rows %+v, want B alone", m.Jobs)
		}
		if n := len(h.hub.rows) + len(h.hub.newer); n != 1 {
			t.Errorf("%d entries in the index, want 1", n)
		}
	})
}

func TestHub_NewerCountsWhatEntersTheFilter(t *testing.T) {
	enqueued := job.Change{Token: job.Token{ID: idB, Run: 1}, Queue: "mail", Type: "email.send", State: job.Available}
	deadLetter := job.Change{Token: job.Token{ID: idB, Run: 1, Execution: 3}, Queue: "mail", Type: "email.send",
		State: job.Discarded, DeadLetter: job.DeadLetterStored}
	tests := []struct {
		filter string
		change job.Change
		counts bool
	}{
		{`{}`, enqueued, true},
		{`{}`, moved(idB, job.Active, 1), false},
		{`{"state":"retryable"}`, moved(idB, job.Retryable, 1), true},
		{`{"state":"retryable"}`, moved(idB, job.Active, 1), false},
		{`{"state":"retryable","queue":"mail"}`, moved(idB, job.Retryable, 1), true},
		{`{"state":"retryable","queue":"other"}`, moved(idB, job.Retryable, 1), false},
		{`{"state":"retryable","type":"email.*"}`, moved(idB, job.Retryable, 1), true},
		{`{"state":"retryable","type":"sms.*"}`, moved(idB, job.Retryable, 1), false},
		{`{"state":"dead_letter"}`, deadLetter, true},
		{`{"state":"discarded"}`, deadLetter, true},
	}
	for _, test := range tests {
		t.Run(test.filter+" "+string(test.change.State), func(t *testing.T) {
			var m struct{ State, Queue, Type string }
			if err := json.Unmarshal([]byte(test.filter), &m); err != nil {
				t.Fatal(err)
			}
			f := filter.Filter{Status: job.Status(m.State), Queue: m.Queue, Type: m.Type}
			if got := entered(f, []job.Change{test.change, test.change}) == 2; got != test.counts {
				t.Errorf("entered %v, want %v", got, test.counts)
			}
		})
	}
}

func TestHub_NewerIsCountedSinceTheSubscription(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		h.commit(h.hub, moved(idA, job.Retryable, 1))
		time.Sleep(time.Second)
		p.next()
		p.subscribe(true, `{"state":"retryable"}`)
		synctest.Wait()
		h.commit(h.hub, moved(idA, job.Retryable, 1), moved(idB, job.Retryable, 1))
		if m := p.nextOf("newer"); m.Count != 2 {
			t.Errorf("count %d, want 2", m.Count)
		}
		h.commit(h.hub, moved(idC, job.Retryable, 1))
		if m := p.nextOf("newer"); m.Count != 3 {
			t.Errorf("count %d, want 3: absolute since the subscription", m.Count)
		}
	})
}

func TestHub_StalledClientDelaysNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.dial(t) // never reads: a pipe has no buffer, the first write stalls
		p := h.dial(t)
		p.next()
		begin := time.Now()
		h.commit(h.hub, moved(idA, job.Retryable, 1))
		if took := time.Since(begin); took != 0 {
			t.Errorf("Changed took %v of the writer's time", took)
		}
		p.next()
		if took := time.Since(begin); took > pace {
			t.Errorf("the other client waited %v, want no more than %v", took, pace)
		}
		time.Sleep(writeLimit)
		synctest.Wait()
		if n := h.hub.size(); n != 1 {
			t.Errorf("%d clients after the write limit, want the stalled one gone", n)
		}
	})
}

func TestHub_OverflowLooksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		p.subscribe(false, `{}`, idA)
		synctest.Wait()
		h.totals.jobs = map[string]job.Change{idA: moved(idA, job.Completed, 7)}
		h.hub.Changed(make([]job.Change, inboxLimit))
		h.hub.Changed(make([]job.Change, 1))
		if m := p.nextOf("job"); m.Jobs[0].Attempts != 7 {
			t.Errorf("row %+v, want what the store knows", m.Jobs[0])
		}
	})
}

func TestHub_ReconnectSeesWhereJobsStand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		p.subscribe(false, `{}`, idA)
		p.next()
		p.Close()
		h.commit(h.hub, moved(idA, job.Completed, 2))
		p = h.dial(t)
		if m := p.next(); m.Seq != 1 {
			t.Errorf("totals at seq %d, want 1", m.Seq)
		}
		p.subscribe(false, `{}`, idA)
		if m := p.nextOf("job"); m.Jobs[0].State != job.Completed {
			t.Errorf("row %+v, want what happened in the gap", m.Jobs[0])
		}
	})
}

func TestHub_UnreadableRowsAskTheClientToComeBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.totals.err = errors.New("no database")
		p := h.dial(t)
		p.subscribe(false, `{}`, idA)
		if code := p.closeCode(); code != websocket.CloseTryAgainLater {
			t.Errorf("closed with %d, want 1013", code)
		}
	})
}

func TestHub_CloseSaysGoingAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		closed := make(chan int)
		go func() { closed <- p.closeCode() }()
		begin := time.Now()
		h.hub.Close()
		if code := <-closed; code != websocket.CloseGoingAway {
			t.Errorf("closed with %d, want 1001", code)
		}
		if took := time.Since(begin); took >= closeLimit {
			t.Errorf("Close took %v with a client that answers", took)
		}
		h.hub.Close() // a second time is fine
	})
}

func TestHub_CloseDoesNotWaitForStalledClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		h.dial(t)
		synctest.Wait()
		begin := time.Now()
		h.hub.Close()
		if took := time.Since(begin); took > 2*closeLimit {
			t.Errorf("Close took %v", took)
		}
	})
}

func TestHub_PingsAndGivesUpOnTheSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		pings := 0
		p.SetPingHandler(func(string) error { pings++; return nil }) // no pong
		begin := time.Now()
		_, _, err := p.ReadMessage()
		for err == nil {
			_, _, err = p.ReadMessage()
		}
		if took := time.Since(begin); took != 2*pingEvery || pings == 0 {
			t.Errorf("ended after %v and %d pings, want after %v", took, pings, 2*pingEvery)
		}
	})
}

func TestHub_PongKeepsAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		go func() {
			for {
				if _, _, err := p.ReadMessage(); err != nil {
					return
				}
			}
		}()
		time.Sleep(time.Hour)
		if n := h.hub.size(); n != 1 {
			t.Errorf("%d clients after an hour, want 1", n)
		}
	})
}

func TestHub_RefusesTooManyClients(t *testing.T) {
	for name, o := range map[string]Options{"in all": {MaxClients: 2}, "per address": {MaxPerIP: 2}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := start(t, o)
				first := h.dial(t)
				h.dial(t)
				_, answer, err := (&websocket.Dialer{NetDialContext: h.connect}).Dial("ws://localhost/live", nil)
				want := map[string]int{"in all": http.StatusServiceUnavailable, "per address": http.StatusTooManyRequests}[name]
				if err == nil || answer.StatusCode != want {
					t.Fatalf("the third client got %v, want %d", answer, want)
				}
				first.Close()
				synctest.Wait()
				h.dial(t)
			})
		})
	}
}

func TestHub_RefusesForeignOrigins(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{CheckOrigin: func(r *http.Request) bool { return r.Header.Get("Origin") == "http://good" }})
		dialer := &websocket.Dialer{NetDialContext: h.connect}
		_, answer, err := dialer.Dial("ws://localhost/live", http.Header{"Origin": {"http://evil"}})
		if err == nil || answer.StatusCode != http.StatusForbidden {
			t.Errorf("evil origin got %v, want 403", answer)
		}
		conn, _, err := dialer.Dial("ws://localhost/live", http.Header{"Origin": {"http://good"}})
		if err != nil {
			t.Fatal(err)
		}
		conn.Close()
	})
}

// size is the number of open websockets.
func (h *Hub) size() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.clients)
}

// A page is told once that it is to be drawn again, however often that was said
// before the page heard of it.
func TestHub_TellsThatPagesAreToBeDrawnAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := start(t, Options{})
		p := h.dial(t)
		if m := p.next(); m.Type != "counters" {
			t.Fatalf("the first message is %q", m.Type)
		}
		h.hub.Redraw()
		h.hub.Redraw()
		if m := p.next(); m.Type != "page" {
			t.Errorf("the message is %q, want page", m.Type)
		}
		h.hub.Changed(nil)
		h.hub.Redraw()
		if m := p.next(); m.Type != "page" {
			t.Errorf("the next message is %q, want page", m.Type)
		}
	})
}
