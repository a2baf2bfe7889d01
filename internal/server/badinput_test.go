package server

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"

	"redrive/internal/job"
)

// badInput is a request and the error that answers it.
type badInput struct {
	name, path, body string
	status           int
	code, field      string
}

const (
	jobs  = "/api/v1/jobs"
	batch = "/api/v1/jobs/batch"
)

func badForms() []badInput {
	deep := strings.Repeat("[", job.MaxDepth) + strings.Repeat("]", job.MaxDepth)
	return []badInput{
		{"empty", jobs, ``, 422, "invalid_value", "type"},
		{"no JSON", jobs, `{"type":`, 400, "malformed", ""},
		{"two values", jobs, `{"type":"t"} {}`, 400, "malformed", ""},
		{"trailing comma", jobs, `{"type":"t",}`, 400, "malformed", ""},
		{"invalid UTF-8", jobs, "{\"type\":\"\xff\"}", 400, "malformed", ""},
		{"NUL in a type", jobs, `{"type":"a\u0000b"}`, 422, "invalid_value", "type"},
		{"star in a type", jobs, `{"type":"email.*"}`, 422, "invalid_value", "type"},
		{"UTF-8 in the payload", jobs, "{\"type\":\"t\",\"payload\":\"\xc3\x28\"}", 400, "malformed", ""},
		{"too deep", jobs, `{"type":"t","payload":` + deep + `}`, 400, "malformed", ""},
		{"very deep", jobs, strings.Repeat("[", 1_000_000), 400, "malformed", ""},
		{"a field twice", jobs, `{"type":"t","type":"t"}`, 400, "malformed", "type"},
		{"a field twice, escaped", jobs, `{"type":"t","typ\u0065":"t"}`, 400, "malformed", "type"},
		{"a policy field twice", jobs, `{"type":"t","policy":{"coefficient":1,"coefficient":2}}`, 400, "malformed", "policy.coefficient"},
		{"no object", jobs, `[]`, 422, "invalid_value", "body"},
		{"null", jobs, `null`, 422, "invalid_value", "body"},
		{"unknown field", jobs, `{"type":"t","retries":3}`, 422, "invalid_value", "retries"},
		{"type missing", jobs, `{}`, 422, "invalid_value", "type"},
		{"type of the wrong kind", jobs, `{"type":7}`, 422, "invalid_value", "type"},
		{"type null", jobs, `{"type":null}`, 422, "invalid_value", "type"},
		{"type too long", jobs, `{"type":"` + strings.Repeat("x", job.MaxType+1) + `"}`, 422, "invalid_value", "type"},
		{"queue", jobs, `{"type":"t","queue":"a b"}`, 422, "invalid_value", "queue"},
		{"queue of markup", jobs, `{"type":"t","queue":"<script>"}`, 422, "invalid_value", "queue"},
		{"priority", jobs, `{"type":"t","priority":1001}`, 422, "invalid_value", "priority"},
		{"priority fraction", jobs, `{"type":"t","priority":1.5}`, 422, "invalid_value", "priority"},
		{"priority huge", jobs, `{"type":"t","priority":1e99}`, 422, "invalid_value", "priority"},
	}
}

func badValues() []badInput {
	return []badInput{
		{"meta", jobs, `{"type":"t","meta":[1]}`, 422, "invalid_value", "meta"},
		{"meta too large", jobs, `{"type":"t","meta":{"a":"` + strings.Repeat("x", job.MaxMeta) + `"}}`, 413, "too_large", "meta"},
		{"ttr", jobs, `{"type":"t","ttr":"5 minutes"}`, 422, "invalid_value", "ttr"},
		{"ttr zero", jobs, `{"type":"t","ttr":"PT0S"}`, 422, "invalid_value", "ttr"},
		{"ttr number", jobs, `{"type":"t","ttr":5}`, 422, "invalid_value", "ttr"},
		{"delay", jobs, `{"type":"t","delay":"P1Y"}`, 422, "invalid_value", "delay"},
		{"delay negative", jobs, `{"type":"t","delay":"-PT1S"}`, 422, "invalid_value", "delay"},
		{"run_at", jobs, `{"type":"t","run_at":"tomorrow"}`, 422, "invalid_value", "run_at"},
		{"run_at without zone", jobs, `{"type":"t","run_at":"2030-01-01T00:00:00"}`, 422, "invalid_value", "run_at"},
		{"run_at and delay", jobs, `{"type":"t","run_at":"2030-01-01T00:00:00Z","delay":"PT1S"}`, 422, "invalid_value", "delay"},
		{"expires_at", jobs, `{"type":"t","expires_at":"soon"}`, 422, "invalid_value", "expires_at"},
		{"expires_at in the past", jobs, `{"type":"t","expires_at":"2001-01-01T00:00:00Z"}`, 422, "invalid_value", "expires_at"},
		{"expires_at before run_at", jobs, `{"type":"t","run_at":"2930-01-01T00:00:00Z","expires_at":"2929-01-01T00:00:00Z"}`, 422, "invalid_value", "expires_at"},
		{"expires_at at run_at", jobs, `{"type":"t","run_at":"2930-01-01T00:00:00Z","expires_at":"2930-01-01T00:00:00Z"}`, 422, "invalid_value", "expires_at"},
		{"expires_in before delay", jobs, `{"type":"t","delay":"PT2H","expires_in":"PT1H"}`, 422, "invalid_value", "expires_in"},
		{"expires_in of nothing", jobs, `{"type":"t","expires_in":"PT0S"}`, 422, "invalid_value", "expires_in"},
		{"expires_in negative", jobs, `{"type":"t","expires_in":"-PT1S"}`, 422, "invalid_value", "expires_in"},
		{"expires_in and expires_at", jobs, `{"type":"t","expires_at":"2930-01-01T00:00:00Z","expires_in":"PT1S"}`, 422, "invalid_value", "expires_in"},
		{"trace_id empty", jobs, `{"type":"t","trace_id":""}`, 422, "invalid_value", "trace_id"},
		{"trace_id of the wrong kind", jobs, `{"type":"t","trace_id":7}`, 422, "invalid_value", "trace_id"},
		{"trace_id too long", jobs, `{"type":"t","trace_id":"` + strings.Repeat("x", job.MaxTraceID+1) + `"}`, 422, "invalid_value", "trace_id"},
	}
}

