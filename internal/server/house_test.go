package server

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/shortage"
	"redrive/internal/source"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
	"redrive/internal/store/location"
	"redrive/web/templates"
	"redrive/web/templates/jobpage"
)

const settings = `
policy: {jitter: false}
queues:
  orders: {workers: 20, policy: {max_attempts: 1}}
  plain: {dead_letter: {enabled: false}, policy: {max_attempts: 1}}
types:
  email.send: {ttr: PT30S}
hosts: [redrive.example]
`

// What programs and forms may send at most.
const (
	maxBody  = job.MaxPayload + job.MaxMeta + 512<<10
	maxBatch = 64 << 20
	maxEdit  = 6*jobpage.MaxEditor + web.MaxSmall
)

// house is the server on a real database, behind real HTTP.
type house struct {
	t     *testing.T
	path  string // of the database, as --db names it
	store *store.Store
	hub   *live.Hub
	http  *httptest.Server
	opts  Options
	base  string // path below which the server is
}

// start is a house with a database of its own.
func start(t testing.TB, change ...func(*Options)) *house {
	t.Helper()
	var h *house
	path := databasetest.New(t)
	s, err := store.Open(t.Context(), store.Options{
		Database: location.Of(path).Database(false), OnCommit: func(c []job.Change) { h.hub.Changed(c) }, Attached: attached,
	})
	if err != nil {
		t.Fatal(err)
	}
	h = startOn(t, s, change...)
	h.path = path
	return h
}

// file is the database file, for a test that looks into it or breaks it.
func (h *house) file() string {
	h.t.Helper()
	if location.Of(h.path).IsServer() {
		h.t.Skip("it looks into the file of SQLite")
	}
	return h.path
}

