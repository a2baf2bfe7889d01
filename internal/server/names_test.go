package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/store"
	"redrive/internal/store/counters"
	"redrive/internal/store/databasetest"
)

// roomFor is a house whose database has room for so many queues.
func roomFor(t *testing.T, queues int, reserved ...string) *house {
	t.Helper()
	s, err := store.Open(t.Context(), store.Options{
		Database: databasetest.Database(t),
		Limits:   counters.Limits{Queues: queues, Reserved: reserved},
	})
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, s)
}

// queuesTo makes queues q00000 and so on, each with a job.
func (h *house) queuesTo(t *testing.T, n int) {
	t.Helper()
	all := make([]job.Job, n)
	for i := range all {
		all[i] = job.Job{Queue: fmt.Sprintf("q%05d", i), Type: "t", Payload: []byte("{}")}
	}
	for some := range slices.Chunk(all, 5000) {
		if _, err := h.store.Enqueue(t.Context(), time.Now(), some); err != nil {
			t.Fatal(err)
		}
	}
}

// A queue that would be one too many is refused by its name, by whatever way it
// comes, with all that came with it. Queues that exist go on, and so do those that
// the configuration names.
func TestQueues_NewOnesAreRefusedAtTheLimit(t *testing.T) {
	h := roomFor(t, 3, "orders")
	h.enqueue(`{"type":"t","queue":"a"}`)
	h.enqueue(`{"type":"t","queue":"b"}`)
	before := h.store.Snapshot().Depths.Jobs()
	for path, body := range map[string]string{
		"/api/v1/jobs":       `{"type":"t","queue":"late"}`,
		"/api/v1/jobs/batch": `{"jobs":[{"type":"t","queue":"a"},{"type":"t","queue":"late"}]}`,
		"/api/v1/queues/late/envelopes": `{"job":"urn:babel:t","trace_id":"x","data":{},"meta":{"id":"1","queue":"late",
			"lang":"go","schema_version":1,"created_at":1},"attempts":0}`,
	} {
		f := decode[problemAnswer](t, h.post(path, body).want(t, http.StatusUnprocessableEntity))
		if f.Error.Code != "too_many_queues" || f.Error.Field != "queue" || !strings.Contains(f.Error.Message, `"late"`) ||
			!strings.Contains(f.Error.Message, "limits.queues") {
			t.Errorf("%s: %+v", path, f)
		}
	}
	if a := h.get("/metrics"); !strings.Contains(a.body, `redrive_refused_total{limit="queues",of="all"} 3`) {
		t.Error("the refusals are not counted")
	}
	if after := h.store.Snapshot().Depths.Jobs(); after != before {
		t.Errorf("%d jobs came in", after-before)
	}
	h.enqueue(`{"type":"t","queue":"a"}`)
	h.enqueue(`{"type":"t","queue":"orders"}`)
}

// An empty queue is removed with its finished jobs. One that is not empty, not
// known or in the configuration is not.
func TestQueues_AreRemovedWhenTheyAreEmpty(t *testing.T) {
	h := start(t)
	h.enqueue(`{"type":"t","queue":"old"}`)
	for _, answer := range []answer{h.post("/api/v1/queues/old/remove", `{}`), h.form("/queues/old/remove", "")} {
		if !strings.Contains(answer.want(t, http.StatusConflict).body, "not empty") {
			t.Errorf("%s", answer.body)
		}
	}
	if page := h.get("/queues/old").body; !strings.Contains(page, "Only an empty queue can be removed") || strings.Contains(page, "/queues/old/remove") {
		t.Error("the page offers to remove a queue with a job, or does not say why not")
	}
	h.succeed("old")
	if page := h.get("/queues/old").body; !strings.Contains(page, "Remove the queue and 1 finished job") {
		t.Error("the page does not say what is removed")
	}
	h.post("/api/v1/queues/old/remove", `{"force":true}`).want(t, http.StatusUnprocessableEntity)
	if a := h.post("/api/v1/queues/old/remove", `{}`).want(t, http.StatusOK); !strings.Contains(a.body, `"removed_jobs":1`) {
		t.Errorf("%s", a.body)
	}
	h.get("/queues/old").want(t, http.StatusNotFound)
	h.post("/api/v1/queues/old/remove", `{}`).want(t, http.StatusNotFound)
	if a := h.post("/api/v1/queues/orders/remove", `{}`).want(t, http.StatusConflict); !strings.Contains(a.body, "configuration") {
		t.Errorf("%s", a.body)
	}
	h.enqueue(`{"type":"t","queue":"older"}`)
	h.succeed("older")
	if a := h.form("/queues/older/remove", "").want(t, http.StatusSeeOther); a.Header.Get("Location") != "/queues" {
		t.Errorf("the form leads to %s", a.Header.Get("Location"))
	}
}

