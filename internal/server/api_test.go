package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/admin"
	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/stats"
)

const unknownID = "0197f000-0000-7000-8000-00000000000a"

func TestAPI_EnqueueAnswersWithTheJob(t *testing.T) {
	h := start(t)
	a := h.post("/api/v1/jobs", `{"type":"email.send","queue":"mail","priority":5,"meta":{"tenant":"a"},
		"policy":{"max_attempts":7,"initial_interval":"PT2S"},"payload":{"to":"ana"}}`).want(t, http.StatusCreated)
	j := decode[struct{ Job map[string]any }](t, a).Job
	for name, want := range map[string]any{
		"type": "email.send", "queue": "mail", "state": "available", "run": 1., "attempts": 0., "max_attempts": 7., "execution": 0.,
		"priority": 5., "ttr": "PT30S", "meta": map[string]any{"tenant": "a"}, "payload": map[string]any{"to": "ana"},
	} {
		if !reflect.DeepEqual(j[name], want) {
			t.Errorf("%s is %v, want %v", name, j[name], want)
		}
	}
	policy, _ := j["policy"].(map[string]any)
	if policy["max_attempts"] != 7. || policy["initial_interval"] != "PT2S" || policy["jitter"] != false {
		t.Errorf("policy %v, want the job's words over the file's", policy)
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000000Z", fmt.Sprint(j["enqueued_at"])); err != nil {
		t.Errorf("enqueued_at %v: want microseconds in UTC", j["enqueued_at"])
	}
	for _, absent := range []string{"started_at", "finished_at", "worker", "reason", "error"} {
		if _, ok := j[absent]; ok {
			t.Errorf("%s is there before it is known", absent)
		}
	}
	if want := "/api/v1/jobs/" + fmt.Sprint(j["id"]); a.Header.Get("Location") != want {
		t.Errorf("Location %q, want %q", a.Header.Get("Location"), want)
	}
}

func TestAPI_PayloadIsKeptToTheByte(t *testing.T) {
	h := start(t)
	for _, payload := range []string{
		`{ "big": 12345678901234567890.10, "twice": 1, "twice": 2, "html": "<b>&", "esc": "\u003c" }`,
		`[1,  2]`, `"text"`, `null`, `1e400`, `{}`, "{\n\t\"a\" : [ ]\n}",
	} {
		id := h.enqueue(`{"payload": ` + payload + ` , "type":"t"}`)
		if a := h.get("/jobs/"+id+"/payload").want(t, http.StatusOK); a.body != payload {
			t.Errorf("download %q, want %q", a.body, payload)
		}
		if a := h.get("/api/v1/jobs/"+id).want(t, http.StatusOK); !strings.Contains(a.body, `"payload":`+payload) {
			t.Errorf("answer %s, want the bytes %s", a.body, payload)
		}
	}
}

func TestAPI_IdempotencyKeyReturnsTheFirstJob(t *testing.T) {
	h := start(t)
	first := h.post("/api/v1/jobs", `{"type":"t","payload":1}`, "Idempotency-Key", "k1").want(t, http.StatusCreated)
	again := h.post("/api/v1/jobs", `{"type":"t","payload":1}`, "Idempotency-Key", "k1").want(t, http.StatusOK)
	if first.body != again.body {
		t.Errorf("the repeat got %s\nwant %s", again.body, first.body)
	}
}

func TestAPI_RunAtAndDelaySchedule(t *testing.T) {
	h := start(t)
	for _, body := range []string{`{"type":"t","delay":"PT1H"}`, `{"type":"t","run_at":"2999-01-01T00:00:00+01:00"}`} {
		a := h.post("/api/v1/jobs", body).want(t, http.StatusCreated)
		if !strings.Contains(a.body, `"state":"scheduled"`) {
			t.Errorf("%s gave %s", body, a.body)
		}
	}
	if a := h.post("/api/v1/jobs", `{"type":"t","run_at":"2001-01-01T00:00:00Z"}`); !strings.Contains(a.body, `"state":"available"`) {
		t.Errorf("a time in the past gave %s", a.body)
	}
}

