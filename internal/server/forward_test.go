package server

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"redrive/internal/clip"
	"redrive/internal/job"
)

// receiver is where dead letters are sent in these tests.
type receiver struct {
	answer job.Delivery
	asked  []job.DeadLetter
}

func (r *receiver) deliver(_ context.Context, j job.Job, l job.DeadLetter) job.Delivery {
	r.asked = append(r.asked, l)
	return r.answer
}

// refuse makes a job whose dead letter was refused.
func (h *house) refuse() string {
	h.t.Helper()
	id := h.enqueue(`{"type":"order.ship","queue":"orders"}`)
	h.settle("orders", job.Ending{Outcome: job.TimedOut, Error: job.ErrorInfo{Type: "timed_out"}},
		job.Delivery{Problem: "https://dlq.example answered 507 Insufficient Storage"})
	return id
}

func TestForward_StoresADeadLetterThatIsAcceptedNow(t *testing.T) {
	r := &receiver{answer: job.Delivery{ForwardedTo: "https://dlq.example", ForwardedAt: time.Now()}}
	h := start(t, func(o *Options) { o.Engine.Deliver = r.deliver })
	id := h.refuse()
	type shown struct {
		Job         map[string]any
		DeadLetters []map[string]any `json:"dead_letters"`
	}
	before := decode[shown](t, h.get("/api/v1/jobs/"+id))
	if l := before.DeadLetters[0]; before.Job["status"] != "dlq_failed" || l["cause"] != "timed_out" || l["problem"] != "https://dlq.example answered 507 Insufficient Storage" {
		t.Errorf("before: %v, %v", before.Job["status"], l)
	}
	a := h.post("/api/v1/jobs/"+id+"/forward", `{"run":1}`).want(t, http.StatusOK)
	if s := decode[shown](t, a).Job["status"]; s != "dead_letter" || len(r.asked) != 1 || r.asked[0].Run != 1 {
		t.Errorf("the job is %v after %d deliveries", s, len(r.asked))
	}
	l := decode[shown](t, h.get("/api/v1/jobs/"+id)).DeadLetters[0]
	if l["forwarded_to"] != "https://dlq.example" || l["forwarded_at"] == nil || l["problem"] != nil || l["refused"] != nil {
		t.Errorf("the letter is %v", l)
	}
	f := decode[problemAnswer](t, h.post("/api/v1/jobs/"+id+"/forward", `{"run":1}`).want(t, http.StatusConflict))
	if f.Error.Code != "conflict" || len(r.asked) != 1 {
		t.Errorf("the second time: %+v after %d deliveries", f, len(r.asked))
	}
}

// gate is a receiver that answers when it is told to.
type gate struct {
	reached, answer chan struct{}
	sent            atomic.Int64
	ended           atomic.Bool // before it answered
}

func (g *gate) deliver(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
	g.sent.Add(1)
	g.reached <- struct{}{}
	<-g.answer
	g.ended.Store(ctx.Err() != nil)
	return job.Delivery{}
}

func TestForward_IsSharedByAllWhoAskAtOnce(t *testing.T) {
	g := &gate{reached: make(chan struct{}, 20), answer: make(chan struct{})}
	h := start(t, func(o *Options) { o.Engine.Deliver = g.deliver })
	id := h.refuse()
	var callers sync.WaitGroup
	ask := func() {
		a := h.post("/api/v1/jobs/"+id+"/forward", `{"run":1}`)
		if a.StatusCode != http.StatusOK && a.StatusCode != http.StatusConflict { // a caller that came late is told so
			t.Errorf("%d: %s", a.StatusCode, a.body)
		}
	}
	callers.Go(ask)
	<-g.reached
	for range 19 {
		callers.Go(ask)
	}
	close(g.answer)
	callers.Wait()
	if n := g.sent.Load(); n != 1 {
		t.Errorf("it was sent %d times", n)
	}
}

