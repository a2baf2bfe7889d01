package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"reflect"
	"strings"
	"testing"

	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/envelope"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
)

const anEnvelope = `{"job":"urn:babel:orders:created","trace_id":"7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b","data":{ "n":12345678901234567890, "f":1.0, "e":{} },"meta":{"id":"m-1","schema_version":1},"attempts":0}`

// taken is the answer about envelopes.
type taken struct {
	Jobs []struct {
		ID     string
		State  job.State
		Repeat bool
		Reason retry.Reason
		Error  struct{ Type, Message string }
	}
	Accepted, Repeated, Poison, Refused int
}

// send hands one envelope over.
func (h *house) send(queue, envelope string) taken {
	h.t.Helper()
	a := h.post("/api/v1/queues/"+queue+"/envelopes", envelope)
	if a.StatusCode != http.StatusCreated && a.StatusCode != http.StatusOK {
		h.t.Fatalf("status %d: %s", a.StatusCode, clip.Text(a.body, 500))
	}
	return decode[taken](h.t, a)
}

// download is the envelope of a job.
func (h *house) download(id, query string) string {
	h.t.Helper()
	return h.get("/api/v1/jobs/"+id+"/envelope"+query).want(h.t, http.StatusOK).body
}

// replay starts the next run.
func (h *house) replay(id string, run int) {
	h.t.Helper()
	h.post("/api/v1/jobs/"+id+"/replay", fmt.Sprintf(`{"run":%d}`, run)).want(h.t, http.StatusOK)
}

