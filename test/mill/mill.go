// Package mill starts the whole program in the process of a test, with handlers that the test
// lets fail and succeed.
package mill

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

	"redrive/internal/app"
	"redrive/internal/app/apptest"
	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/job"
	"redrive/test/rig"
)

// Mill is a program whose handlers fail as long as a test wants them to.
type Mill struct {
	T     *testing.T
	app   *app.App
	URL   string
	Fixed atomic.Bool // the handlers succeed

	Accepted atomic.Bool // the dead letters of the queue "sent"
}

const configuration = `
policy: {max_attempts: 1, jitter: false}
queues:
  grind: {workers: 50, policy: {strategy: constant, initial_interval: 200ms, max_attempts: 10000}}
  sieve: {workers: 20}
  rest: {workers: 20, policy: {strategy: constant, initial_interval: 1h, max_attempts: 2}}
rules:
  after_failure:
    - {name: one-more, when: job.type == "corn.again" && attempt.number == 1, action: retry, max_attempts: 2, delay: 0s}
`

// Start starts a mill on a new database.
func Start(t *testing.T) *Mill { return StartOn(t, apptest.Parts(t).DB) }

// StartOn starts a mill on a database, until the end of the test.
func StartOn(t *testing.T, db string) *Mill {
	t.Helper()
	m := &Mill{T: t}
	p := apptest.Parts(t)
	p.DB, p.Sender = db, m
	settings, err := config.Parse("the mill", []byte(configuration))
	if err != nil {
		t.Fatal(err)
	}
	p.Config, p.Relaxed, p.Handlers = settings, true, m.handler
	if m.app, err = app.Start(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	m.URL = m.app.URL()
	t.Cleanup(func() {
		if err := m.app.Stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Kept says that one queue sends its dead letters away.
func (m *Mill) Kept(queue string) (job.Delivery, bool) { return job.Delivery{}, queue != "sent" }

// Deliver is the receiver of those.
func (m *Mill) Deliver(context.Context, job.Job, job.DeadLetter) job.Delivery {
	if !m.Accepted.Load() {
		return job.Delivery{Problem: "the receiver is away"}
	}
	return job.Delivery{ForwardedTo: "https://letters.example.org", ForwardedAt: time.Now().UTC()}
}

func (m *Mill) handler(typ string) (engine.Handler, bool) {
	if typ == "stone.stays" { // no handler knows it: it waits
		return nil, false
	}
	return func(_ context.Context, j job.Job) error {
		if j.Type == "corn.spoiled" {
			return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "corn.Spoiled", Message: "nothing can be ground from it"}}
		}
		if m.Fixed.Load() {
			return nil
		}
		return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "mill.Jammed", Message: "the stone does not turn"}}
	}, true
}

// Enqueue sends count jobs and returns their ids.
func (m *Mill) Enqueue(count int, typ, queue string) []string {
	one := fmt.Sprintf(`{"type":%q,"queue":%q,"payload":{"corn":1}}`, typ, queue)
	body := `{"jobs":[` + strings.Repeat(one+",", count-1) + one + `]}`
	response, err := http.Post(m.URL+"/api/v1/jobs/batch", "application/json", strings.NewReader(body))
	if err != nil {
		m.T.Error(err)
		return nil
	}
	defer response.Body.Close()
	var answer struct{ Jobs []struct{ ID string } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusCreated {
		m.T.Errorf("a batch was answered with %s, %v", response.Status, err)
	}
	var ids []string
	for _, j := range answer.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// Act posts to a job over the API, as another client would.
func (m *Mill) Act(id, action, body string) {
	m.T.Helper()
	response, err := http.Post(m.URL+"/api/v1/jobs/"+id+"/"+action, "application/json", bytes.NewBufferString(body))
	if err != nil {
		m.T.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		m.T.Fatalf("%s of %s was answered with %s", action, id, response.Status)
	}
}

// Letters lets count jobs fail permanently and returns when all are dead letters.
func (m *Mill) DeadLetters(count int) []string {
	m.T.Helper()
	return m.DeadLettersOf(count, "corn.ground")
}

// DeadLettersOf does so with jobs of a type; those of corn.spoiled always fail.
func (m *Mill) DeadLettersOf(count int, typ string) []string {
	m.T.Helper()
	before := rig.Get[struct{ Counters rig.Totals }](m.T, m.URL+"/live").Counters.States["dead_letter"]
	ids := m.Enqueue(count, typ, "sieve")
	(&rig.Process{T: m.T, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["dead_letter"] >= before+count })
	return ids
}

// Arrivals enqueues jobs at a steady rate until the returned function is called.
func (m *Mill) Arrivals(perSecond int, typ, queue string) (stop func()) {
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
				m.Enqueue(perSecond/4, typ, queue)
			}
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { close(quit); running.Wait() }) }
	m.T.Cleanup(stop)
	return stop
}

// Operate begins an operation on all dead letters at a rate, past its preview,
// and returns its page.
func (m *Mill) Operate(rate float64) (path string) {
	m.T.Helper()
	return m.Change("", fmt.Sprintf(`{"kind":"replay","filter":"state:dead_letter","rate":%v,"canary":0,"start":true}`, rate))
}

// Change posts to the operations over the API, as another client would, and returns the
// page of the operation.
func (m *Mill) Change(path, body string) string {
	m.T.Helper()
	response, err := http.Post(m.URL+"/api/v1/operations"+path, "application/json", bytes.NewBufferString(body))
	if err != nil {
		m.T.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct{ Operation struct{ ID int } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || answer.Operation.ID == 0 {
		m.T.Fatalf("%s was answered with %s, %v", body, response.Status, err)
	}
	return "/operations/" + strconv.Itoa(answer.Operation.ID)
}

// Starts waits until an operation runs: its scope is collected by then.
func (m *Mill) Starts(path string) { m.Leaves(path, "collecting") }

// Leaves waits until an operation is in another state.
func (m *Mill) Leaves(path, state string) {
	m.T.Helper()
	for string(rig.Get[rig.OperationNow](m.T, m.URL+"/api/v1"+path).Operation.State) == state {
	}
}

// Pause stops the claiming of a queue's jobs.
func (m *Mill) Pause(queue string) {
	m.T.Helper()
	response, err := http.Post(m.URL+"/api/v1/queues/"+queue+"/pause", "application/json", http.NoBody)
	if err != nil {
		m.T.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		m.T.Fatalf("pause %s: %s, %v", queue, response.Status, err)
	}
}

// Settles waits until there are so many dead letters.
func (m *Mill) Settles(dead int) {
	m.T.Helper()
	(&rig.Process{T: m.T, URL: m.URL}).Until(func(now rig.Totals) bool { return now.States["dead_letter"] == dead })
}