func TestForward_KeepsTheJobWhenItIsRefusedAgain(t *testing.T) {
	r := &receiver{answer: job.Delivery{Problem: "https://dlq.example answered 500."}}
	h := start(t, func(o *Options) { o.Engine.Deliver = r.deliver })
	id := h.refuse()
	f := decode[problemAnswer](t, h.post("/api/v1/jobs/"+id+"/forward", `{"run":1}`).want(t, http.StatusConflict))
	if f.Error.Code != "dead_letter_refused" || f.Error.Message != "https://dlq.example answered 500; the job is kept" {
		t.Errorf("answer %+v", f)
	}
	if n := h.store.Snapshot(); n.Depths[job.StatusDLQFailed] != 1 || n.Totals.DLQFailed != 1 {
		t.Errorf("%d refused, counted %d times; want 1, 1", n.Depths[job.StatusDLQFailed], n.Totals.DLQFailed)
	}
	if text := h.get("/dead-letters").dom(t).text(); !strings.Contains(text, "answered 500") || strings.Contains(text, "answered 507") {
		t.Error("the page does not say why it was refused the last time")
	}
}

// The answer still gets out when a receiver hangs for all its tries.
func TestForward_AnswersInTime(t *testing.T) {
	var sent, end time.Time
	h := start(t, func(o *Options) {
		o.Engine.Deliver = func(ctx context.Context, _ job.Job, _ job.DeadLetter) job.Delivery {
			sent = time.Now()
			end, _ = ctx.Deadline()
			return job.Delivery{}
		}
	})
	h.post("/api/v1/jobs/"+h.refuse()+"/forward", `{"run":1}`).want(t, http.StatusOK)
	latest := sent.Add(h.http.Config.WriteTimeout - 5*time.Second)
	if end.IsZero() || end.After(latest) {
		t.Errorf("the delivery may go on until %v, want %v at the latest", end, latest)
	}
}

func TestForward_WorksWithoutScripts(t *testing.T) {
	h := start(t)
	id := h.refuse()
	body := h.get("/dead-letters").want(t, http.StatusOK).body
	if !strings.Contains(body, `action="/jobs/`+id+`/forward"`) || !strings.Contains(body, "Forward again") {
		t.Fatal("the page has no form that sends the letter again")
	}
	a := h.form("/jobs/"+id+"/forward", "run=1&back=%2Fdead-letters").want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != "/dead-letters?acted="+id {
		t.Errorf("it leads to %q", to)
	}
	if s := h.store.Snapshot().Depths; s[job.StatusDLQFailed] != 0 || s[job.StatusDeadLetter] != 1 {
		t.Errorf("depths %v, want it in the dead-letter queue", s)
	}
	h.form("/jobs/"+id+"/forward", "run=1").want(t, http.StatusConflict)
	h.form("/jobs/"+id+"/forward", "run=x").want(t, http.StatusUnprocessableEntity)
}

func TestForward_SaysWhyItCannot(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","queue":"plain"}`)
	h.fail("plain", "x", "y", "")
	for _, path := range []string{"/dead-letters", "/jobs/" + id} {
		if body := h.get(path).want(t, http.StatusOK).body; !strings.Contains(body, "the queue plain has no dead-letter queue; switch it on") {
			t.Errorf("%s does not say why the letter cannot be sent again", path)
		}
	}
	a := h.form("/jobs/"+id+"/forward", "run=1").want(t, http.StatusConflict)
	if !strings.Contains(a.dom(t).text(), "The queue plain has no dead-letter queue; the job is kept.") {
		t.Errorf("the answer does not say why: %s", clip.Text(a.body, 300))
	}
}

func TestJobPage_SaysForWhatAClaimedJobWaits(t *testing.T) {
	since := time.Now().Add(-9 * time.Second)
	h := start(t, func(o *Options) {
		o.Engine.Waiting = func(string) (time.Time, time.Time, bool) { return since, since.Add(time.Minute), true }
	})
	id := h.enqueue(`{"type":"t","queue":"orders"}`)
	if text := h.get("/jobs/" + id).dom(t).text(); strings.Contains(text, "previous execution") {
		t.Error("a job that nobody has claimed waits for an execution")
	}
	h.claim("orders")
	if text := h.get("/jobs/" + id).dom(t).text(); !strings.Contains(text, "waits for the previous execution") {
		t.Error("the page does not say what the job waits for")
	}
}

