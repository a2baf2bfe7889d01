package server

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/access"
	"redrive/internal/bulk"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
)

var update = flag.Bool("update", false, "write testdata/answers.txt again")

const answersFile = "testdata/answers.txt"

// A program reads the members of an answer by their names, and some compare whole
// answers: every answer of a seeded dashboard stays the same to the byte, but for ids and
// digits of times. So does what is said of each wrong request.
// To take a change over: go test ./internal/server -run TestAnswers -update
func TestAnswers_StayTheSameToTheByte(t *testing.T) {
	var b strings.Builder
	for _, e := range exchanges(t) {
		if e.path == documentPath { // which is a file of its own
			continue
		}
		fmt.Fprintf(&b, "%s %s %s\n%d %s\n%s\n----\n", e.method, e.path, e.sent, e.StatusCode, e.Header.Get("Content-Type"), e.body)
	}
	got := anonymous(b.String())
	if *update {
		if err := os.WriteFile(answersFile, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(answersFile)
	if err != nil {
		t.Fatalf("%v; run the test with -update", err)
	}
	want := strings.Split(string(data), "\n----\n")
	for i, got := range strings.Split(got, "\n----\n") {
		if i >= len(want) {
			t.Fatalf("more is answered than before:\n%s", got)
		}
		if got != want[i] {
			t.Errorf("got\n%s\nwant\n%s", got, want[i])
		}
	}
}

// What differs between two runs: ids, hashes, secrets, cursors, times, and the hour in
// which the test runs.
var (
	uuids   = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)
	instant = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d`)
	micros  = regexp.MustCompile(`(TIME\.)\d+`)
	hashes  = regexp.MustCompile(`("hash":"|,)[0-9a-f]{64}`)
	secrets = regexp.MustCompile(`("secret":")[^"]+`)
	known   = regexp.MustCompile(`("(?:sessions|tokens|token)":(?:\[|)\{"id":"|\},\{"id":")([^"]+)(","(?:user|name)":")`)
	audited = regexp.MustCompile(`(token\.(?:create|revoke)(?:","subject":"|,))[a-z0-9]+`)
	cursors = regexp.MustCompile(`("next":"|after=)[A-Za-z0-9_-]{8,}`)
	counts  = regexp.MustCompile(`("last_day":\[)[0-9,]*\]`)
	hours   = regexp.MustCompile(`("at":"[^"]*","failures":)\d+(,"final":)\d+`)
	millis  = regexp.MustCompile(`("failed_at":)\d+`)
	steps   = regexp.MustCompile(`("step_seconds":)[0-9.]+(,"done":\[)[0-9,]*\]`)
)

// anonymous writes a number for each id, in the order in which they occur, and a word
// for everything else that differs between two runs.
func anonymous(text string) string {
	ids := map[string]int{}
	text = uuids.ReplaceAllStringFunc(text, func(id string) string {
		if ids[id] == 0 {
			ids[id] = len(ids) + 1
		}
		return fmt.Sprintf("ID-%d", ids[id])
	})
	text = instant.ReplaceAllStringFunc(text, func(at string) string {
		if at > "2990" || at < "2020" { // the test has written it
			return at
		}
		return "TIME"
	})
	text = micros.ReplaceAllStringFunc(text, func(at string) string { return "TIME." + strings.Repeat("0", len(at)-len("TIME.")) })
	for pattern, with := range map[*regexp.Regexp]string{
		hashes: "${1}HASH", secrets: "${1}SECRET", known: "${1}NAMED$3", audited: "${1}NAMED", cursors: "${1}CURSOR", counts: "${1}COUNTS]",
		hours: "${1}COUNT${2}COUNT", steps: "${1}STEP${2}COUNTS]", millis: "${1}MILLISECONDS",
	} {
		text = pattern.ReplaceAllString(text, with)
	}
	return text
}

// exchange is a request with its answer.
type exchange struct {
	answer
	method, path, sent string
}

// seeded is a dashboard with something of everything that the API speaks of.
type seeded struct {
	*house
	said  []exchange
	token string // with which requests come
}

// exchanges asks a seeded dashboard everything that the API answers.
func exchanges(t *testing.T) []exchange {
	t.Helper()
	s := openSeeded(t)

	s.bringJobs()
	s.failGroups()
	s.operate()
	s.manage()
	s.refuseBodies()
	s.refuseAddresses()
	s.look()

	return s.said
}

// openSeeded is a dashboard with users, tokens, two sources and a worker that is stuck.
func openSeeded(t *testing.T) *seeded {
	t.Helper()
	since := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	health := []source.Health{
		{
			Name: "shop", Preset: "sidekiq", Profile: source.Profile{Title: "Sidekiq", Hazards: []string{"It has no transactions."}},
			Allow: []source.Kind{source.Replay, source.Discard}, Every: time.Minute, Report: source.Report{Version: "7.2", Tells: true},
			Ready: true, Polled: since, Took: 1500 * time.Millisecond, Next: since.Add(time.Minute),
			Quarantined: []source.Quarantined{{Refusal: source.Refusal{Key: "k1", Why: "it has no class"}, Since: since}}, Beyond: 2,
		},
		{Name: "mail", Preset: "laravel", Problem: "connection refused", Since: since},
	}
	var runner *bulk.Runner
	h := start(t, func(o *Options) {
		o.Engine.Notify = func() { runner.Notify() }
		o.Engine.Sources = func() []source.Health { return health }
		o.Engine.Worker = "worker-1"
		o.Engine.Stuck = func() []job.Stuck {
			return []job.Stuck{{Job: job.Job{Token: job.Token{ID: "0190a0a0-0000-7000-8000-000000000001"}, Type: "slow", Queue: "orders", StartedAt: since}, Since: since}}
		}
	})
	runner = bulk.Start(h.store.Operations, nil)
	t.Cleanup(runner.Close)
	return &seeded{house: h, token: h.staff()[access.Admin]}
}

// ask sends a request and notes it with its answer.
func (s *seeded) ask(method, path, body string, headers ...string) answer {
	s.t.Helper()
	headers = append([]string{"Authorization", "Bearer " + s.token, "Content-Type", "application/json"}, headers...)
	a := s.request(method, path, body, headers...)
	s.said = append(s.said, exchange{a, method, path, body})
	return a
}

// do changes something through the API, which has to succeed.
func (s *seeded) do(path, body string, headers ...string) answer {
	s.t.Helper()
	a := s.ask(http.MethodPost, "/api/v1"+path, body, headers...)
	if a.StatusCode > http.StatusCreated {
		s.t.Fatalf("%s %s: %d %s", path, body, a.StatusCode, a.body)
	}
	return a
}

// bring enqueues a job and returns its id.
func (s *seeded) bring(body string) string {
	s.t.Helper()
	return decode[struct{ Job struct{ ID string } }](s.t, s.do("/jobs", body)).Job.ID
}

const aDeadJob = `{"type":"order.ship","queue":"orders","payload":{"n":1}}`

// dies brings a job that becomes a dead letter.
func (s *seeded) dies() string {
	s.t.Helper()
	id := s.bring(aDeadJob)
	s.fail("orders", "http.503", "the warehouse is closed", "at line 1")
	return id
}

// bringJobs makes jobs in every state, and acts on them.
func (s *seeded) bringJobs() {
	s.bring(`{"type":"email.send","payload": { "n" : 12345678901234567890, "f":1.0, "t":"<é\u00e9>" } ,"meta":{ "tenant": "a<b", "n": 1.0 },` +
		`"priority":-5,"ttr":"PT1M30S","trace_id":"t-1","policy":{"max_attempts":3,"jitter":[0.5,1.5],"schedule":["1s","2m"]}}`)
	s.bring(`{"type":"later","run_at":"2999-01-01T00:00:00.5+01:00","expires_at":"2999-02-01T00:00:00Z","queue":"mail","policy":"sidekiq"}`)
	s.bring(`{"type":"later","delay":"1h","expires_in":"2h","queue":"mail"}`)
	moved := s.bring(`{"type":"later","delay":"1h","queue":"mail"}`)
	s.do("/jobs/"+moved+"/reschedule", `{"run":1,"run_at":"2999-01-01T00:00:00Z"}`)
	s.do("/jobs/"+moved+"/reschedule", `{"run":1,"delay":"0s"}`)
	gone := s.bring(`{"type":"unknown","queue":"other","payload":null}`)
	s.do("/jobs/"+gone+"/cancel", `{"run":1}`)

	first := s.do("/jobs", `{"type":"keyed"}`, "Idempotency-Key", "k1").body
	if again := s.do("/jobs", `{"type":"keyed"}`, "Idempotency-Key", "k1"); again.StatusCode != http.StatusOK {
		s.t.Fatalf("a repeat of %s is %d", first, again.StatusCode)
	}
	s.ask("POST", "/api/v1/jobs", `{"type":"other"}`, "Idempotency-Key", "k1")
	s.do("/jobs/batch", `{"jobs":[{"type":"a"},{"type":"unknown","queue":"other"}]}`)
	s.do("/queues/shipping/envelopes", anEnvelope)
	poison := decode[taken](s.t, s.do("/queues/shipping/envelopes", `{"data":{}}`)).Jobs[0].ID
	s.ask("GET", "/api/v1/jobs/"+poison+"/envelope", "")
	s.ask("GET", "/api/v1/jobs/"+poison+"/envelope?original=1", "")

	dead := s.dies()
	s.do("/jobs/"+dead+"/reveal", "")
	s.do("/jobs/"+dead+"/replay", `{"run":1,"payload":{ "n": 2 },"queue":"orders","priority":3,"delay":"1h","policy":{"max_attempts":2}}`)
	s.ask("POST", "/api/v1/jobs/"+dead+"/replay", `{"run":1}`)
	trashed, restored := s.dies(), s.dies()
	s.do("/jobs/"+trashed+"/discard", `{"run":1}`)
	s.do("/jobs/"+restored+"/discard", `{"run":1}`)
	s.do("/jobs/"+restored+"/restore", `{"run":1}`)
	refused := s.refused()
	s.ask("POST", "/api/v1/jobs/"+refused+"/forward", `{"run":1}`)
	s.refused()
	s.retrying()

	s.bring(`{"type":"running","queue":"plain","payload":"text"}`)
	s.claim("plain")
	long := s.bring(aDeadJob)
	s.fail("orders", "http.500", strings.Repeat("long message ", 60), "")
	s.ask("GET", "/api/v1/jobs/"+long, "")
	s.records()
}

// refused brings a job whose dead letter is refused.
func (s *seeded) refused() string {
	s.t.Helper()
	id := s.bring(aDeadJob)
	s.settle("orders", job.Ending{Outcome: job.TimedOut, Error: job.ErrorInfo{Type: "timed_out"}},
		job.Delivery{Problem: "https://dlq.example answered 507 Insufficient Storage"})
	return id
}

// retrying brings a job that failed once and waits for its next attempt.
func (s *seeded) retrying() {
	s.t.Helper()
	id := s.bring(`{"type":"email.send","queue":"retries","policy":{"max_attempts":4,"initial_interval":"PT1H","max_interval":"PT1H"}}`)
	s.fail("retries", "http.429", "too many", "")
	s.ask("GET", "/api/v1/jobs/"+id, "")
}

// records mirrors jobs of sources, of which some are acted on.
func (s *seeded) records() {
	s.t.Helper()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	full := source.Record{
		Key: "2", Lineage: "t2", Queue: "orders", Type: "charge", Payload: []byte(`{"a":1}`), Meta: []byte(`{"jid":"x"}`), Attempts: 2, Limit: 2,
		Error: job.ErrorInfo{Type: "Net::ReadTimeout", Message: "no answer"}, Trace: "line 1", FailedAt: at, CreatedAt: at.Add(-time.Hour),
		History: []source.Failure{{Number: 1, At: at.Add(-time.Minute), Error: job.ErrorInfo{Type: "Net::ReadTimeout", Message: "no answer"}}},
	}
	silent := source.Record{Key: "1", Lineage: "t1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)}
	j := s.mirror("shop", silent, full)
	s.mirror("closed", source.Record{Key: "1", Queue: "orders", Type: "charge", Payload: []byte(`{}`)})
	s.do("/jobs/"+j.ID+"/replay", `{"run":1,"mode":"fresh"}`)
	if acts, err := s.store.Sources.Take(s.t.Context(), "shop", 1); err != nil || len(acts) != 1 {
		s.t.Fatalf("%d acts, %v", len(acts), err)
	}
	s.ask("POST", "/api/v1/queues/orders@shop/pause", "")
}

// failGroups decides about error groups.
func (s *seeded) failGroups() {
	list := decode[struct {
		Groups []struct{ Fingerprint string }
	}](s.t, s.ask("GET", "/api/v1/failures", ""))
	if len(list.Groups) < 3 {
		s.t.Fatalf("there are %d groups", len(list.Groups))
	}
	all := make([]string, len(list.Groups))
	for i, g := range list.Groups {
		all[i] = g.Fingerprint
	}
	slices.Sort(all)
	s.do("/failures/"+all[0]+"/note", `{"note":"  ask\r\nthe shop "}`)
	s.do("/failures/"+all[0]+"/resolve", "")
	s.do("/failures/"+all[1]+"/ignore", `{"until":"2999-01-01T00:00:00Z"}`)
	s.do("/failures/"+all[2]+"/ignore", `{"failures":5,"failures_an_hour":7}`)
	s.ask("GET", "/api/v1/failures/"+all[2], "")
	s.do("/failures/"+all[2]+"/reopen", `{}`)
	s.do("/failures/ignore", fmt.Sprintf(`{"groups":[%q,"none"],"for":"2h"}`, all[2]))
	s.do("/failures/resolve", fmt.Sprintf(`{"groups":[%q,%q]}`, all[2], all[0]))
	s.do("/failures/reopen", fmt.Sprintf(`{"groups":[%q]}`, all[2]))
	for _, fingerprint := range all {
		s.ask("GET", "/api/v1/failures/"+fingerprint, "")
	}
}

// operate makes operations and carries them out.
func (s *seeded) operate() {
	a, b := s.dies(), s.dies()
	made := s.do("/operations", fmt.Sprintf(`{"kind":"replay","jobs":[{"id":%q,"run":1},{"id":%q,"run":7}],"guard":false}`, a, b), "Idempotency-Key", "once")
	s.reaches(1, operation.Preview)
	s.do("/operations", fmt.Sprintf(`{"kind":"replay","jobs":[{"id":%q,"run":1},{"id":%q,"run":7}],"guard":false}`, a, b), "Idempotency-Key", "once")
	s.ask("POST", "/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`, "Idempotency-Key", "once")
	s.ask("GET", "/api/v1"+strings.TrimPrefix(made.Header.Get("Location"), "/api/v1"), "")
	s.do("/operations/1/start", `{"rate":0,"canary":0}`)
	s.reaches(1, operation.Finished)
	s.fail("orders", "http.503", "the warehouse is closed", "at line 1")

	s.do("/operations", `{"kind":"discard","filter":"queue:orders type:order.ship","spread":"10m","canary":2}`)
	s.reaches(2, operation.Preview)
	s.do("/operations/2/abort", "")
	s.do("/operations", `{"kind":"replay","relapsed_of":1,"rate":0.5}`)
	s.reaches(3, operation.Preview)
	s.do("/operations/3/abort", "{}")
	s.do("/operations", `{"kind":"replay","filter":"source:shop"}`)
	s.reaches(4, operation.Preview)
	s.ask("POST", "/api/v1/operations/1/start", `{"rate":1}`)
	s.ask("POST", "/api/v1/operations/4/rate", `{"rate":1}`)
	for _, path := range []string{"/1", "/2", "/3", "/4", "/1/items", "/1/items?state=skipped", "/1/items?state=relapsed&limit=1", "/1/rate", "/4/rate"} {
		s.ask("GET", "/api/v1/operations"+path, "")
	}
}

// manage acts on queues, the worker, the configuration, users and tokens.
func (s *seeded) manage() {
	s.do("/queues/orders/pause", "")
	s.ask("GET", "/api/v1/queues/orders", "")
	s.do("/queues/orders/resume", "{}")
	s.do("/queues/other/pause", "")
	s.ask("POST", "/api/v1/queues/other/remove", "")
	s.ask("POST", "/api/v1/queues/orders/remove", "")
	s.do("/workers/quiet", "")
	s.do("/workers/resume", "")
	s.do("/reload", "")

	s.do("/users", `{"name":"ana","role":"viewer","password":"correct horse battery"}`)
	s.do("/users/ana/role", `{"role":"operator"}`)
	s.do("/users/ana/password", `{"password":"battery horse correct"}`)
	s.session("ana")
	sessions := decode[struct{ Sessions []struct{ ID string } }](s.t, s.ask("GET", "/api/v1/sessions", ""))
	made := decode[struct{ Token struct{ ID string } }](s.t, s.do("/tokens", `{"name":"ci","role":"producer","expires":"30d"}`))
	s.ask("GET", "/api/v1/tokens", "")
	s.ended("/tokens/" + made.Token.ID + "/revoke")
	s.ended("/sessions/" + sessions.Sessions[0].ID + "/end")
	s.do("/users/ana/remove", "")
}

// ended is an act whose address and answer have an id that differs from run to run.
func (s *seeded) ended(path string) {
	s.do(path, "")
	last := &s.said[len(s.said)-1]
	parts := strings.Split(path, "/")
	last.path, last.body = strings.ReplaceAll(last.path, parts[2], "NAMED"), strings.ReplaceAll(last.body, parts[2], "NAMED")
}

// bodies are wrong bodies of requests, by address. Each shows one thing that is refused, or
// which of several is named.
var bodies = map[string][]string{
	"/jobs": {
		"", "{}", "[]", "null", `"x"`, "{", `{"type":"a"} x`, `{"type":"a","typ":"b"}`, `{"type":"a","type":"b"}`, `{"type":null}`, `{"type":7}`, `{"type":""}`,
		`{"type":"a b"}`, `{"type":"a\ud800"}`, `{"Type":"a"}`, `{"type":"a","queue":7}`, `{"type":"a","queue":""}`, `{"type":"a","queue":"a b"}`, `{"type":"a","queue":null}`,
		`{"type":"a","priority":"1"}`, `{"type":"a","priority":1.5}`, `{"type":"a","priority":1e2}`, `{"type":"a","priority":101}`, `{"type":"a","priority":1e99}`,
		`{"type":"a","meta":[]}`, `{"type":"a","meta":null}`, `{"type":"a","meta":{"a":1,"a":2}}`, `{"type":"a","meta":{"a":{"b":1,"b":2}}}`,
		`{"type":"a","policy":7}`, `{"type":"a","policy":"none"}`, `{"type":"a","policy":null}`, `{"type":"a","policy":{"max":1}}`,
		`{"type":"a","policy":{"max_attempts":"x","strategy":7}}`, `{"type":"a","policy":{"max_attempts":1,"max_attempts":2}}`, `{"type":"a","policy":{"strategy":"\ud800"}}`,
		`{"type":"a","policy":{"max_attempts":-1}}`, `{"type":"a","policy":{"schedule":[1]}}`, `{"type":"a","policy":{"use":""}}`,
		`{"type":"a","ttr":5}`, `{"type":"a","ttr":"5"}`, `{"type":"a","ttr":"0s"}`, `{"type":"a","ttr":"-1s"}`, `{"type":"a","ttr":null}`, `{"type":"a","ttr":"x\ud800"}`,
		`{"type":"a","trace_id":""}`, `{"type":"a","trace_id":7}`, `{"type":"a","trace_id":"` + strings.Repeat("x", 300) + `"}`,
		`{"type":"a","run_at":"2999-01-01"}`, `{"type":"a","run_at":""}`, `{"type":"a","run_at":7}`, `{"type":"a","run_at":null}`, `{"type":"a","run_at":"2999-01-01T00:00:00,5Z"}`,
		`{"type":"a","run_at":"9999-12-31T23:59:59-01:00"}`, `{"type":"a","delay":"x"}`, `{"type":"a","delay":7}`, `{"type":"a","delay":""}`,
		`{"type":"a","delay":"0s","run_at":"2999-01-01T00:00:00Z"}`, `{"type":"a","expires_in":"1h","expires_at":"2999-01-01T00:00:00Z"}`,
		`{"type":"a","delay":"2h","expires_in":"1h"}`, `{"type":"a","delay":"2h","expires_at":"2020-01-01T00:00:00Z"}`, `{"type":"a","expires_in":"0s"}`,
		`{"queue":7,"type":7}`, `{"ttr":"0s","type":7}`, `{"type":7,"ttr":"0s"}`, `{"type":"a b","priority":999,"queue":"a b"}`, `{"trace_id":"","nope":1}`, `{"nope":1,"trace_id":""}`,
		`{"priority":999,"ttr":"0s"}`, `{"type":"a","delay":"1h","run_at":"x"}`,
	},
	"/jobs/batch": {
		"", "{}", `{"jobs":{}}`, `{"jobs":[]}`, `{"jobs":null}`, `{"jobs":[7]}`, `{"jobs":[null]}`, `{"jobs":[{"type":"a"},{"type":7}]}`, `{"jobs":[{"type":"a"},{"typ":"b"}]}`,
		`{"jobs":[{"type":"a","policy":{"max_attempts":"x"}}]}`, `{"jobs":[{"type":"a","priority":999}]}`, `{"job":[]}`, `{"jobs":[{"type":"a","type":"b"}]}`,
		`{"jobs":[{"type":"a"}],"x":1}`, `{"jobs":[{"type":7}],"x":1}`, `{"jobs":[{"type":"a","meta":{"x":1,"x":2}}]}`, `{"jobs":[{"type":"a","delay":"1s","run_at":"2999-01-01T00:00:00Z"}]}`,
	},
	"/queues/orders/envelopes": {"", "x", " "},
	"/operations": {
		"", "{}", `{"kind":"replay"}`, `{"kind":7}`, `{"kind":"x","filter":"queue:orders"}`, `{"kind":"replay","filter":""}`, `{"kind":"replay","filter":7}`,
		`{"kind":"replay","filter":"state:odd"}`, `{"kind":"replay","filter":"queue:orders","jobs":[]}`, `{"kind":"replay","jobs":[]}`, `{"kind":"replay","jobs":{}}`,
		`{"kind":"replay","jobs":[7]}`, `{"kind":"replay","jobs":[{"id":"x","run":1}]}`, `{"kind":"replay","jobs":[{"id":7,"run":1}]}`, `{"kind":"replay","jobs":[{"run":1}]}`,
		`{"kind":"replay","jobs":[{"id":"0190a0a0-0000-7000-8000-000000000001"}]}`, `{"kind":"replay","jobs":[{"id":"0190a0a0-0000-7000-8000-000000000001","run":"1"}]}`,
		`{"kind":"replay","jobs":[{"id":"0190a0a0-0000-7000-8000-000000000001","run":1,"x":1}]}`, `{"kind":"replay","relapsed_of":0}`, `{"kind":"replay","relapsed_of":"x"}`,
		`{"kind":"discard","relapsed_of":1}`, `{"kind":"replay","relapsed_of":99}`, `{"kind":"replay","filter":"queue:orders","rate":"1"}`,
		`{"kind":"replay","filter":"queue:orders","rate":-1}`, `{"kind":"replay","filter":"queue:orders","spread":"0s"}`, `{"kind":"replay","filter":"queue:orders","spread":7}`,
		`{"kind":"replay","filter":"queue:orders","rate":1,"spread":"1h"}`, `{"kind":"replay","filter":"queue:orders","canary":-1}`,
		`{"kind":"replay","filter":"queue:orders","canary":1.5}`, `{"kind":"replay","filter":"queue:orders","guard":"x"}`, `{"kind":"replay","filter":"queue:orders","guard":null}`,
		`{"kind":"replay","filter":"queue:orders","start":1}`, `{"kind":"replay","filter":"queue:orders","nope":1}`, `{"kind":"restore","filter":"state:dead_letter"}`,
		`{"filter":"state:odd","kind":7}`, `{"kind":7,"filter":"state:odd"}`, `{"canary":-1,"jobs":[]}`, `{"jobs":[],"canary":-1}`, `{"kind":"replay","filter":"x:\ud800"}`,
	},
	"/operations/4/start":         {`{"rate":"x"}`, `{"rate":-1}`, `{"spread":"x"}`, `{"canary":-1}`, `{"canary":null}`, `{"guard":1}`, `{"x":1}`, `[]`},
	"/operations/4/rate":          {"", "{}", `{"canary":1}`, `{"rate":null}`, `{"rate":1e99}`, `{"rate":1,"spread":"1h"}`, `{"spread":"0s"}`},
	"/operations/4/pause":         {`{"rate":1}`, `7`, ""},
	"/operations/4/resume":        {`{"rate":1}`, ""},
	"/operations/4/resume-passed": {`{"rate":1}`, ""},
	"/operations/99/abort":        {""},
	"/operations/x/abort":         {""},
	"/failures/none/note":         {"", "{}", `{"note":null}`, `{"note":7}`, `{"note":"` + strings.Repeat("x", 5000) + `"}`, `{"note":"x","x":1}`, `{"note":"x"}`},
	"/failures/none/ignore":       {`{"until":"x"}`, `{"until":7}`, `{"for":"0s"}`, `{"for":"1h","until":"2999-01-01T00:00:00Z"}`, `{"until":"2999-01-01T00:00:00Z","for":"1h"}`, `{"until":"2999-01-01T00:00:00Z","for":"x"}`, `{"until":"2020-01-01T00:00:00Z"}`, `{"failures":0}`, `{"failures":"1"}`, `{"failures":1e99}`, `{"failures_an_hour":-1}`, `{"groups":[]}`, `{}`},
	"/failures/none/reopen":       {`{"for":"1h"}`, ""},
	"/failures/ignore":            {"", `{"groups":[]}`, `{"groups":"x"}`, `{"groups":[7]}`, `{"groups":null}`, `{"groups":["x\ud800"]}`, `{"groups":["none"],"for":"x"}`},
	"/failures/resolve":           {`{"groups":["none"],"for":"1h"}`, `{}`, `{"groups":["none"]}`},
	"/reload":                     {`{"x":1}`, `[]`},
	"/queues/none/pause":          {""},
	"/queues/orders/pause":        {`{"x":1}`},
	"/queues/a b/envelopes":       {anEnvelope},
	"/workers/quiet":              {`{"x":1}`},
	"/users":                      {"", `{"name":7}`, `{"name":"bob","role":"x","password":"correct horse battery"}`, `{"name":"bob","role":"viewer","password":"x"}`, `{"name":"","role":"viewer"}`, `{"name":"admin","role":"viewer","password":"correct horse battery"}`, `{"name":"bob","role":null}`, `{"name":"bob","x":1}`},
	"/users/none/role":            {"", `{"role":"x"}`, `{"role":"viewer"}`, `{"role":7}`},
	"/users/none/password":        {"", `{"password":7}`, `{"password":"correct horse battery"}`},
	"/users/none/remove":          {"", `{"x":1}`},
	"/sessions/none/end":          {""},
	"/tokens":                     {"", `{"name":"x","role":"x"}`, `{"name":"x","role":"viewer","expires":7}`, `{"name":"x","role":"viewer","expires":"x"}`, `{"name":"x","role":"viewer","expires":"0s"}`, `{"name":"x","role":"viewer","expires":"9999d"}`, `{"name":"","role":"viewer"}`},
	"/tokens/none/revoke":         {""},
}

// refuseBodies sends wrong bodies, also to the acts on a job.
func (s *seeded) refuseBodies() {
	id := s.dies()
	all := maps.Clone(bodies)
	all["/jobs/"+id+"/replay"] = []string{
		"", "{}", `{"run":0}`, `{"run":"1"}`, `{"run":1,"queue":"nowhere"}`, `{"run":1,"queue":"a b"}`, `{"run":1,"queue":7}`, `{"run":1,"priority":"x"}`, `{"run":1,"priority":999}`,
		`{"run":1,"mode":"x"}`, `{"run":1,"mode":7}`, `{"run":1,"policy":{"x":1}}`, `{"run":1,"run_at":"x"}`, `{"run":1,"delay":"1h","run_at":"2999-01-01T00:00:00Z"}`,
		`{"run":1,"expires_in":"1h"}`, `{"queue":"a b","run":"x"}`, `{"mode":"x","queue":"a b"}`, `{"run":0,"queue":"nowhere","priority":999}`, `{"run":9}`, `{"run":1,"payload":`, `{"run":1,"queue":null}`,
	}
	all["/jobs/"+id+"/reschedule"] = []string{
		"", `{"run":1}`, `{"run":1,"run_at":"x"}`, `{"run":1,"delay":"x"}`, `{"run":1,"delay":"1h","run_at":"2999-01-01T00:00:00Z"}`, `{"run":1,"delay":"1h"}`, `{"delay":"1h"}`, `{"run_at":"x","run":"x"}`,
	}
	for _, act := range []string{"discard", "cancel", "restore", "forward"} {
		all["/jobs/"+id+"/"+act] = []string{"", `{"run":"1"}`, `{"run":0}`, `{"run":1,"x":1}`, `{"run":2}`}
	}
	all["/jobs/"+id+"/reveal"] = []string{`{"run":1}`}
	all["/jobs/none/discard"] = []string{`{"run":1}`}
	all["/jobs/0190a0a0-0000-7000-8000-000000000001/discard"] = []string{`{"run":1}`}

	for _, path := range slices.Sorted(maps.Keys(all)) {
		for _, body := range all[path] {
			s.ask("POST", "/api/v1"+strings.ReplaceAll(path, " ", "%20"), body)
		}
	}
	s.ask("POST", "/api/v1/jobs", `{"type":"a"}`, "Content-Type", "text/plain")
	s.ask("POST", "/api/v1/jobs", `{"type":"a"}`, "Idempotency-Key", "")
	s.ask("POST", "/api/v1/operations", `{"kind":"replay","filter":"queue:orders"}`, "Idempotency-Key", strings.Repeat("k", 600))
}

// refuseAddresses asks for what there is not.
func (s *seeded) refuseAddresses() {
	for _, path := range []string{
		"/nothing", "/jobs/none", "/jobs/0190a0a0-0000-7000-8000-000000000001", "/jobs?limit=x", "/jobs?limit=201", "/jobs?state=odd", "/jobs?nope=1", "/jobs?after=x",
		"/jobs?q=a&q=b", "/failures?state=odd", "/failures/none", "/failures/classes?state=odd", "/queues/none", "/queues?after=a%20b", "/sources/none", "/operations/99", "/operations/x",
		"/operations/1/items?state=odd", "/operations?after=x", "/audit?from=x", "/dead-letters?state=succeeded", "/trash?state=succeeded", "/jobs/count?q=%22",
	} {
		s.ask("GET", "/api/v1"+path, "")
	}
	s.ask("DELETE", "/api/v1/jobs", "")
	token := s.token
	for _, s.token = range []string{"", "wrong"} {
		s.ask("GET", "/api/v1/jobs", "")
		s.ask("GET", "/api/v1/me", "")
	}
	s.token = token
}

// look reads all that can be read.
func (s *seeded) look() {
	if _, err := s.store.Search.Update(context.Background()); err != nil {
		s.t.Fatal(err)
	}
	ids := decode[struct{ Jobs []struct{ ID string } }](s.t, s.ask("GET", "/api/v1/jobs?limit=200", ""))
	for _, j := range ids.Jobs {
		s.ask("GET", "/api/v1/jobs/"+j.ID, "")
	}
	for _, path := range []string{
		"/me", "/jobs?limit=2", "/jobs?q=warehouse", "/jobs/count", "/jobs/count?q=type:order.ship", "/dead-letters", "/dead-letters?limit=1", "/dead-letters/fill", "/retention", "/trash",
		"/facets", "/counters", "/queues", "/queues/orders", "/queues/orders@shop", "/sources", "/sources/shop", "/sources/mail", "/workers", "/policies", "/failures", "/failures?limit=1",
		"/failures/classes", "/operations", "/operations?limit=1", "/audit?limit=200", "/audit?limit=1", "/users", "/sessions", "/tokens",
	} {
		s.ask("GET", "/api/v1"+path, "")
	}
	s.ask("GET", documentPath, "")
	for _, path := range []string{"/export", "/failures", "/audit", "/operations/1/items"} {
		s.ask("GET", path+".csv", "")
		s.ask("GET", path+".ndjson", "")
	}
	s.ask("GET", "/export.ndjson?q="+url.QueryEscape("type:email.send"), "")

	tokens, err := s.store.Accounts.Tokens(s.t.Context())
	if err != nil || len(tokens) == 0 {
		s.t.Fatalf("%d tokens, %v", len(tokens), err)
	}
	s.token = s.house.token("another producer", access.Producer, time.Hour)
	s.do("/jobs", `{"type":"a","payload":1}`)
	s.do("/jobs/batch", `{"jobs":[{"type":"a"}]}`)
	s.do("/queues/shipping/envelopes", anEnvelope)
	s.ask("GET", "/api/v1/jobs", "")
	s.ask("GET", "/api/v1/me", "")
}
