package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"redrive/internal/config"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/source"
)

// settle ends the executions of a queue in one way.
func (h *house) settle(queue string, e job.Ending, d job.Delivery) {
	h.t.Helper()
	var all []job.Settlement
	for _, j := range h.claim(queue) {
		e.FinishedAt = time.Now()
		s := j.Settle(e, func() float64 { return 0.5 }).Delivered(d)
		h.opts.Metrics.Settled(j, s)
		all = append(all, s)
	}
	if _, _, err := h.store.Exchange(h.t.Context(), all, job.Claim{}); err != nil {
		h.t.Fatal(err)
	}
}

// scrape is a day in the life of a house, as Prometheus reads it.
func scrape(h *house) string {
	h.dead()
	h.enqueue(`{"type":"t","queue":"mail"}`)
	h.fail("mail", "x", "y", "")
	return h.get("/metrics").want(h.t, http.StatusOK).body
}

func TestMetrics_HaveNoLint(t *testing.T) {
	problems, err := promlint.New(strings.NewReader(scrape(start(t)))).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestMetrics_CountWhoDecided(t *testing.T) {
	h := start(t)
	ten, no := 10*time.Second, false
	for i, e := range []job.Ending{
		{},
		{Answer: retry.Answer{Code: retry.CodeDeadLetter}},
		{Answer: retry.Answer{Retryable: &no}},
		{Ruling: &retry.Ruling{Rule: "temporary-only", Action: retry.Retry, Delay: &ten}},
		{Expired: retry.DeadLetter},
		{Error: job.ErrorInfo{Type: "auth.expired"}},
	} {
		queue := fmt.Sprintf("q%d", i)
		h.enqueue(`{"type":"t","queue":"` + queue + `","policy":{"non_retryable_errors":["auth.*"]}}`)
		e.Outcome = job.Failed
		h.settle(queue, e, job.Delivery{})
	}
	h.dead()
	const want = `# HELP redrive_decisions_total Decisions after attempts, by who decided.
# TYPE redrive_decisions_total counter
redrive_decisions_total{action="dead_letter",by="expired:dead_letter"} 1
redrive_decisions_total{action="dead_letter",by="handler:DEAD_LETTER"} 1
redrive_decisions_total{action="dead_letter",by="handler:not_retryable"} 1
redrive_decisions_total{action="dead_letter",by="policy:exhausted"} 1
redrive_decisions_total{action="dead_letter",by="policy:non_retryable"} 1
redrive_decisions_total{action="retry",by="policy:retry"} 1
redrive_decisions_total{action="retry",by="rule:temporary-only"} 1
`
	if got := h.exposition("redrive_decisions_total"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if a := h.get("/metrics"); !strings.Contains(a.body, `redrive_retry_delay_seconds_sum{queue="q3",strategy="rule"} 10`) {
		t.Error("the delay that a rule chose is not counted under rule")
	}
}

func TestMetrics_TellHowFullTheDeadLetterQueueIs(t *testing.T) {
	h := start(t, func(o *Options) {
		c, err := config.Parse("redrive.yaml", []byte(settings+"retention: {max_dead_letters: 8}"))
		if err != nil {
			t.Fatal(err)
		}
		o.Config = c
	})
	h.dead()
	h.dead()
	h.enqueue(`{"type":"t","queue":"plain"}`)
	h.fail("plain", "x", "y", "")
	a := h.get("/metrics").want(t, http.StatusOK)
	for _, line := range []string{
		`redrive_dead_letters{reason="attempts_exhausted"} 2`, `redrive_dead_letters{reason="missing_urn"} 0`, `redrive_dead_letters_refused 1`,
		`redrive_dead_letter_queue_letters 2`, `redrive_dead_letter_queue_limit_letters 8`, `redrive_dead_letter_queue_fill_ratio 0.25`,
		`redrive_dead_letter_queue_max_age_seconds 1.5552e+07`, `redrive_ready 1`, `redrive_standby 0`,
	} {
		if !strings.Contains(a.body, "\n"+line+"\n") {
			t.Errorf("/metrics lacks %s", line)
		}
	}
}

func TestMetrics_ReadyFallsToZero(t *testing.T) {
	h := start(t, func(o *Options) { o.Engine.Ready = func() error { return errNotReady } })
	if a := h.get("/metrics"); !strings.Contains(a.body, "\nredrive_ready 0\n") {
		t.Error("a server whose engine does not run is ready by its metric")
	}
}

// named are the metrics that a text is about.
func named(text string) []string {
	return regexp.MustCompile(`\b(redrive|jobs)_[a-z_]+`).FindAllString(text, -1)
}

// exported are the series that a scrape has.
func exported(t *testing.T) map[string]bool {
	t.Helper()
	names, h := map[string]bool{}, start(t)
	if _, err := h.store.Sweep.Forecast(t.Context(), time.Now(), retention.Limits{}); err != nil { // as the pruner does at the start
		t.Fatal(err)
	}
	for line := range strings.Lines(scrape(h)) {
		if name, _, ok := strings.Cut(line, " "); ok {
			name, _, _ = strings.Cut(name, "{")
			names[name] = true
		}
	}
	return names
}

func TestDeploy_AlertsNameMetricsThatAreExported(t *testing.T) {
	text, err := os.ReadFile("../../deploy/prometheus-rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	exists, found := exported(t), 0
	for line := range strings.Lines(string(text)) {
		if strings.Contains(line, "(jobs_dlq_failed)") { // the counter's name in a sentence
			continue
		}
		for _, name := range named(line) {
			if found++; !exists[name] {
				t.Errorf("the alerts ask for %s, which no scrape has", name)
			}
		}
	}
	if found < 15 {
		t.Errorf("%d names in the alerts, want all of them", found)
	}
}

func TestDeploy_DashboardIsWellFormed(t *testing.T) {
	text, err := os.ReadFile("../../deploy/grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var dashboard struct {
		Title, UID    string
		SchemaVersion int
		Panels        []struct {
			ID      int
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, RefID string }
		}
	}
	if err := json.Unmarshal(text, &dashboard); err != nil {
		t.Fatal(err)
	}
	if dashboard.Title == "" || dashboard.UID == "" || dashboard.SchemaVersion == 0 || len(dashboard.Panels) < 10 {
		t.Errorf("the dashboard %q has %d panels", dashboard.Title, len(dashboard.Panels))
	}
	exists, ids := exported(t), map[int]bool{}
	for _, p := range dashboard.Panels {
		if ids[p.ID] || p.Title == "" || len(p.Targets) == 0 || p.GridPos.X+p.GridPos.W > 24 || p.GridPos.H == 0 {
			t.Errorf("panel %d, %q, cannot be drawn: %+v", p.ID, p.Title, p)
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			names := named(target.Expr)
			if len(names) == 0 {
				t.Errorf("%s asks for nothing: %s", p.Title, target.Expr)
			}
			for _, name := range names {
				if !exists[name] {
					t.Errorf("%s asks for %s, which no scrape has", p.Title, name)
				}
			}
		}
	}
}

// exposition is what /metrics says about some families.
func (h *house) exposition(families ...string) string {
	h.t.Helper()
	var b strings.Builder
	for line := range strings.Lines(h.get("/metrics").want(h.t, http.StatusOK).body) {
		name := strings.TrimPrefix(strings.TrimPrefix(line, "# HELP "), "# TYPE ")
		if slices.Contains(families, name[:strings.IndexAny(name, " {")]) {
			b.WriteString(line)
		}
	}
	return b.String()
}

func TestMetrics_CountersAndGauges(t *testing.T) {
	h := start(t)
	h.dead()
	h.enqueue(`{"type":"t","queue":"orders"}`)
	const want = `# HELP jobs_failed_total Attempts that failed, retried or not.
# TYPE jobs_failed_total counter
jobs_failed_total{queue="orders",type="order.ship"} 1
# HELP redrive_workers Workers by queue, busy or free.
# TYPE redrive_workers gauge
redrive_workers{queue="orders",state="busy"} 1
redrive_workers{queue="orders",state="free"} 19
`
	if got := h.exposition("jobs_failed_total", "redrive_workers"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	a := h.get("/metrics").want(t, http.StatusOK)
	for _, line := range []string{
		`redrive_jobs{queue="orders",state="available"} 1`, `redrive_jobs{queue="orders",state="discarded"} 1`,
		`jobs_failed_permanently_total{queue="orders",type="order.ship"} 1`, `jobs_dlq_failed_total{queue="orders",type="order.ship"} 0`,
		`redrive_attempt_duration_seconds_count{outcome="failed",queue="orders"} 1`, `redrive_queue_latency_seconds_count{queue="orders"} 1`,
		"go_goroutines ", "process_start_time_seconds ",
	} {
		if !strings.Contains(a.body, line) {
			t.Errorf("/metrics lacks %s", line)
		}
	}
	if a := h.get("/metrics", "Accept", "application/openmetrics-text"); !strings.Contains(a.body, "# TYPE jobs_failed counter") || !strings.HasSuffix(a.body, "# EOF\n") {
		t.Error("no OpenMetrics")
	}
}

// What sources bring counts against no limit of ours, so it does not count beside them either.
func TestMetrics_QueuesAndGroupsAreThoseOfOurOwn(t *testing.T) {
	h := start(t)
	h.dead()
	before := h.exposition("redrive_queues", "redrive_error_groups")
	h.mirror("shop", source.Record{Key: "1", Queue: "orders", Type: "charge", Error: job.ErrorInfo{Type: "Declined"}})
	if after := h.exposition("redrive_queues", "redrive_error_groups"); after != before || !strings.Contains(before, "redrive_queues 1\n") {
		t.Errorf("before\n%s\nafter\n%s", before, after)
	}
}

func TestMetrics_RetryDelays(t *testing.T) {
	h := start(t)
	h.enqueue(`{"type":"t","queue":"mail"}`)
	h.fail("mail", "x", "y", "")
	if a := h.get("/metrics"); !strings.Contains(a.body, `redrive_retry_delay_seconds_sum{queue="mail",strategy="exponential"} 1`) {
		t.Error("the chosen delay is not counted")
	}
}

func TestMetrics_DecidersAreBounded(t *testing.T) {
	var l deciders
	for i := range 3 * maxDeciders {
		l.bound(strings.Repeat("q", i+1))
	}
	if got := l.bound("another"); got != other || len(l.seen) != maxDeciders {
		t.Errorf("the value after %d is %q", len(l.seen), got)
	}
	if got := l.bound("q"); got != "q" {
		t.Errorf("a known value is %q", got)
	}
}

func TestMetrics_OddTypesAreStillReadable(t *testing.T) {
	h := start(t)
	for _, evil := range nasty() {
		text, err := json.Marshal(typeOf(evil))
		if err != nil {
			t.Fatal(err)
		}
		h.enqueue(`{"type":` + string(text) + `,"queue":"orders"}`)
	}
	h.fail("orders", "x", "y", "")
	if n := strings.Count(h.exposition("jobs_failed_total"), "jobs_failed_total{"); n != len(nasty()) {
		t.Errorf("%d series, want %d", n, len(nasty()))
	}
}