// stored is everything about a job.
func (h *house) stored(id string) history.Detail {
	h.t.Helper()
	d, err := h.store.Job(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return d
}

// genuine is an envelope that a real program stored, and what a person agreed
// that it is.
type genuine struct{ place, reason, came, original string }

func corpus(t *testing.T) (all []genuine) {
	t.Helper()
	data, err := os.ReadFile("../envelope/testdata/golden.txt")
	if err != nil {
		t.Fatal(err)
	}
	for block := range strings.SplitSeq(strings.TrimSpace(string(data)), "\n  original  ") {
		lines := strings.Split(block, "\n")
		if len(all) > 0 {
			all[len(all)-1].original = lines[0]
			lines = lines[1:]
		}
		if len(lines) < 6 {
			break
		}
		reason, _, _ := strings.Cut(strings.TrimSpace(lines[1]), ":")
		all = append(all, genuine{lines[0], strings.TrimSuffix(reason, "readable"), strings.TrimPrefix(lines[5], "  came      "), ""})
	}
	return all
}

// TestEnvelopes_Corpus takes every genuine envelope through its life: handed
// over, dead, downloaded, replayed.
func TestEnvelopes_Corpus(t *testing.T) {
	h := start(t)
	all := corpus(t)
	if len(all) < 70 {
		t.Fatalf("%d genuine envelopes", len(all))
	}
	for _, g := range all {
		j := h.send("orders", g.came).Jobs[0]
		if string(j.Reason) != g.reason {
			t.Errorf("%s: %q, want %q", g.place, j.Reason, g.reason)
		}
		if j.Reason == "" {
			h.fail("orders", "http.503", "closed", "")
		}
		if got := h.download(j.ID, "?original=1"); got != g.came {
			t.Errorf("%s: it came as\n%s, and is\n%s", g.place, g.came, got)
		}
		annotated := h.download(j.ID, "")
		deadLetter := h.stored(j.ID).DeadLetters[0]
		if j.Reason != "" {
			deadLetter.Attempts = attemptsOf(g.came)
		}
		if want, _ := envelope.Annotate([]byte(g.came), deadLetter); annotated != string(want) {
			t.Errorf("%s: marked\n%s, want\n%s", g.place, annotated, want)
		}
		h.replay(j.ID, 1)
		if got := h.download(j.ID, ""); got != g.original {
			t.Errorf("%s: replayed\n%s, want\n%s", g.place, got, g.original)
		}
		h.post("/api/v1/jobs/"+j.ID+"/cancel", `{"run":2}`).want(t, http.StatusOK)
	}
}

func attemptsOf(raw string) int {
	e, _ := envelope.Parse([]byte(raw))
	return e.Attempts
}

func TestEnvelopes_ValidOneBecomesAJob(t *testing.T) {
	h := start(t)
	got := h.send("shop", anEnvelope)
	if got.Accepted != 1 || len(got.Jobs) != 1 || got.Jobs[0].State != job.Available {
		t.Fatalf("answer %+v", got)
	}
	j := h.stored(got.Jobs[0].ID).Job
	if j.Type != "urn:babel:orders:created" || j.Queue != "shop" || j.TraceID != "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b" || j.MessageID != "m-1" {
		t.Errorf("job %+v", j)
	}
	if string(j.Payload) != `{ "n":12345678901234567890, "f":1.0, "e":{} }` || string(j.Meta) != `{"id":"m-1","schema_version":1}` || string(j.Envelope) != anEnvelope {
		t.Errorf("payload %s, meta %s, envelope %s", j.Payload, j.Meta, j.Envelope)
	}
	if claimed := h.claim("shop"); len(claimed) != 1 || claimed[0].TraceID != j.TraceID {
		t.Errorf("claimed %+v", claimed)
	}
}

// badEnvelope is an envelope, and the reason for which it is set aside, if any.
type badEnvelope struct {
	name, envelope string
	want           retry.Reason
}

func badEnvelopes() []badEnvelope {
	with := func(old, new string) string { return strings.Replace(anEnvelope, old, new, 1) }
	data := func(v string) string { return with(`{ "n":12345678901234567890, "f":1.0, "e":{} }`, v) }
	room := job.MaxPayload - len(data(`[""]`))
	return []badEnvelope{
		{"no JSON", `{"job":`, retry.NotJSON},
		{"text", "hello", retry.NotJSON},
		{"NUL", "\x00", retry.NotJSON},
		{"an array", "[" + anEnvelope + "]", retry.NotJSON},
		{"two", anEnvelope + anEnvelope, retry.NotJSON},
		{"1 MiB", data(`["` + strings.Repeat("x", room) + `"]`), ""},
		{"many brackets", strings.Repeat("[", job.MaxPayload/64), retry.NotJSON},
		{"deeper than 128", data(strings.Repeat("[", 128) + strings.Repeat("]", 128)), retry.NotJSON},
		{"version 2", with(`"schema_version":1`, `"schema_version":2`), retry.UnsupportedVersion},
		{"version in quotes", with(`"schema_version":1`, `"schema_version":"1"`), retry.UnsupportedVersion},
		{"version 1.0", with(`"schema_version":1`, `"schema_version":1.0`), retry.UnsupportedVersion},
		{"attempts in quotes", with(`"attempts":0`, `"attempts":"3"`), retry.InvalidAttempts},
		{"attempts -1", with(`"attempts":0`, `"attempts":-1`), retry.InvalidAttempts},
		{"attempts 1e400", with(`"attempts":0`, `"attempts":1e400`), retry.InvalidAttempts},
		{"twice", with(`"attempts":0`, `"attempts":0,"attempts":1`), retry.NotJSON},
		{"invalid UTF-8", data("[\"\xff\"]"), retry.NotJSON},
		{"half a surrogate pair", data(`["\ud800"]`), retry.NotJSON},
		{"URN too long", with("orders", strings.Repeat("x", job.MaxType)), retry.MissingURN},
		{"URN reserved", with("urn:babel:orders:created", envelope.Unread), retry.MissingURN},
		{"trace id too long", with("7b3f9c2a", strings.Repeat("x", job.MaxTraceID)), retry.MissingTraceID},
		{"meta too large", with(`{"id"`, `{"x":"`+strings.Repeat("x", job.MaxMeta)+`","id"`), retry.MissingMeta},
		{"message id too long", with("m-1", strings.Repeat("x", job.MaxMessageID+1)), ""},
		{"no meta", with(`"meta"`, `"Meta"`), retry.MissingMeta},
		{"no data", with(`"data"`, `"date"`), retry.InvalidData},
		{"no trace id", with(`"trace_id"`, `"trace"`), retry.MissingTraceID},
		{"an empty object", "{}", retry.MissingURN},
	}
}

func TestEnvelopes_BadOnesAreKeptToTheByte(t *testing.T) {
	h := start(t)
	for i, test := range badEnvelopes() {
		t.Run(test.name, func(t *testing.T) {
			h := &house{t: t, store: h.store, http: h.http, opts: h.opts}
			got := h.send(fmt.Sprintf("q%d", i), test.envelope).Jobs[0]
			if got.Reason != test.want {
				t.Fatalf("reason %q, want %q", got.Reason, test.want)
			}
			if h.download(got.ID, "?original=1") != test.envelope {
				t.Error("its bytes are not as they came")
			}
			a := h.get("/api/v1/jobs/"+got.ID+"/envelope").want(t, http.StatusOK)
			if kind := a.Header.Get("Content-Type"); (kind == "application/json") != json.Valid([]byte(a.body)) {
				t.Errorf("Content-Type %s", kind)
			}
			if test.want == "" {
				return
			}
			d := h.stored(got.ID)
			if d.Job.Status() != job.StatusDeadLetter || string(d.Job.Payload) != test.envelope || d.Job.Type != envelope.Unread ||
				len(d.DeadLetters) != 1 || d.DeadLetters[0].Reason != test.want || got.Error.Type != "envelope."+string(test.want) || got.Error.Message == "" {
				t.Errorf("job %s of type %s, letters %+v, error %+v", d.Job.Status(), d.Job.Type, d.DeadLetters, got.Error)
			}
			h.get("/jobs/"+got.ID).want(t, http.StatusOK)
			h.get("/api/v1/jobs/"+got.ID).want(t, http.StatusOK)
		})
	}
	h.get("/dead-letters").want(t, http.StatusOK)
	h.get("/dead-letters?reason=not_json").want(t, http.StatusOK)
}

func TestEnvelopes_RequestsThatAreRefusedWriteNothing(t *testing.T) {
	h := start(t)
	const path, ndjson = "/api/v1/queues/shop/envelopes", "application/x-ndjson"
	large := strings.Repeat("x", job.MaxPayload+1)
	tests := []struct {
		name, path, kind, body string
		status                 int
		code, field            string
	}{
		{"larger than 1 MiB", path, "application/json", large, 413, "too_large", ""},
		{"a line larger than 1 MiB", path, ndjson, anEnvelope + "\n\n" + large + "\n{}", 413, "too_large", "line 3"},
		{"a body larger than 64 MiB", path, ndjson, strings.Repeat(" ", maxBatch+1), 413, "too_large", ""},
		{"too many lines", path, ndjson, strings.Repeat("{}\n", job.MaxBatch+1), 422, "invalid_value", "line 10001"},
		{"nothing", path, "application/json", " \n", 400, "malformed", ""},
		{"no lines", path, ndjson, "\r\n\n", 400, "malformed", ""},
		{"a form", path, "application/x-www-form-urlencoded", "a=b", 415, "unsupported_media_type", ""},
		{"no queue", "/api/v1/queues/a%20b/envelopes", "application/json", anEnvelope, 400, "invalid_parameter", "queue"},
	}
	before := h.store.Snapshot()
	for _, test := range tests {
		a := h.do(http.MethodPost, test.path, test.body, "Content-Type", test.kind)
		if f := decode[problemAnswer](t, a.want(t, test.status)); f.Error.Code != test.code || f.Error.Field != test.field {
			t.Errorf("%s: %+v, want %s, field %q", test.name, f.Error, test.code, test.field)
		}
	}
	if after := h.store.Snapshot(); !reflect.DeepEqual(after, before) {
		t.Errorf("a refused request wrote something: %+v, before %+v", after, before)
	}
}

func TestEnvelopes_LinesStandForThemselves(t *testing.T) {
	h := start(t)
	second := strings.Replace(anEnvelope, "m-1", "m-2", 1)
	body := strings.Join([]string{anEnvelope, "", "nonsense", second + "\r", " \t\r", anEnvelope, "{}"}, "\n")
	a := h.do(http.MethodPost, "/api/v1/queues/shop/envelopes", body, "Content-Type", "application/x-ndjson; charset=utf-8").want(t, http.StatusCreated)
	got := decode[taken](t, a)
	if got.Accepted != 2 || got.Repeated != 1 || got.Poison != 2 || len(got.Jobs) != 5 {
		t.Fatalf("answer %s", a.body)
	}
	if got.Jobs[3].ID != got.Jobs[0].ID || !got.Jobs[3].Repeat {
		t.Errorf("the repeat got %+v", got.Jobs[3])
	}
	for i, want := range []string{anEnvelope, "nonsense", second, anEnvelope, "{}"} {
		if sent := h.download(got.Jobs[i].ID, "?original=1"); sent != want {
			t.Errorf("envelope %d is %q, want %q", i, sent, want)
		}
	}
}

func TestEnvelopes_ManyLines(t *testing.T) { manyLines(t, 1000) }

func TestLong_EnvelopesTenThousandLines(t *testing.T) { manyLines(t, job.MaxBatch) }

func manyLines(t *testing.T, n int) {
	t.Helper()
	h := start(t)
	a := h.do(http.MethodPost, "/api/v1/queues/shop/envelopes", strings.Repeat("{}\n", n), "Content-Type", "application/x-ndjson")
	if got := decode[taken](t, a.want(t, http.StatusCreated)); got.Poison != n {
		t.Errorf("poison %d", got.Poison)
	}
}

func TestEnvelopes_FirstJobAnswersForALiveMessageID(t *testing.T) {
	h := start(t)
	first := h.send("orders", anEnvelope).Jobs[0]
	a := h.post("/api/v1/queues/orders/envelopes", anEnvelope).want(t, http.StatusOK)
	if again := decode[taken](t, a); again.Jobs[0].ID != first.ID || again.Repeated != 1 {
		t.Errorf("the repeat got %+v", again)
	}
	if other := h.send("shop", anEnvelope); other.Accepted != 1 {
		t.Errorf("in another queue: %+v", other)
	}
	h.fail("orders", "http.503", "closed", "")
	if later := h.send("orders", anEnvelope); later.Accepted != 1 || later.Jobs[0].ID == first.ID {
		t.Errorf("after the first one had ended: %+v", later)
	}
}

func TestEnvelopes_PoisonIsNoRepeat(t *testing.T) {
	h := start(t)
	first := h.send("shop", anEnvelope).Jobs[0]
	newer := strings.Replace(anEnvelope, `"schema_version":1`, `"schema_version":2`, 1)
	if got := h.send("shop", newer); got.Poison != 1 || got.Jobs[0].ID == first.ID {
		t.Errorf("poison with the id of a live job: %+v", got)
	}
}

func TestEnvelopes_RefusedByARuleIsADeadLetter(t *testing.T) {
	c, err := config.Parse("redrive.yaml", []byte(`
rules:
  before_enqueue:
    - {name: closed, when: 'job.type startsWith "urn:babel:orders:"', refuse: orders are closed}
`))
	if err != nil {
		t.Fatal(err)
	}
	h := start(t, func(o *Options) { o.Config = c })
	got := h.send("shop", anEnvelope)
	if j := got.Jobs[0]; got.Refused != 1 || j.Reason != retry.RuleDecided || !strings.Contains(j.Error.Message, "orders are closed (rule closed)") {
		t.Fatalf("answer %+v", got)
	}
	j := h.stored(got.Jobs[0].ID).Job
	if j.Status() != job.StatusDeadLetter || j.Type != "urn:babel:orders:created" || j.Policy.MaxAttempts != 3 || string(j.Envelope) != anEnvelope {
		t.Errorf("job %+v", j)
	}
	if marked := h.download(j.ID, ""); !strings.Contains(marked, `"dead_letter":{"reason":"rule","error":"orders are closed`) {
		t.Errorf("marked %s", marked)
	}
	if poison := h.send("shop", "{}"); poison.Poison != 1 {
		t.Errorf("no rule is asked about poison: %+v", poison)
	}
}

func TestEnvelopes_DownloadFollowsTheJob(t *testing.T) {
	h := start(t)
	tried := strings.Replace(anEnvelope, `"attempts":0`, `"attempts":7`, 1)
	id := h.send("orders", tried).Jobs[0].ID
	if got := h.download(id, ""); got != anEnvelope {
		t.Errorf("before it ran: %s", got)
	}
	h.fail("orders", "http.503", `the "warehouse" <is> closed`, "")
	a := h.get("/api/v1/jobs/"+id+"/envelope").want(t, http.StatusOK)
	failedAt := h.stored(id).DeadLetters[0].FailedAt.UnixMilli()
	want := fmt.Sprintf(`%s,"attempts":1,"dead_letter":{"reason":"failed","error":"the \"warehouse\" <is> closed","exception":"http.503","failed_at":%d,"original_queue":"orders","attempts":1,"lang":"go"}}`,
		strings.TrimSuffix(anEnvelope, `,"attempts":0}`), failedAt)
	if a.body != want {
		t.Errorf("dead:\n%s, want\n%s", a.body, want)
	}
	if a.Header.Get("Content-Disposition") != `attachment; filename="`+id+`.json"` || a.Header.Get("X-Content-Type-Options") != "nosniff" || a.Header.Get("Content-Type") != "application/json" {
		t.Errorf("headers %v", a.Header)
	}
	h.replay(id, 1)
	if got := h.download(id, ""); got != anEnvelope {
		t.Errorf("after the replay: %s", got)
	}
	if got := h.download(id, "?original=1"); got != tried {
		t.Errorf("as it came: %s", got)
	}
}

func TestEnvelopes_PlainJobHasNone(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"t"}`)
	if f := decode[problemAnswer](t, h.get("/api/v1/jobs/"+id+"/envelope").want(t, 404)); !strings.Contains(f.Error.Message, "/jobs/"+id+"/payload") {
		t.Errorf("message %q", f.Error.Message)
	}
	h.get("/api/v1/jobs/"+unknownID+"/envelope").want(t, 404)
	h.get("/api/v1/jobs/7/envelope").want(t, 400)
}

// The bridge has nowhere to put an envelope back: the setting of the queue is
// about jobs that ran.
func TestEnvelopes_SetAsideIsKeptWhateverTheQueueSays(t *testing.T) {
	h := startWith(t, withRules+`
queues:
  "off": {dead_letter: {enabled: false}}
  away: {dead_letter: {webhook: {url: "http://127.0.0.1:1/", secret: 0123456789abcdef0123456789abcdef}}}
`)
	for _, queue := range []string{"off", "away"} {
		for _, envelope := range []string{"{", strings.Replace(anEnvelope, "urn:babel:orders:created", "giant", 1)} {
			d := h.stored(h.send(queue, envelope).Jobs[0].ID)
			if d.Job.Status() != job.StatusDeadLetter || len(d.DeadLetters) != 1 || d.DeadLetters[0].Refused || d.DeadLetters[0].ForwardedTo != "" {
				t.Errorf("%s: %.10s is %s, letters %+v; want it kept", queue, envelope, d.Job.Status(), d.DeadLetters)
			}
		}
	}
}