func TestAPI_BatchIsAllOrNothing(t *testing.T) {
	h := start(t)
	a := h.post("/api/v1/jobs/batch", `{"jobs":[{"type":"a"},{"type":"b","payload":[1]}]}`).want(t, http.StatusCreated)
	if jobs := decode[struct{ Jobs []map[string]any }](t, a).Jobs; len(jobs) != 2 || jobs[1]["type"] != "b" {
		t.Errorf("jobs %v", jobs)
	}
	before := h.store.Snapshot()
	a = h.post("/api/v1/jobs/batch", `{"jobs":[{"type":"a"},{"type":"b","policy":{"max_attempts":-1}}]}`)
	if f := decode[problemAnswer](t, a.want(t, 422)); f.Error.Field != "jobs[1].policy.max_attempts" {
		t.Errorf("field %q", f.Error.Field)
	}
	if after := h.store.Snapshot(); !reflect.DeepEqual(after, before) {
		t.Errorf("a refused batch wrote something: %+v, before %+v", after, before)
	}
}

func TestAPI_BatchWithAKeyCanBeRepeated(t *testing.T) {
	h := start(t)
	const body = `{"jobs":[{"type":"a"},{"type":"a"}]}`
	first := h.post("/api/v1/jobs/batch", body, "Idempotency-Key", "k").want(t, http.StatusCreated)
	again := h.post("/api/v1/jobs/batch", body, "Idempotency-Key", "k").want(t, http.StatusOK)
	if first.body != again.body {
		t.Errorf("the repeat got %s\nwant %s", again.body, first.body)
	}
}

func TestAPI_KeyOfABatchIsNoSingleJobsKey(t *testing.T) {
	h := start(t)
	h.post("/api/v1/jobs/batch", `{"jobs":[{"type":"a"},{"type":"a"}]}`, "Idempotency-Key", "k").want(t, http.StatusCreated)
	for _, key := range []string{"k", "k#0", "k 0", "k\t0", "k0", "k#1"} {
		h.post("/api/v1/jobs", `{"type":"b"}`, "Idempotency-Key", key).want(t, http.StatusCreated)
	}
}

func TestAPI_BatchOfAThousand(t *testing.T) { largeBatch(t, 1000) }

func TestLong_APIBatchOfTenThousand(t *testing.T) { largeBatch(t, job.MaxBatch) }

func largeBatch(t *testing.T, many int) {
	t.Helper()
	h := start(t)
	jobs := strings.Repeat(`{"type":"a"},`, many-1) + `{"type":"a"}`
	h.post("/api/v1/jobs/batch", `{"jobs":[`+jobs+`]}`).want(t, http.StatusCreated)
	if n := h.store.Snapshot().Depths[job.Status(job.Available)]; n != int64(many) {
		t.Errorf("%d jobs, want %d", n, many)
	}
}

func TestAPI_ListFiltersAndPages(t *testing.T) {
	h := start(t)
	for range 5 {
		h.enqueue(`{"type":"email.send","queue":"mail"}`)
	}
	h.enqueue(`{"type":"sms.send","queue":"mail"}`)
	type page struct {
		Jobs []map[string]any
		Next string
	}
	seen := map[any]bool{}
	after := ""
	for range 3 {
		p := decode[page](t, h.get("/api/v1/jobs?queue=mail&type=email.*&limit=2&after="+after).want(t, http.StatusOK))
		for _, j := range p.Jobs {
			seen[j["id"]] = true
		}
		after = p.Next
	}
	if len(seen) != 5 || after != "" {
		t.Errorf("%d jobs on three pages, next %q; want 5 and an end", len(seen), after)
	}
	if p := decode[page](t, h.get("/api/v1/jobs?state=completed")); len(p.Jobs) != 0 || p.Jobs == nil {
		t.Errorf("no jobs as %v, want an empty list", p.Jobs)
	}
}