func badPolicies() []badInput {
	return []badInput{
		{"policy without its name", jobs, `{"type":"t","policy":"fast"}`, 422, "invalid_value", "policy.use"},
		{"policy null", jobs, `{"type":"t","policy":null}`, 422, "invalid_value", "policy"},
		{"policy unknown field", jobs, `{"type":"t","policy":{"x":1}}`, 422, "invalid_value", "policy.x"},
		{"unknown strategy", jobs, `{"type":"t","policy":{"strategy":"fast"}}`, 422, "invalid_value", "policy.strategy"},
		{"malformed duration", jobs, `{"type":"t","policy":{"initial_interval":"soon"}}`, 422, "invalid_value", "policy.initial_interval"},
		{"zero duration", jobs, `{"type":"t","policy":{"initial_interval":"PT0S"}}`, 422, "invalid_value", "policy.initial_interval"},
		{"coefficient", jobs, `{"type":"t","policy":{"coefficient":0.9}}`, 422, "invalid_value", "policy.coefficient"},
		{"attempts negative", jobs, `{"type":"t","policy":{"max_attempts":-1}}`, 422, "invalid_value", "policy.max_attempts"},
		{"attempts fraction", jobs, `{"type":"t","policy":{"max_attempts":1.5}}`, 422, "invalid_value", "policy.max_attempts"},
		{"on_exhaustion", jobs, `{"type":"t","policy":{"on_exhaustion":"retry"}}`, 422, "invalid_value", "policy.on_exhaustion"},
		{"caps", jobs, `{"type":"t","policy":{"initial_interval":"PT2S","max_interval":"PT1S"}}`, 422, "invalid_value", "policy.max_interval"},
		{"caps of immediate retries", jobs, `{"type":"t","policy":{"strategy":"immediate","initial_interval":"PT2S","max_interval":"PT1S"}}`, 422, "invalid_value", "policy.max_interval"},
		{"payload too large", jobs, `{"type":"t","payload":"` + strings.Repeat("x", job.MaxPayload) + `"}`, 413, "too_large", "payload"},
		{"body too large", jobs, `{"type":"t","payload":"` + strings.Repeat("x", maxBody) + `"}`, 413, "too_large", ""},
	}
}