// A job that waited after its claim runs since it began.
func TestJob_TellsWhenItBegan(t *testing.T) {
	began := time.Now().Add(-3 * time.Hour).UTC().Truncate(time.Microsecond)
	h := start(t, func(o *Options) { o.Engine.Began = func(job.Token) (time.Time, bool) { return began, true } })
	id := h.enqueue(`{"type":"t","queue":"orders"}`)
	h.claim("orders")
	type shape struct {
		StartedAt time.Time `json:"started_at"`
	}
	one := decode[struct {
		Job      shape
		Attempts []shape
	}](t, h.get("/api/v1/jobs/"+id))
	all := decode[struct{ Jobs []shape }](t, h.get("/api/v1/jobs"))
	if !one.Job.StartedAt.Equal(began) || !one.Attempts[0].StartedAt.Equal(began) || !all.Jobs[0].StartedAt.Equal(began) {
		t.Errorf("told %+v and %+v, want %v", one, all, began)
	}
	if text := h.get("/jobs/" + id).dom(t).text(); !strings.Contains(text, "has run for 3 h") {
		t.Errorf("the page says %s", clip.Text(text, 600))
	}
}

func TestAPI_EnqueueTakesExpiryTraceAndNamedPolicy(t *testing.T) {
	h := start(t)
	begin := time.Now().Truncate(time.Millisecond)
	a := h.post("/api/v1/jobs", `{"type":"t","delay":"PT1H","expires_in":"PT2H","trace_id":"7b3f","policy":"daycry"}`).want(t, http.StatusCreated)
	j := decode[struct{ Job map[string]any }](t, a).Job
	at, err := time.Parse(time.RFC3339, j["expires_at"].(string))
	if err != nil || at.Before(begin.Add(2*time.Hour)) || at.After(time.Now().Add(2*time.Hour)) || j["trace_id"] != "7b3f" {
		t.Errorf("expires at %v, trace id %v", j["expires_at"], j["trace_id"])
	}
	if origins, _ := j["origins"].(map[string]any); origins["strategy"] != "job/preset:daycry" || origins["ttr"] != "built_in" {
		t.Errorf("origins %v", j["origins"])
	}
	id := j["id"].(string)
	if text := h.get("/jobs/" + id).dom(t).text(); !strings.Contains(text, "preset daycry, named by the job itself") || !strings.Contains(text, "7b3f") || !strings.Contains(text, "Expires") {
		t.Error("the page does not name who chose the policy, the trace id and when the job expires")
	}
}

func TestAPI_FillForecasts(t *testing.T) {
	h := start(t)
	h.dead()
	type fill struct {
		Open, Limit int64
		Share       float64
		LastDay     int64  `json:"last_day"`
		MaxAge      string `json:"max_age"`
		FullAt      string `json:"full_at"`
		Oldest      string
		Warning     bool
	}
	got := decode[fill](t, h.get("/api/v1/dead-letters/fill").want(t, http.StatusOK))
	if got.Oldest == "" {
		t.Error("the oldest letter has no date")
	}
	got.Oldest = ""
	if want := (fill{Open: 1, LastDay: 1, MaxAge: "P180D"}); got != want {
		t.Errorf("fill %+v, want %+v: there is no limit to reach", got, want)
	}
}

func TestForward_HidesWhatTheReceiverSaid(t *testing.T) {
	r := &receiver{}
	r.answer.Problem = "https://dlq.example answered 401: password=hunter2-canary"
	h := start(t, func(o *Options) { o.Engine.Deliver = r.deliver })
	id := h.refuse()
	a := h.post("/api/v1/jobs/"+id+"/forward", `{"run":1}`).want(t, http.StatusConflict)
	if strings.Contains(a.body, "hunter2-canary") || !strings.Contains(a.body, "the job is kept") {
		t.Errorf("the answer is %s", a.body)
	}
	if a := h.form("/jobs/"+id+"/forward", "run=1").want(t, http.StatusConflict); strings.Contains(a.body, "hunter2-canary") {
		t.Error("the page shows what the receiver said")
	}
}