func TestAPI_ShowTellsTheWholeHistory(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","queue":"mail","policy":{"max_attempts":2,"initial_interval":"PT0.000001S"}}`)
	h.fail("mail", "http.503", "closed", "trace")
	h.fail("mail", "http.500", "broken", "")
	type shown struct {
		Job         map[string]any
		Attempts    []map[string]any
		DeadLetters []map[string]any `json:"dead_letters"`
	}
	d := decode[shown](t, h.get("/api/v1/jobs/"+id).want(t, http.StatusOK))
	if d.Job["state"] != "discarded" || d.Job["reason"] != "attempts_exhausted" || len(d.Attempts) != 2 || len(d.DeadLetters) != 1 {
		t.Fatalf("job %v, attempts %v, letters %v", d.Job, d.Attempts, d.DeadLetters)
	}
	one, two := d.Attempts[0], d.Attempts[1]
	if one["number"] != 1. || one["action"] != "retry" || one["delay_ms"] != 0.001 || one["decided_by"] != "policy:retry:1/2" {
		t.Errorf("first attempt %v", one)
	}
	if delay := one["delay"]; !reflect.DeepEqual(delay, map[string]any{"source": "policy", "raw_ms": 0.001, "capped_ms": 0.001, "factor": 1., "final_ms": 0.001}) {
		t.Errorf("delay %v", delay)
	}
	if !reflect.DeepEqual(one["error"], map[string]any{"type": "http.503", "message": "closed", "trace": "trace"}) {
		t.Errorf("error %v", one["error"])
	}
	if two["action"] != "dead_letter" || two["delay"] != nil {
		t.Errorf("second attempt %v", two)
	}
	deadLetter := d.DeadLetters[0]
	if deadLetter["job_id"] != id || deadLetter["exception"] != "http.500" || deadLetter["original_queue"] != "mail" || deadLetter["attempts"] != 2. {
		t.Errorf("dead letter %v", deadLetter)
	}
}

func TestAPI_ShowListsTheExecutionUnderWay(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","queue":"mail"}`)
	h.claim("mail")
	d := decode[struct{ Attempts []map[string]any }](t, h.get("/api/v1/jobs/"+id))
	if len(d.Attempts) != 1 || d.Attempts[0]["worker"] != "w1" || d.Attempts[0]["number"] != nil || d.Attempts[0]["outcome"] != nil {
		t.Errorf("attempts %v, want the one that runs", d.Attempts)
	}
}

func TestAPI_ReplayStartsTheNextRunOnce(t *testing.T) {
	h := start(t)
	id := h.dead()
	a := h.post("/api/v1/jobs/"+id+"/replay", `{"run":1}`).want(t, http.StatusOK)
	if !strings.Contains(a.body, `"run":2`) || !strings.Contains(a.body, `"state":"available"`) {
		t.Errorf("answer %s", a.body)
	}
	f := decode[problemAnswer](t, h.post("/api/v1/jobs/"+id+"/replay", `{"run":1}`).want(t, http.StatusConflict))
	if f.Error.Code != "conflict" || f.By != "API client (127.0.0.1)" || f.At == "" {
		t.Errorf("the second got %+v, want who was first and when", f)
	}
	f = decode[problemAnswer](t, h.post("/api/v1/jobs/"+id+"/replay", `{"run":2}`).want(t, http.StatusConflict))
	if f.Error.Message == "" || f.By != "" {
		t.Errorf("an available job: %+v", f)
	}
}

func TestAPI_HundredReplaysRunOne(t *testing.T) {
	h := start(t)
	id := h.dead()
	var wins, conflicts int
	var mu sync.Mutex
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() {
			status := h.post("/api/v1/jobs/"+id+"/replay", `{"run":1}`).StatusCode
			mu.Lock()
			defer mu.Unlock()
			switch status {
			case http.StatusOK:
				wins++
			case http.StatusConflict:
				conflicts++
			}
		})
	}
	all.Wait()
	if n := h.store.Snapshot().Totals.Replayed; wins != 1 || conflicts != 99 || n != 1 {
		t.Errorf("%d won, %d conflicts, jobs_replayed %d; want 1, 99, 1", wins, conflicts, n)
	}
}

