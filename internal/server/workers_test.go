package server

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/job"
)

type workersSaid struct {
	Workers []struct {
		Name    string
		Since   string
		Quiet   bool
		QuietBy string `json:"quiet_by"`
		Queues  []struct {
			Name             string
			Workers, Running int
		}
		Jobs []struct {
			ID, Worker string
			LeaseUntil string `json:"lease_until"`
			Waits      bool
		}
		Stuck []struct{ ID string }
	}
}

// awake notes what the server tells the worker.
func awake(log *[]bool) func(*Options) {
	return func(o *Options) {
		o.Engine.Worker, o.Engine.Pause = "shop-1", func(on bool) { *log = append(*log, on) }
		o.Engine.Stuck = func() []job.Stuck {
			return []job.Stuck{{Job: job.Job{Token: job.Token{ID: unknownID}, Type: "deaf"}, Since: time.Now()}}
		}
		o.Engine.Waiting = func(string) (since, until time.Time, ok bool) { return time.Now(), time.Now(), true }
	}
}

func TestWorkers_TellWhatTheyDo(t *testing.T) {
	var log []bool
	h := start(t, awake(&log))
	id := h.enqueue(`{"type":"order.ship","queue":"orders"}`)
	h.claim("orders")
	w := decode[workersSaid](t, h.get("/api/v1/workers").want(t, http.StatusOK)).Workers[0]
	if w.Name != "shop-1" || w.Since == "" || w.Quiet || len(w.Jobs) != 1 || w.Jobs[0].ID != id || !w.Jobs[0].Waits || w.Jobs[0].LeaseUntil == "" || len(w.Stuck) != 1 {
		t.Errorf("the worker is %+v", w)
	}
	if q := w.Queues[slices.IndexFunc(w.Queues, func(q struct {
		Name             string
		Workers, Running int
	}) bool {
		return q.Name == "orders"
	})]; q.Workers != 20 || q.Running != 1 {
		t.Errorf("the queue is %+v", q)
	}
	text := h.get("/workers").want(t, http.StatusOK).dom(t).text()
	for _, want := range []string{"shop-1", "order.ship", "deaf", "1 of 20"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

func TestWorkers_AreQuietUntilTheyAreResumed(t *testing.T) {
	var log []bool
	h := start(t, awake(&log))
	h.form("/workers/quiet", "").want(t, http.StatusSeeOther)
	h.post("/api/v1/workers/quiet", "{}").want(t, http.StatusOK) // already
	w := decode[workersSaid](t, h.get("/api/v1/workers").want(t, http.StatusOK)).Workers[0]
	if !w.Quiet || w.QuietBy != "local user (127.0.0.1)" {
		t.Errorf("the worker is %+v", w)
	}
	if text := h.get("/policies").dom(t).text(); !strings.Contains(text, "The worker is quiet.") {
		t.Error("another page does not say that the worker is quiet")
	}
	if got := decode[workersSaid](t, h.post("/api/v1/workers/resume", "").want(t, http.StatusOK)); got.Workers[0].Quiet {
		t.Error("it is still quiet")
	}
	h.form("/workers/resume", "", "Accept", "application/json").want(t, http.StatusOK)
	if !slices.Equal(log, []bool{true, false}) {
		t.Errorf("the worker was told %v, want quiet once and awake once", log)
	}
	h.get("/workers/quiet").want(t, http.StatusMethodNotAllowed)
	h.post("/api/v1/workers/quiet", `{"a":1}`).want(t, http.StatusUnprocessableEntity)
}

func TestWorkers_PagesDoNotWaitForTheAuditLog(t *testing.T) {
	changing, changed := make(chan struct{}), make(chan struct{})
	h := start(t, func(o *Options) {
		o.Engine.Pause = func(on bool) {
			if !on { // a user changes it, and that takes its time
				changing <- struct{}{}
				<-changed
			}
		}
	})
	h.form("/workers/quiet", "").want(t, http.StatusSeeOther)
	var resuming sync.WaitGroup
	resuming.Go(func() { h.form("/workers/resume", "") })
	<-changing
	if text := h.get("/policies").want(t, http.StatusOK).dom(t).text(); !strings.Contains(text, "The worker is quiet.") {
		t.Error("the page does not say that the worker is quiet")
	}
	close(changed)
	resuming.Wait()
}
