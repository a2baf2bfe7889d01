package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/job"
)

// mill is the whole program in this process, with handlers that fail as long
// as a test wants them to.
type mill struct {
	t     *testing.T
	app   *app
	url   string
	fixed atomic.Bool // the handlers succeed

	accepted atomic.Bool // the dead letters of the queue "sent"
}

const millConfig = `
policy: {max_attempts: 1, jitter: false}
queues:
  grind: {workers: 50, policy: {strategy: constant, initial_interval: 200ms, max_attempts: 10000}}
  sieve: {workers: 20}
  rest: {workers: 20, policy: {strategy: constant, initial_interval: 1h, max_attempts: 2}}
rules:
  after_failure:
    - {name: one-more, when: job.type == "corn.again" && attempt.number == 1, action: retry, max_attempts: 2, delay: 0s}
`

func startMill(t *testing.T) *mill { return startMillOn(t, testParts(t).db) }

func startMillOn(t *testing.T, db string) *mill {
	t.Helper()
	m := &mill{t: t}
	p := testParts(t)
	p.db, p.sender = db, m
	settings, err := config.Parse("the mill", []byte(millConfig))
	if err != nil {
		t.Fatal(err)
	}
	p.config, p.relaxed, p.handlers = settings, true, m.handler
	if m.app, err = startApp(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	m.url = m.app.url()
	t.Cleanup(func() {
		if err := m.app.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Kept says that one queue sends its dead letters away.
func (m *mill) Kept(queue string) (job.Delivery, bool) { return job.Delivery{}, queue != "sent" }

// Deliver is the receiver of those.
func (m *mill) Deliver(context.Context, job.Job, job.DeadLetter) job.Delivery {
	if !m.accepted.Load() {
		return job.Delivery{Problem: "the receiver is away"}
	}
	return job.Delivery{ForwardedTo: "https://letters.example.org", ForwardedAt: time.Now().UTC()}
}

func (m *mill) handler(typ string) (engine.Handler, bool) {
	if typ == "stone.stays" { // no handler knows it: it waits
		return nil, false
	}
	return func(_ context.Context, j job.Job) error {
		if j.Type == "corn.spoiled" {
			return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "corn.Spoiled", Message: "nothing can be ground from it"}}
		}
		if m.fixed.Load() {
			return nil
		}
		return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "mill.Jammed", Message: "the stone does not turn"}}
	}, true
}

// enqueue sends count jobs and returns their ids.
func (m *mill) enqueue(count int, typ, queue string) []string {
	one := fmt.Sprintf(`{"type":%q,"queue":%q,"payload":{"corn":1}}`, typ, queue)
	body := `{"jobs":[` + strings.Repeat(one+",", count-1) + one + `]}`
	response, err := http.Post(m.url+"/api/v1/jobs/batch", "application/json", strings.NewReader(body))
	if err != nil {
		m.t.Error(err)
		return nil
	}
	defer response.Body.Close()
	var answer struct{ Jobs []struct{ ID string } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusCreated {
		m.t.Errorf("a batch was answered with %s, %v", response.Status, err)
	}
	var ids []string
	for _, j := range answer.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// act posts to a job over the API, as another client would.
func (m *mill) act(id, action, body string) {
	m.t.Helper()
	response, err := http.Post(m.url+"/api/v1/jobs/"+id+"/"+action, "application/json", bytes.NewBufferString(body))
	if err != nil {
		m.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		m.t.Fatalf("%s of %s was answered with %s", action, id, response.Status)
	}
}

// letters fails count jobs for good and returns when all are dead letters.
func (m *mill) letters(count int) []string {
	m.t.Helper()
	return m.lettersOf(count, "corn.ground")
}

// lettersOf does so with jobs of a type; those of corn.spoiled always fail.
func (m *mill) lettersOf(count int, typ string) []string {
	m.t.Helper()
	before := get[struct{ Counters totals }](m.t, m.url+"/live").Counters.States["dead_letter"]
	ids := m.enqueue(count, typ, "sieve")
	(&process{t: m.t, url: m.url}).until(func(now totals) bool { return now.States["dead_letter"] >= before+count })
	return ids
}

// news enqueues jobs at a steady rate until the returned function is called.
func (m *mill) news(perSecond int, typ, queue string) (stop func()) {
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		beat := time.NewTicker(time.Second / 4)
		defer beat.Stop()
		for {
			select {
			case <-quit:
				return
			case <-beat.C:
				m.enqueue(perSecond/4, typ, queue)
			}
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { close(quit); running.Wait() }) }
	m.t.Cleanup(stop)
	return stop
}

// operate begins an operation on all dead letters at a rate, past its preview,
// and returns its page.
func (m *mill) operate(rate float64) (path string) {
	m.t.Helper()
	return m.change("", fmt.Sprintf(`{"kind":"replay","filter":"state:dead_letter","rate":%v,"canary":0,"start":true}`, rate))
}

// change posts to the operations over the API, as another client would, and returns the
// page of the operation.
func (m *mill) change(path, body string) string {
	m.t.Helper()
	response, err := http.Post(m.url+"/api/v1/operations"+path, "application/json", bytes.NewBufferString(body))
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Operation struct{ ID int } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Operation.ID == 0 {
		m.t.Fatalf("%s was answered with %s, %v", body, response.Status, err)
	}
	return "/operations/" + strconv.Itoa(answer.Operation.ID)
}

// starts waits until an operation runs: its scope is collected by then.
func (m *mill) starts(path string) { m.leaves(path, "collecting") }

// leaves waits until an operation is in another state.
func (m *mill) leaves(path, state string) {
	m.t.Helper()
	for get[shownOperation](m.t, m.url+"/api/v1"+path).Operation.State == state {
	}
}

// pause stops the claiming of a queue's jobs.
func (m *mill) pause(queue string) {
	m.t.Helper()
	response, err := http.Post(m.url+"/api/v1/queues/"+queue+"/pause", "application/json", http.NoBody)
	if err != nil {
		m.t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		m.t.Fatalf("pause %s: %s, %v", queue, response.Status, err)
	}
}

// settles waits until there are so many dead letters.
func (m *mill) settles(dead int) {
	m.t.Helper()
	(&process{t: m.t, url: m.url}).until(func(now totals) bool { return now.States["dead_letter"] == dead })
}
