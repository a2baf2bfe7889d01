package server

import (
	"net/http"
	"testing"

	"redrive/internal/config"
)

const withRules = `
policies: {patient: {use: ojs, max_attempts: 9}}
rules:
  before_enqueue:
    - {name: no-giants, when: job.type == "giant", refuse: send it in parts}
    - {name: vip, when: job.meta.tenant == "acme", queue: vip, priority: 7, ttr: 5m, meta: {lane: fast}}
    - {name: broken, when: job.payload.a.b == 1, ttr: 1s}
`

func startWith(t *testing.T, text string) *house {
	t.Helper()
	c, err := config.Parse("redrive.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(o *Options) { o.Config = c })
}

func TestAPI_ARuleRefuses(t *testing.T) {
	h := startWith(t, withRules)
	f := decode[problemAnswer](t, h.post("/api/v1/jobs", `{"type":"giant"}`).want(t, http.StatusUnprocessableEntity))
	if f.Error.Code != "refused_by_rule" || f.Error.Message != "send it in parts (rule no-giants)" || f.Error.Field != "" {
		t.Errorf("error %+v", f.Error)
	}
	f = decode[problemAnswer](t, h.post("/api/v1/jobs/batch", `{"jobs":[{"type":"a","payload":{"a":{}}},{"type":"giant"}]}`).want(t, http.StatusUnprocessableEntity))
	if f.Error.Code != "refused_by_rule" || f.Error.Field != "jobs[1]" {
		t.Errorf("error %+v, want it to name jobs[1]", f.Error)
	}
	if names := h.store.Counters.QueueNames(); len(names) != 0 {
		t.Errorf("a refused job was enqueued to %q", names)
	}
}

func TestAPI_ARuleChangesAJob(t *testing.T) {
	h := startWith(t, withRules)
	j := decode[struct {
		Job struct {
			Queue, TTR string
			Priority   int
			Meta       map[string]string
		}
	}](t, h.post("/api/v1/jobs", `{"type":"t","ttr":"PT1S","meta":{"tenant":"acme"}}`).want(t, http.StatusCreated)).Job
	if j.Queue != "vip" || j.TTR != "PT5M" || j.Priority != 7 || j.Meta["lane"] != "fast" || j.Meta["tenant"] != "acme" {
		t.Errorf("job %+v", j)
	}
}

func TestAPI_ARuleThatFailsIsNoted(t *testing.T) {
	h := startWith(t, withRules)
	id := h.enqueue(`{"type":"t","payload":{}}`)
	d, err := h.store.Job(t.Context(), id)
	if want := "rule broken failed: cannot fetch b from <nil>, at column 15, skipped"; err != nil || d.Job.Note != want {
		t.Errorf("note %q, %v; want %q", d.Job.Note, err, want)
	}
}

func TestAPI_APolicyMayBeAName(t *testing.T) {
	h := startWith(t, withRules)
	for policy, attempts := range map[string]int{`"patient"`: 9, `"daycry"`: 4, `{"use":"patient","max_attempts":2}`: 2} {
		id := h.enqueue(`{"type":"t","payload":{"a":{}},"policy":` + policy + `}`)
		d, err := h.store.Job(t.Context(), id)
		if err != nil || d.Job.Policy.MaxAttempts != attempts {
			t.Errorf("%s: %d attempts, %v; want %d", policy, d.Job.Policy.MaxAttempts, err, attempts)
		}
		if want := map[string]string{`"patient"`: "job/policy:patient", `"daycry"`: "job/preset:daycry"}[policy]; want != "" && d.Job.Origins["strategy"] != want {
			t.Errorf("%s: origins %v, want strategy by %s", policy, d.Job.Origins, want)
		}
	}
}
