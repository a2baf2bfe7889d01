package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/envelope"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
)

// broken is the id of a dead job with this payload.
func (h *house) broken(payload string) string {
	h.t.Helper()
	id := h.enqueue(`{"type":"order.ship","queue":"orders","payload":` + payload + `}`)
	h.fail("orders", "io", "broken", "")
	return id
}

// redo posts the form of the page /jobs/{id}/replay, as a browser would.
func (h *house) redo(id string, fields ...string) answer {
	h.t.Helper()
	form := url.Values{"changes": {"1"}, "run": {"1"}}
	for i := 0; i < len(fields); i += 2 {
		form.Set(fields[i], fields[i+1])
	}
	return h.form("/jobs/"+id+"/replay", form.Encode())
}

// named returns the element with this name.
func (d dom) named(name string) *html.Node {
	for n := range d.Descendants() {
		if n.Type == html.ElementNode && slices.Contains(n.Attr, html.Attribute{Key: "name", Val: name}) {
			return n
		}
	}
	return nil
}

func TestRedo_FormChangesTheNextRun(t *testing.T) {
	begin, h := time.Now(), start(t)
	id := h.broken(`{"n":12345678901234567890,"to":"paylane","f":1.0}`)
	page := h.get("/jobs/"+id+"/replay").want(t, http.StatusOK)
	text := strings.TrimPrefix(page.dom(t).named("payload").FirstChild.Data, "\n")
	edited := strings.ReplaceAll(strings.Replace(text, "paylane", "eu2", 1), "\n", "\r\n")
	a := h.redo(id, "payload", edited, "queue", "plain", "priority", "7", "delay", "1h", "use", "sidekiq", "max_attempts", "4")
	a.want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != "/jobs/"+id+"#run-2" {
		t.Errorf("it leads to %s", to)
	}
	d := h.stored(id)
	j := d.Job
	if string(j.Payload) != `{"n":12345678901234567890,"to":"eu2","f":1.0}` || j.Queue != "plain" || j.Priority != 7 || j.Run != 2 {
		t.Errorf("run %d has %s in %s with priority %d", j.Run, j.Payload, j.Queue, j.Priority)
	}
	if j.State != job.Scheduled || j.RunAt.Before(begin.Add(time.Hour)) {
		t.Errorf("it is %s until %v", j.State, j.RunAt)
	}
	sidekiq, _ := retry.Preset("sidekiq")
	if j.Policy.Strategy != sidekiq.Strategy || j.Policy.MaxAttempts != 4 || j.Origins["strategy"] != "replay/preset:sidekiq" || j.Origins["max_attempts"] != "replay" {
		t.Errorf("its policy is %+v, said by %v", j.Policy, j.Origins)
	}
	if was := d.RunAs(1); was.Queue != "orders" || !strings.Contains(string(was.Payload), "paylane") {
		t.Errorf("run 1 had %s in %s", was.Payload, was.Queue)
	}
	if text := h.get("/jobs/" + id).dom(t).text(); !strings.Contains(text, "Changed since run 1") {
		t.Error("the job's page does not say what was changed")
	}
}

// What is sent as it was shown changes no byte, whatever the editor made of it.
func TestRedo_UntouchedPayloadStays(t *testing.T) {
	h := start(t)
	const payload = `{"a":  1.0, "b":"x\u202ey"}`
	id := h.broken(payload)
	text := strings.TrimPrefix(h.get("/jobs/"+id+"/replay").dom(t).named("payload").FirstChild.Data, "\n")
	h.redo(id, "payload", strings.ReplaceAll(text, "\n", "\r\n"), "queue", "orders", "priority", "0").want(t, http.StatusSeeOther)
	d := h.stored(id)
	if string(d.Job.Payload) != payload || d.Replays[0].Earlier != nil || d.Job.State != job.Available {
		t.Errorf("run 2 is %s with %s; run 1 had %+v", d.Job.State, d.Job.Payload, d.Replays[0].Earlier)
	}
}