// startOn is a house on a database, which it closes.
func startOn(t testing.TB, s *store.Store, change ...func(*Options)) *house {
	t.Helper()
	c, err := config.Parse("redrive.yaml", []byte(settings))
	if err != nil {
		t.Fatal(err)
	}
	hub := live.New(s, live.Options{CheckOrigin: CheckOrigin(c)})
	var o Options
	o = Options{
		Config: c, Hub: hub, Metrics: NewMetrics(s.Counters.Label),
		Engine: web.Engine{
			Running:     func() map[string]int { return map[string]int{"orders": 1} },
			Knows:       func(typ string) bool { return typ != "unknown" },
			Ready:       func() error { return nil },
			OpenBreaker: func() (shortage.OpenBreaker, bool) { return shortage.OpenBreaker{}, false },

			Shortages: func() map[shortage.Resource]shortage.Counts { return nil },
			Deliver: func(_ context.Context, j job.Job, _ job.DeadLetter) job.Delivery {
				return job.InDeadLetters(j.Queue, o.Config.DeadLetters(j.Queue))
			},
			Waiting: func(string) (since, until time.Time, ok bool) { return time.Time{}, time.Time{}, false },
			Began:   func(job.Token) (at time.Time, ok bool) { return time.Time{}, false },
			Stuck:   func() []job.Stuck { return nil },
			Pause:   func(bool) {},
			Notify:  func() {},
			Sources: func() []source.Health { return nil },
			Reload: func(context.Context) (changed, restart []string, err error) {
				return []string{"handlers"}, []string{"hosts"}, nil
			},
		},
		Log: slog.New(slog.DiscardHandler),
	}
	for _, f := range change {
		f(&o)
	}
	o.View = view.New(s, o.Config.Redactor())
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &house{store: s, hub: hub, opts: o, http: httptest.NewUnstartedServer(server)}
	h.t, _ = t.(*testing.T)
	h.http.Config = server.HTTP()
	h.http.Listener = server.Listen(h.http.Listener)
	h.http.Start()
	t.Cleanup(func() {
		hub.Close()
		h.http.Close()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// answer is a response with its body.
type answer struct {
	*http.Response
	body string
}

func (h *house) do(method, path, body string, headers ...string) answer {
	h.t.Helper()
	return h.request(method, h.base+path, body, headers...)
}

// at gets an address whatever the base path is.
func (h *house) at(method, path string) answer {
	h.t.Helper()
	return h.request(method, path, "")
}

func (h *house) request(method, path, body string, headers ...string) answer {
	h.t.Helper()
	r, err := http.NewRequestWithContext(h.t.Context(), method, h.http.URL+path, strings.NewReader(body))
	if err != nil {
		h.t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	response, err := client.Do(r)
	if err != nil {
		h.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return answer{response, string(data)}
}

func (h *house) get(path string, headers ...string) answer {
	h.t.Helper()
	return h.do(http.MethodGet, path, "", headers...)
}

func (h *house) post(path, body string, headers ...string) answer {
	h.t.Helper()
	return h.do(http.MethodPost, path, body, append([]string{"Content-Type", "application/json"}, headers...)...)
}

func (h *house) form(path, fields string, headers ...string) answer {
	h.t.Helper()
	return h.do(http.MethodPost, path, fields, append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// want fails unless the answer has the status.
func (a answer) want(t *testing.T, status int) answer {
	t.Helper()
	if a.StatusCode != status {
		t.Fatalf("status %d, want %d: %s", a.StatusCode, status, clip.Text(a.body, 500))
	}
	return a
}

// json reads the body into a new T.
func decode[T any](t *testing.T, a answer) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(a.body), &v); err != nil {
		t.Fatalf("%v in %s", err, clip.Text(a.body, 500))
	}
	return v
}

// problemAnswer is the error of an answer.
type problemAnswer struct {
	Error struct{ Code, Message, Field string }
	By    string `json:"replayed_by"`
	At    string `json:"replayed_at"`
}

// enqueue sends a job and returns its id.
func (h *house) enqueue(body string) string {
	h.t.Helper()
	a := h.post("/api/v1/jobs", body).want(h.t, http.StatusCreated)
	return decode[struct{ Job struct{ ID string } }](h.t, a).Job.ID
}

// claim takes the jobs of a queue that may run.
func (h *house) claim(queue string) []job.Job {
	h.t.Helper()
	jobs, _, err := h.store.Exchange(context.Background(), nil,
		job.Claim{Worker: "w1", Now: time.Now(), Lease: time.Minute, Free: map[string]int{queue: 100}})
	if err != nil {
		h.t.Fatal(err)
	}
	return jobs
}

// fail runs the jobs of a queue and fails them.
func (h *house) fail(queue, errorType, message, trace string) {
	h.t.Helper()
	h.end(queue, job.Ending{Outcome: job.Failed, Error: job.ErrorInfo{Type: errorType, Message: message}, Trace: trace})
}

// end runs the jobs of a queue, which end so.
func (h *house) end(queue string, ending job.Ending) {
	h.t.Helper()
	var all []job.Settlement
	for _, j := range h.claim(queue) {
		ending.FinishedAt = time.Now()
		s := j.Settle(ending, func() float64 { return 0.5 }).Delivered(job.InDeadLetters(queue, h.opts.Config.DeadLetters(queue)))
		h.opts.Metrics.Settled(j, s)
		all = append(all, s)
	}
	if _, _, err := h.store.Exchange(context.Background(), all, job.Claim{}); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.Search.Update(context.Background()); err != nil {
		h.t.Fatal(err)
	}
}

// dead makes a job that is in the dead-letter queue.
func (h *house) dead() string {
	h.t.Helper()
	id := h.enqueue(`{"type":"order.ship","queue":"orders","payload":{"n":1}}`)
	h.fail("orders", "http.503", "the warehouse is closed", "at line 1")
	return id
}

// theDemo is the seam that the demo fills.
type theDemo struct {
	broken map[string]bool
	used   bool
	resets int
}

func (d *theDemo) Faults() []templates.Fault {
	return []templates.Fault{{Name: "upstream", Title: "Upstream", About: "A service.", Broken: d.broken["upstream"]}}
}

func (d *theDemo) SetFault(name string, broken bool) error {
	if name != "upstream" {
		return job.ErrNotFound
	}
	d.broken[name], d.used = broken, true
	return nil
}

func (d *theDemo) Used() bool { return d.used }

func (d *theDemo) Reset(context.Context) error { d.resets++; return nil }

var errNotReady = errors.New("the engine has not started")