func TestAPI_DiscardAndCancel(t *testing.T) {
	h := start(t)
	id := h.dead()
	h.post("/api/v1/jobs/"+id+"/discard", `{"run":2}`).want(t, http.StatusConflict)
	h.post("/api/v1/jobs/"+id+"/discard", `{"run":1}`).want(t, http.StatusOK)
	h.post("/api/v1/jobs/"+id+"/discard", `{"run":1}`).want(t, http.StatusConflict)
	id = h.enqueue(`{"type":"t"}`)
	h.post("/api/v1/jobs/"+id+"/cancel", `{"run":2}`).want(t, http.StatusConflict)
	a := h.post("/api/v1/jobs/"+id+"/cancel", `{"run":1}`).want(t, http.StatusOK)
	if !strings.Contains(a.body, `"state":"cancelled"`) {
		t.Errorf("answer %s", a.body)
	}
	h.post("/api/v1/jobs/"+id+"/cancel", `{"run":1}`).want(t, http.StatusConflict)
}

func TestAPI_QueuesPauseAndResume(t *testing.T) {
	h := start(t)
	h.dead()
	h.post("/api/v1/queues/orders/pause", `{}`).want(t, http.StatusOK)
	type answer struct{ Queues []map[string]any }
	q := decode[answer](t, h.get("/api/v1/queues").want(t, http.StatusOK)).Queues[0]
	if q["name"] != "orders" || q["paused_by"] != "API client (127.0.0.1)" || q["jobs_failed"] != 1. || q["workers"] != 20. || q["dead_letter"] != true {
		t.Errorf("queue %v", q)
	}
	h.post("/api/v1/queues/orders/resume", ``).want(t, http.StatusOK)
	if q := decode[answer](t, h.get("/api/v1/queues")).Queues[0]; q["paused_at"] != nil {
		t.Errorf("queue %v, want it to run", q)
	}
	h.post("/api/v1/queues/nobody/resume", ``).want(t, http.StatusNotFound)
}

func TestAPI_CountersAreTheTotals(t *testing.T) {
	h := start(t)
	h.dead()
	got := decode[stats.Totals](t, h.get("/api/v1/counters").want(t, http.StatusOK))
	if want := (stats.Totals{Failed: 1, FailedPermanently: 1}); got != want {
		t.Errorf("counters %+v, want %+v", got, want)
	}
}

func TestAPI_WrongMethodAndAddress(t *testing.T) {
	h := start(t)
	a := h.do(http.MethodDelete, "/api/v1/jobs", "").want(t, http.StatusMethodNotAllowed)
	if f := decode[problemAnswer](t, a); f.Error.Code != "method_not_allowed" || !strings.Contains(a.Header.Get("Allow"), "POST") {
		t.Errorf("%+v, Allow %q", f, a.Header.Get("Allow"))
	}
	if f := decode[problemAnswer](t, h.get("/api/v1/nothing").want(t, 404)); f.Error.Code != "not_found" {
		t.Errorf("%+v", f)
	}
}