func TestRedo_SaysWhatIsWrongAndKeepsWhatWasTyped(t *testing.T) {
	h := start(t)
	id := h.broken(`{"a":1}`)
	a := h.redo(id, "payload", "{\n\"a\": <oops>\n}", "queue", "nowhere", "priority", "5000", "delay", "soon", "max_attempts", "-1")
	text := a.want(t, http.StatusUnprocessableEntity).dom(t).text()
	for _, want := range []string{
		"in line 2", `"nowhere" is unknown`, "5000 is not between -1000 and 1000", `"soon" is not a duration`, "-1 is negative", "<oops>",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if j := h.stored(id).Job; j.Run != 1 {
		t.Errorf("it was replayed all the same: run %d", j.Run)
	}
	h.redo(id, "delay", "5m", "run_at", "2030-01-01 10:00").want(t, http.StatusUnprocessableEntity)
}

func TestRedo_ValidateOnlyChangesNothing(t *testing.T) {
	h := start(t)
	id := h.broken(`{"a":1,"b":[1,2]}`)
	text := h.redo(id, "payload", `{"a":2,"b":[1,2,3]}`, "do", "check").want(t, http.StatusOK).dom(t).text()
	for _, want := range []string{"at $.a, $.b[2]", "Valid. Run 2 starts at once"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if j := h.stored(id).Job; j.Run != 1 || j.State != job.Discarded {
		t.Errorf("it is %s in run %d", j.State, j.Run)
	}
}

func TestRedo_OnceOnly(t *testing.T) {
	h := start(t)
	id := h.broken(`{"a":1}`)
	h.form("/jobs/"+id+"/replay", "run=1").want(t, http.StatusSeeOther)
	a := h.redo(id, "payload", `{"a": "mine"}`).want(t, http.StatusConflict)
	if text := a.dom(t).text(); !strings.Contains(text, "run 1 was replayed by local user") && !strings.Contains(text, "Run 1 was replayed by local user") || !strings.Contains(text, "mine") {
		t.Error("it does not say who was first, or has lost what was typed")
	}
	if got := h.stored(id).Job.Payload; string(got) != `{"a":1}` {
		t.Errorf("the payload is %s", got)
	}
}

func TestRedo_APITakesTheSame(t *testing.T) {
	h := start(t)
	id := h.broken(`{"a":1}`)
	path := "/api/v1/jobs/" + id + "/replay"
	for body, field := range map[string]string{
		`{"run":1,"queue":"nowhere"}`:                              "queue",
		`{"run":1,"queue":""}`:                                     "queue",
		`{"run":1,"priority":1001}`:                                "priority",
		`{"run":1,"delay":"PT1M","run_at":"2030-01-01T00:00:00Z"}`: "delay",
		`{"run":1,"policy":{"coefficient":0.1}}`:                   "policy.coefficient",
		`{"run":1,"policy":"unheard-of"}`:                          "policy.use",
		`{"run":1,"colour":"red"}`:                                 "colour",
		`{"queue":"plain"}`:                                        "run",
		`{"run":1,"run_at":"tomorrow"}`:                            "run_at",
	} {
		var got struct{ Error struct{ Field string } }
		if err := json.Unmarshal([]byte(h.post(path, body).want(t, http.StatusUnprocessableEntity).body), &got); err != nil || got.Error.Field != field {
			t.Errorf("%s: the field is %q, %v; want %q", body, got.Error.Field, err, field)
		}
	}
	h.post(path, `{"run":1,"payload":{ "a" : 2.0 },"queue":"plain","run_at":"2030-01-01T00:00:00Z","priority":-3,"policy":{"max_attempts":9}}`).want(t, http.StatusOK)
	j := h.stored(id).Job
	if string(j.Payload) != `{"a":2.0}` || j.Queue != "plain" || j.Priority != -3 || j.Policy.MaxAttempts != 9 || j.State != job.Scheduled || j.RunAt.Year() != 2030 {
		t.Errorf("run 2 is %+v", j)
	}
	h.post(path, `{"run":1,"queue":"plain"}`).want(t, http.StatusConflict)
}

func TestRedo_SplicesAnEnvelope(t *testing.T) {
	h := start(t)
	id := h.send("orders", anEnvelope).Jobs[0].ID
	h.fail("orders", "io", "broken", "")
	h.redo(id, "payload", `"no object"`).want(t, http.StatusUnprocessableEntity)
	h.redo(id, "payload", `{"n":7}`).want(t, http.StatusSeeOther)
	j := h.stored(id).Job
	e, poison := envelope.Parse(j.Envelope)
	if poison != nil || string(e.Data) != `{"n":7}` || string(j.Payload) != `{"n":7}` || e.TraceID != j.TraceID {
		t.Errorf("the envelope is %s, the payload %s", j.Envelope, j.Payload)
	}
	was, _ := envelope.Parse([]byte(anEnvelope))
	if want := strings.Replace(anEnvelope, string(was.Data), `{"n":7}`, 1); string(j.Envelope) != want {
		t.Errorf("the envelope is\n%s, want\n%s", j.Envelope, want)
	}
}

func TestRedo_ReadsAMendedEnvelope(t *testing.T) {
	h := start(t)
	const poison = `{"job":"email.send","trace_id":"t","data":{"n":1},"meta":{"schema_version":1},"attempts":"3"}`
	id := h.send("orders", poison).Jobs[0].ID
	a := h.redo(id, "payload", strings.Replace(poison, `"t"`, `""`, 1)).want(t, http.StatusUnprocessableEntity)
	if text := a.dom(t).text(); !strings.Contains(text, "cannot be read as an envelope") {
		t.Error("it does not say that the envelope still cannot be read")
	}
	h.redo(id, "payload", strings.Replace(poison, `"3"`, `3`, 1)).want(t, http.StatusSeeOther)
	j := h.stored(id).Job
	if j.Type != "email.send" || string(j.Payload) != `{"n":1}` || j.TraceID != "t" || j.Timeout != 30*time.Second || j.State != job.Available {
		t.Errorf("it is a %s with %s, trace %q, ttr %v, %s", j.Type, j.Payload, j.TraceID, j.Timeout, j.State)
	}
	if was := h.stored(id).RunAs(1); was.Type != envelope.Unread || string(was.Payload) != poison {
		t.Errorf("run 1 was a %s with %s", was.Type, was.Payload)
	}
}

// A secret is locked in the editor: it stays when it is left alone, is never on
// the page, and its lock is worth nothing at another place.
func TestRedo_PutsLockedSecretsBack(t *testing.T) {
	h := start(t)
	const secret = "hush-4711"
	id := h.broken(`{"to":"paylane","card":{"token":"` + secret + `","last4":"4242"}}`)
	page := h.get("/jobs/"+id+"/replay").want(t, http.StatusOK)
	text := strings.TrimPrefix(page.dom(t).named("payload").FirstChild.Data, "\n")
	if strings.Contains(page.body, secret) || !strings.Contains(text, redact.Hidden) {
		t.Fatalf("the editor holds %s", text)
	}
	if !strings.Contains(page.dom(t).text(), "1 value is locked") {
		t.Error("the page does not say that a value is locked")
	}
	moved := strings.Replace(text, `"4242"`, `"`+redact.Hidden+`#1"`, 1)
	a := h.redo(id, "payload", moved).want(t, http.StatusUnprocessableEntity)
	if strings.Contains(a.body, secret) || h.stored(id).Job.Run != 1 {
		t.Error("a lock was taken to another place")
	}
	a = h.redo(id, "payload", strings.Replace(text, "paylane", "eu2", 1), "do", "check").want(t, http.StatusOK)
	if strings.Contains(a.body, secret) {
		t.Error("the difference shows the secret")
	}
	h.redo(id, "payload", strings.Replace(text, "paylane", "eu2", 1)).want(t, http.StatusSeeOther)
	if got := string(h.stored(id).Job.Payload); got != `{"to":"eu2","card":{"token":"`+secret+`","last4":"4242"}}` {
		t.Errorf("run 2 has %s", got)
	}
	for _, path := range []string{"/jobs/" + id, "/api/v1/jobs/" + id, "/jobs/" + id + "/payload"} {
		if strings.Contains(h.get(path).want(t, http.StatusOK).body, secret) {
			t.Errorf("%s shows the secret", path)
		}
	}
}

// A payload that cannot be read is told as that, locks or not.
func TestRedo_NamesTheLineThatIsNoJSON(t *testing.T) {
	h := start(t)
	id := h.broken(`{"token":"hush-4711"}`)
	a := h.redo(id, "payload", "{\n\"token\": \""+redact.Hidden+"#1\",\n}").want(t, http.StatusUnprocessableEntity)
	if text := a.dom(t).text(); !strings.Contains(text, "in line 3") {
		t.Error("it does not name the line")
	}
}

// A secret cannot be guessed: the answer to the right guess is that to a wrong
// one, whatever is hidden and whatever is typed around it.
func TestRedo_SaysNothingAboutAGuess(t *testing.T) {
	h := start(t)
	id := h.broken(`{"n":1,"password":"right","secret":{"a":"x","b":1},"log":"token=right","twice":{"pin":"right","pin":"right"}}`)
	token := func(n int) string { return fmt.Sprintf("%s#%d", redact.Hidden, n) }
	shown := `{"n":1,"password":"` + token(1) + `","secret":"` + token(2) + `","log":"token=` + token(3) + `","twice":{"pin":"` + token(4) + `","pin":"` + token(5) + `"}}`
	for at, c := range map[string]struct{ masked, right, wrong string }{
		"$.password":  {`"` + token(1) + `"`, `"right"`, `"wrong"`},
		"$.secret":    {`"` + token(2) + `"`, `{"a":"x","b":1}`, `{"a":"x","b":2}`},
		"$.log":       {`"token=` + token(3) + `"`, `"token=right"`, `"token=wrong"`},
		"$.twice.pin": {`"` + token(5) + `"`, `"right"`, `"wrong"`},
	} {
		if !strings.Contains(shown, c.masked) {
			t.Fatalf("%s does not hold %s", shown, c.masked)
		}
		var answers []string
		for _, guess := range []string{c.right, c.wrong} {
			a := h.redo(id, "payload", strings.Replace(shown, c.masked, guess, 1), "do", "check").want(t, http.StatusOK)
			if !strings.Contains(a.dom(t).text(), at) {
				t.Errorf("the guess %s at %s is not called a change", guess, at)
			}
			answers = append(answers, a.dom(t).text())
		}
		if len(answers[0]) != len(answers[1]) {
			t.Errorf("%s: the answers differ:\n%s\n%s", at, answers[0], answers[1])
		}
	}
	if text := h.redo(id, "payload", shown, "do", "check").want(t, http.StatusOK).dom(t).text(); strings.Contains(text, "$.") {
		t.Error("what was shown counts as a change")
	}
}
