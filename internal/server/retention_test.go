package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/config"
	"redrive/internal/retention"
)

// swept is a server from which retention removed one completed job of the queue
// plain and one cancelled job of the queue orders, and will remove a dead letter.
func swept(t *testing.T) (h *house, completed, cancelled string) {
	h = start(t)
	completed = h.enqueue(`{"type":"t","queue":"plain"}`)
	h.succeed("plain")
	cancelled = h.enqueue(`{"type":"t","queue":"orders"}`)
	h.post("/api/v1/jobs/"+cancelled+"/cancel", `{"run":1}`).want(t, http.StatusOK)
	h.dead()
	limits := retention.Limits{Ages: retention.Ages{retention.Completed: time.Hour, retention.Cancelled: time.Hour, retention.DeadLetters: 24 * time.Hour}}
	now := time.Now().Add(2 * time.Hour)
	if _, err := h.store.Sweep.Prune(t.Context(), now, limits); err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.Sweep.Forecast(t.Context(), now, limits); err != nil {
		t.Fatal(err)
	}
	return h, completed, cancelled
}

func TestRetention_ARemovedJobIsGoneAndSaysWhy(t *testing.T) {
	h, completed, cancelled := swept(t)
	page := h.get("/jobs/"+completed).want(t, http.StatusGone).dom(t).text()
	for _, part := range []string{"This job is gone", "Enqueued ", "removed with its history", "completed jobs like this one are kept for 60 min"} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	if strings.Contains(page, "Audit trail") {
		t.Error("the page of a job to which nobody did anything has an audit trail")
	}
	if page := h.get("/jobs/"+cancelled).want(t, http.StatusGone).dom(t).text(); !strings.Contains(page, "Audit trail") {
		t.Error("the page of the job that a person cancelled does not say who did")
	}
	for _, a := range []answer{h.get("/api/v1/jobs/" + completed), h.post("/api/v1/jobs/"+completed+"/replay", `{"run":1}`)} {
		if a.want(t, http.StatusGone); !strings.Contains(a.body, `"code":"removed"`) || !strings.Contains(a.body, "retention removed the job "+completed) {
			t.Errorf("the answer is %s", a.body)
		}
	}
}

func TestRetention_IsShownWithWhatWillBeRemovedAndWhatWas(t *testing.T) {
	h, _, _ := swept(t)
	page := h.get("/retention").want(t, http.StatusOK).dom(t).text()
	for _, part := range []string{"1 job will be removed within 24 h", "Removed so far", "plain", "The number of dead letters is not limited."} {
		if !strings.Contains(page, part) {
			t.Errorf("the page lacks %q:\n%s", part, page)
		}
	}
	if page := h.get("/").want(t, http.StatusOK).dom(t).text(); !strings.Contains(page, "1 dead letter will be removed within 24 h.") {
		t.Error("the overview does not warn")
	}
	type said struct {
		Kinds []struct {
			Kind   string
			Kept   int64
			Age    string
			Within int64 `json:"removed_within_day"`
		}
		Removed []struct {
			Kind, Queue string
			Jobs        int64
		}
	}
	got := decode[said](t, h.get("/api/v1/retention").want(t, http.StatusOK))
	if len(got.Kinds) != 6 || got.Kinds[3].Kind != "dead_letters" || got.Kinds[3].Kept != 1 || got.Kinds[3].Within != 1 || got.Kinds[3].Age != "P180D" {
		t.Errorf("kinds %+v", got.Kinds)
	}
	if len(got.Removed) != 2 || got.Removed[1].Kind != "completed" || got.Removed[1].Queue != "plain" || got.Removed[1].Jobs != 1 {
		t.Errorf("removed %+v", got.Removed)
	}
}

// Dead letters that the next sweep removes for their number are in the API, on the
// pages and in the metrics before.
func TestRetention_AnnouncesDeadLettersThatAreTooMany(t *testing.T) {
	c, err := config.Parse("redrive.yaml", []byte(settings+"retention: {max_dead_letters: 2}"))
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *Options) { o.Config = c })
	for range 5 {
		h.dead()
	}
	if _, err := h.store.Sweep.Forecast(t.Context(), time.Now(), retention.Limits{Count: 2}); err != nil {
		t.Fatal(err)
	}
	const words = "3 dead letters will be removed by the next sweep."
	for _, path := range []string{"/", "/dead-letters", "/retention"} {
		if page := h.get(path).want(t, http.StatusOK).dom(t).text(); !strings.Contains(page, words) {
			t.Errorf("%s does not say %q:\n%s", path, words, page)
		}
	}
	if page := h.get("/retention").dom(t).text(); !strings.Contains(page, "3 jobs will be removed within 24 h") {
		t.Errorf("the page of retention counts otherwise:\n%s", page)
	}
	if a := h.get("/api/v1/retention"); !strings.Contains(a.body, `"kind":"excess_dead_letters","kept":3,`) {
		t.Errorf("the API says %s", a.body)
	}
	a := h.get("/metrics").want(t, http.StatusOK)
	if !strings.Contains(a.body, "\n"+`redrive_retention_removed_within_day_jobs{kind="excess_dead_letters"} 3`+"\n") || strings.Contains(a.body, `kept_jobs{kind="excess`) {
		t.Error("the metrics count otherwise")
	}
	h.dead() // since the forecast
	if a := h.get("/retention"); !strings.Contains(a.body, `data-label="stored">6<`) || !strings.Contains(a.body, `data-label="stored">4<`) {
		t.Error("the page of retention shows an older number of dead letters than its navigation")
	}
}

func TestMetrics_TellWhatRetentionRemovedAndWillRemove(t *testing.T) {
	h, _, _ := swept(t)
	a := h.get("/metrics").want(t, http.StatusOK)
	for _, line := range []string{
		`redrive_retention_removed_total{kind="completed",queue="plain"} 1`, `redrive_retention_removed_total{kind="cancelled",queue="orders"} 1`,
		`redrive_retention_removed_within_day_jobs{kind="dead_letters"} 1`, `redrive_retention_kept_jobs{kind="completed"} 0`,
		`redrive_dead_letter_queue_limit_letters 0`,
	} {
		if !strings.Contains(a.body, "\n"+line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}