// succeed runs the jobs of a queue, and they succeed.
func (h *house) succeed(queue string) {
	h.t.Helper()
	var all []job.Settlement
	for _, j := range h.claim(queue) {
		all = append(all, j.Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: time.Now()}, nil))
	}
	if _, _, err := h.store.Exchange(context.Background(), all, job.Claim{}); err != nil {
		h.t.Fatal(err)
	}
}

// A queue that comes after the thousand that are told apart is "other" in every
// metric, and takes no series from those before it, whatever its name.
func TestMetrics_KeepTheQueuesThatCameFirst(t *testing.T) {
	h := roomFor(t, 2000)
	h.queuesTo(t, 1000)
	h.enqueue(`{"type":"t","queue":"a"}`)
	h.succeed("a")
	h.succeed("q00999")
	body := h.get("/metrics").want(t, http.StatusOK).body
	for _, line := range []string{
		`redrive_jobs{queue="q00999",state="completed"} 1`, `redrive_jobs{queue="other",state="completed"} 1`,
		`redrive_workers{queue="q00999",state="free"}`, `redrive_workers{queue="other",state="free"}`,
		`jobs_succeeded_total{queue="q00999",type="t"} 1`, `jobs_succeeded_total{queue="other",type="t"} 1`,
	} {
		if !strings.Contains(body, line) {
			t.Errorf("there is no %s", line)
		}
	}
	if strings.Contains(body, `queue="a"`) {
		t.Error("the queue that came last has series of its own")
	}
}

// Pages show some queues of many, and are as large as what they show.
func TestPages_CostWhatTheyShow(t *testing.T) {
	h := roomFor(t, 5000)
	h.queuesTo(t, 5000)
	id := h.enqueue(`{"type":"t","queue":"q04999","policy":{"max_attempts":1}}`)
	h.fail("q04999", "x", "y", "")
	for path, most := range map[string]int{
		"/": 100, "/queues": 350, "/workers": 150, "/dead-letters": 100, "/jobs": 250, "/failures": 150, "/queues/q04999": 100,
		"/trash": 100, "/jobs/" + id + "/replay": 200,
	} {
		if a := h.get(path).want(t, http.StatusOK); len(a.body) > most<<10 {
			t.Errorf("%s has %d bytes, more than %d KiB", path, len(a.body), most)
		}
	}
	if a := h.get("/queues/q04999"); !strings.Contains(a.body, "q04999") {
		t.Error("a queue that no list shows has no page")
	}
}

// Programs walk through all queues, a thousand at a time.
func TestQueues_AreListedInPages(t *testing.T) {
	h := roomFor(t, 5000)
	h.queuesTo(t, 2500)
	type list struct {
		Queues []struct{ Name string }
		Next   string
	}
	var names []string
	for after, pages := "", 0; pages == 0 || after != ""; pages++ {
		path := "/api/v1/queues"
		if after != "" {
			path += "?after=" + after
		}
		page := decode[list](t, h.get(path).want(t, http.StatusOK))
		for _, q := range page.Queues {
			names = append(names, q.Name)
		}
		after = page.Next
		if pages > 5 || len(page.Queues) > 1000 {
			t.Fatalf("page %d has %d queues and goes on", pages, len(page.Queues))
		}
	}
	if !slices.Equal(names, h.store.QueueNames()) {
		t.Errorf("%d queues were listed", len(names))
	}
	h.get("/api/v1/queues?after=%20").want(t, http.StatusBadRequest)
}
