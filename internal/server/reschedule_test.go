package server

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
)

type rescheduled struct {
	Job struct {
		State string
		Run   int
		RunAt string `json:"run_at"`
	}
	Text string
}

// A program says when, or in how long; a time that has passed means now.
func TestReschedule_ByAProgram(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","queue":"orders","delay":"1h"}`)
	path := "/api/v1/jobs/" + id + "/reschedule"
	got := decode[rescheduled](t, h.post(path, `{"run":1,"run_at":"2930-01-31T15:04:05+01:00"}`).want(t, http.StatusOK))
	if got.Job.RunAt != "2930-01-31T14:04:05.000000Z" || got.Job.State != "scheduled" || got.Job.Run != 1 {
		t.Errorf("got %+v", got)
	}
	h.post(path, `{"run":2,"delay":"15m"}`).want(t, http.StatusConflict)
	for _, now := range []string{`{"run":1,"delay":"0s"}`, `{"run":1,"run_at":"2020-01-01T00:00:00Z"}`} {
		before := time.Now().Truncate(time.Microsecond)
		at, err := time.Parse(time.RFC3339, decode[rescheduled](t, h.post(path, now).want(t, http.StatusOK)).Job.RunAt)
		if err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("%s: the job may run at %v, %v", now, at, err)
		}
	}
	if log := h.audited(t); strings.Count(log, "job.reschedule "+id) != 3 {
		t.Errorf("the audit log:\n%s", log)
	}
	h.claim("orders")
	if a := h.post(path, `{"run":1,"delay":"1h"}`).want(t, http.StatusConflict); !strings.Contains(a.body, "the job is active") {
		t.Errorf("a job that runs: %s", a.body)
	}
}

// The forms of the job's page run it now, postpone it by a choice, or until a time
// that the user typed.
func TestReschedule_ByAPerson(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t","queue":"orders","run_at":"2930-01-31T15:00:00Z"}`)
	path := "/jobs/" + id
	page := func() dom {
		t.Helper()
		return h.get(path).want(t, http.StatusOK).dom(t)
	}
	act := func(fields string, status int) answer {
		t.Helper()
		return h.form(path+"/reschedule", fields+"&run=1&back="+path, "Accept", "application/json").want(t, status)
	}
	if text := page().text(); !strings.Contains(text, "Run now") || !strings.Contains(text, "Postpone") {
		t.Errorf("the page of a scheduled job does not offer to move it:\n%s", text)
	}
	if got := decode[rescheduled](t, act("run_at=2930-01-31T15:15", http.StatusOK)); got.Text != "It runs on 31 January 2930 at 15:15:00 UTC" {
		t.Errorf("answer %+v", got)
	}
	if text := page().text(); !strings.Contains(text, "moved the job to this time") || strings.Contains(text, "This time was set when") {
		t.Errorf("the page does not say who moved the job:\n%s", text)
	}
	if a := act("run_at=tomorrow", 422); !strings.Contains(a.body, `"field":"run_at"`) {
		t.Errorf("a time that cannot be read: %s", a.body)
	}
	act("", 422)
	if got := decode[rescheduled](t, act("delay=0s", http.StatusOK)); got.Text != "It runs as soon as a worker is free" || got.Job.State != string(job.Scheduled) {
		t.Errorf("answer %+v", got)
	}
	h.form(path+"/reschedule", "delay=15m&run=1&back="+path).want(t, http.StatusSeeOther)
	h.claim("orders") // nothing: it waits
	if text := strings.Join(strings.Fields(page().text()), " "); !strings.Contains(text, "chose Run now") || !strings.Contains(text, "rescheduled the job to run on 31 Jan 2930") {
		t.Errorf("the history does not tell it:\n%s", text)
	}
}