// Every list takes limit, and after for the next page.
func TestAPI_ListsArePagedAlike(t *testing.T) {
	h := operated(t)
	for range 3 {
		h.form("/queues/orders/pause", "").want(t, http.StatusSeeOther)
		h.form("/queues/orders/resume", "").want(t, http.StatusSeeOther)
		h.post("/api/v1/jobs/"+h.dead()+"/discard", `{"run":1}`).want(t, http.StatusOK)
		h.dead()
		h.post("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`).want(t, http.StatusCreated)
	}
	h.reaches(1, operation.Preview)
	for path, name := range map[string]string{
		"/api/v1/jobs": "jobs", "/api/v1/dead-letters": "dead_letters", "/api/v1/trash": "trash", "/api/v1/audit": "entries",
		"/api/v1/operations": "operations", "/api/v1/operations/1/items": "items", "/api/v1/failures": "groups",
	} {
		for _, limit := range []string{"x", "0", "201"} {
			if f := decode[problemAnswer](t, h.get(path+"?limit="+limit).want(t, http.StatusBadRequest)); f.Error.Field != "limit" {
				t.Errorf("%s: %+v", path, f)
			}
		}
		type page map[string]json.RawMessage
		rows := func(p page) (all []json.RawMessage) {
			if err := json.Unmarshal(p[name], &all); err != nil {
				t.Fatal(err)
			}
			return all
		}
		first := decode[page](t, h.get(path+"?limit=1").want(t, http.StatusOK))
		if len(rows(first)) != 1 {
			t.Errorf("%s: %d rows", path, len(rows(first)))
		}
		if name == "items" || name == "groups" { // of one alone
			continue
		}
		next := strings.Trim(string(first["next"]), `"`)
		second := decode[page](t, h.get(path+"?limit=1&after="+next).want(t, http.StatusOK))
		if next == "" || len(rows(second)) != 1 || string(rows(second)[0]) == string(rows(first)[0]) {
			t.Errorf("%s: after %q comes %s", path, next, second[name])
		}
	}
}

// What the pages of a job, a queue, an operation and the policies show is in the
// API, too.
func TestAPI_MirrorsThePages(t *testing.T) {
	h := operated(t)
	id := h.dead()
	h.post("/api/v1/jobs/"+id+"/replay", `{"run":1,"priority":3}`).want(t, http.StatusOK)
	h.post("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`).want(t, http.StatusCreated)
	shown := decode[struct {
		Group   string
		Replays []work.Replay
		Trail   []apitype.AuditEntry
	}](t, h.get("/api/v1/jobs/"+id).want(t, http.StatusOK))
	if len(shown.Replays) != 1 || shown.Replays[0].Run != 1 || !shown.Replays[0].Changed || shown.Replays[0].By == "" ||
		len(shown.Trail) != 1 || shown.Trail[0].Action != "job.replay" {
		t.Errorf("the job is shown with %+v", shown)
	}
	queue := decode[struct{ Queue admin.Queue }](t, h.get("/api/v1/queues/orders").want(t, http.StatusOK)).Queue
	if queue.Name != "orders" || queue.Workers == nil || *queue.Workers != 20 || queue.States[job.Status(job.Available)] != 1 {
		t.Errorf("the queue is %+v", queue)
	}
	h.get("/api/v1/queues/plain").want(t, http.StatusOK)
	h.get("/api/v1/queues/nowhere").want(t, http.StatusNotFound)
	log := decode[struct{ Log []apitype.AuditEntry }](t, h.get("/api/v1/operations/1").want(t, http.StatusOK)).Log
	if len(log) == 0 || log[len(log)-1].Action != "operation.new" {
		t.Errorf("the log of the operation is %+v", log)
	}
	all := decode[struct{ Policies, Presets []admin.NamedPolicy }](t, h.get("/api/v1/policies").want(t, http.StatusOK))
	if len(all.Presets) == 0 || len(all.Policies) == 0 || all.Policies[0].Name != "default" || all.Policies[0].Policy.MaxAttempts == 0 {
		t.Errorf("the policies are %+v", all)
	}
}

// Rows of lists hold the beginning of an error, and say so; the job itself and
// the exports hold all of it.
func TestAPI_ListsCutLongTexts(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"order.ship","queue":"orders"}`)
	h.fail("orders", "http.503", strings.Repeat("closed ", 9000), "")
	short := h.dead()
	for path, want := range map[string][]string{
		"/api/v1/jobs":         {`"clipped":["error.message"]`},
		"/api/v1/dead-letters": {`"clipped":["error.message"]`, `"clipped":["error"]`},
	} {
		a := h.get(path).want(t, http.StatusOK)
		for _, w := range want {
			if strings.Count(a.body, w) != 1 {
				t.Errorf("%s has not one %s: %s", path, w, clip.Text(a.body, 3000))
			}
		}
		if len(a.body) > 6000 {
			t.Errorf("%s has %d bytes", path, len(a.body))
		}
	}
	for _, path := range []string{"/api/v1/jobs/" + id, "/export.ndjson?id=" + id, "/export.csv?id=" + id} {
		if a := h.get(path).want(t, http.StatusOK); strings.Count(a.body, "closed ") < 9000 || strings.Contains(a.body, `"clipped"`) {
			t.Errorf("%s has not the whole error", path)
		}
	}
	if a := h.get("/api/v1/jobs/"+short).want(t, http.StatusOK); strings.Contains(a.body, `"clipped"`) {
		t.Error("a short error counts as cut")
	}
}