// badActs are about a job that is a dead letter.
func badActs(dead string) []badInput {
	replay := jobs + "/" + dead + "/replay"
	return []badInput{
		{"batch of nothing", batch, `{"jobs":[]}`, 422, "invalid_value", "jobs"},
		{"batch without jobs", batch, `{}`, 422, "invalid_value", "jobs"},
		{"batch of the wrong kind", batch, `{"jobs":{}}`, 422, "invalid_value", "jobs"},
		{"batch with an unknown field", batch, `{"jobs":[{"type":"t"}],"all":true}`, 422, "invalid_value", "all"},
		{"batch job of the wrong kind", batch, `{"jobs":[{"type":"t"},7]}`, 422, "invalid_value", "jobs[1]"},
		{"batch job", batch, `{"jobs":[{"type":"t"},{"type":"t","queue":" "}]}`, 422, "invalid_value", "jobs[1].queue"},
		{"batch payload too large", batch, `{"jobs":[{"type":"t","payload":"` + strings.Repeat("x", job.MaxPayload) + `"}]}`, 413, "too_large", "jobs[0].payload"},
		{"batch too long", batch, `{"jobs":[` + strings.Repeat(`{"type":"t"},`, job.MaxBatch) + `{"type":"t"}]}`, 422, "invalid_value", "jobs"},
		{"replay without run", replay, `{}`, 422, "invalid_value", "run"},
		{"replay of run 0", replay, `{"run":0}`, 422, "invalid_value", "run"},
		{"replay of a run in words", replay, `{"run":"1"}`, 422, "invalid_value", "run"},
		{"replay of a later run", replay, `{"run":2}`, 409, "conflict", ""},
		{"replay of no UUID", jobs + "/7/replay", `{"run":1}`, 400, "invalid_parameter", "id"},
		{"replay of nothing", jobs + "/" + unknownID + "/replay", `{"run":1}`, 404, "not_found", ""},
		{"forward without run", jobs + "/" + dead + "/forward", `{}`, 422, "invalid_value", "run"},
		{"forward of what is not refused", jobs + "/" + dead + "/forward", `{"run":1}`, 409, "conflict", ""},
		{"forward of nothing", jobs + "/" + unknownID + "/forward", `{"run":1}`, 404, "not_found", ""},
		{"forward of no UUID", jobs + "/7/forward", `{"run":1}`, 400, "invalid_parameter", "id"},
		{"discard of nothing", jobs + "/" + unknownID + "/discard", `{"run":1}`, 404, "not_found", ""},
		{"discard without a run", jobs + "/" + dead + "/discard", `{}`, 422, "invalid_value", "run"},
		{"reschedule without a time", jobs + "/" + dead + "/reschedule", `{"run":1}`, 422, "invalid_value", "run_at"},
		{"reschedule to two times", jobs + "/" + dead + "/reschedule", `{"run":1,"run_at":"2930-01-01T00:00:00Z","delay":"1s"}`, 422, "invalid_value", "delay"},
		{"reschedule of what is over", jobs + "/" + dead + "/reschedule", `{"run":1,"delay":"0s"}`, 409, "conflict", ""},
		{"cancel without a run", jobs + "/" + dead + "/cancel", `{}`, 422, "invalid_value", "run"},
		{"cancel of no UUID", jobs + "/x/cancel", `{}`, 400, "invalid_parameter", "id"},
		{"pause of a malformed queue", "/api/v1/queues/%3Cscript%3E/pause", `{}`, 400, "invalid_parameter", "queue"},
	}
}

func TestAPI_BadInputIsRefusedAndWritesNothing(t *testing.T) {
	h := start(t)
	dead := h.dead()
	before := h.store.Snapshot()
	for _, test := range slices.Concat(badForms(), badValues(), badPolicies(), badActs(dead)) {
		t.Run(test.name, func(t *testing.T) {
			h := &house{t: t, store: h.store, http: h.http}
			a := h.post(test.path, test.body).want(t, test.status)
			f := decode[problemAnswer](t, a)
			if f.Error.Code != test.code || f.Error.Field != test.field || f.Error.Message == "" {
				t.Errorf("error %+v, want code %s, field %q and a message", f.Error, test.code, test.field)
			}
			if strings.Contains(a.body, "goroutine") || strings.Contains(a.body, ".go:") {
				t.Errorf("a trace in %s", a.body)
			}
		})
	}
	if after := h.store.Snapshot(); !reflect.DeepEqual(after, before) {
		t.Errorf("bad input wrote something: %+v, before %+v", after, before)
	}
}

func TestAPI_BadQueriesNameTheField(t *testing.T) {
	h := start(t)
	tests := []struct{ query, field string }{
		{"state=dead", "state"}, {"queue=a+b", "queue"}, {"queue=%3Cscript%3E", "queue"}, {"type=%FF", "type"},
		{"after=forged", "after"}, {"after=MS4xLjE", "after"}, {"limit=0", "limit"}, {"limit=201", "limit"}, {"limit=x", "limit"},
		{"error=%FF", "error"}, {"error=" + strings.Repeat("x", 201), "error"}, {"reason=zz", "reason"}, {"reason=" + strings.Repeat("x", 201), "reason"},
	}
	for _, test := range tests {
		a := h.get("/api/v1/jobs?" + test.query)
		if test.query == "after=MS4xLjE" { // well formed, though no answer ever contained it
			a.want(t, http.StatusOK)
			continue
		}
		if f := decode[problemAnswer](t, a.want(t, 400)); f.Error.Field != test.field || f.Error.Code != "invalid_parameter" {
			t.Errorf("%s: %+v, want the field %s", test.query, f.Error, test.field)
		}
	}
}

func TestAPI_OnlyJSONIsAccepted(t *testing.T) {
	h := start(t)
	for _, kind := range []string{"", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/jsonx"} {
		a := h.do(http.MethodPost, "/api/v1/jobs", `{"type":"t"}`, "Content-Type", kind).want(t, http.StatusUnsupportedMediaType)
		if f := decode[problemAnswer](t, a); f.Error.Code != "unsupported_media_type" {
			t.Errorf("%q: %+v", kind, f)
		}
	}
	h.do(http.MethodPost, "/api/v1/jobs", `{"type":"t"}`, "Content-Type", "application/json; charset=utf-8").want(t, http.StatusCreated)
}

func TestAPI_KeyIsBounded(t *testing.T) {
	h := start(t)
	a := h.post("/api/v1/jobs", `{"type":"t"}`, "Idempotency-Key", strings.Repeat("k", job.MaxKey+1)).want(t, 422)
	if f := decode[problemAnswer](t, a); f.Error.Field != "Idempotency-Key" {
		t.Errorf("field %q", f.Error.Field)
	}
}
