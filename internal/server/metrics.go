package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/limit"
	"redrive/internal/server/web"
)

// Metrics is what /metrics shows: the counters of package job as the database
// keeps them, the depths and workers at this moment, and how long things took in
// this process.
type Metrics struct {
	registry *prometheus.Registry
	duration *prometheus.HistogramVec
	latency  *prometheus.HistogramVec
	delay    *prometheus.HistogramVec
	decided  *prometheus.CounterVec
	refused  *prometheus.CounterVec
	label    func(queue string) string
	deciders deciders
}

// NewMetrics returns metrics with a registry of their own. Label is what they call
// a queue: its name, or "other" past the bound. The counters of the database are
// bounded by the same, so that a queue has one name everywhere.
func NewMetrics(label func(queue string) string) *Metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		label:    label,
		registry: prometheus.NewRegistry(),
		duration: histogram("redrive_attempt_duration_seconds", "How long attempts took.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}, "queue", "outcome"),
		latency: histogram("redrive_queue_latency_seconds", "How long runnable jobs waited for a worker.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 300, 1800, 3600}, "queue"),
		delay: histogram("redrive_retry_delay_seconds", "The delays chosen before retries.",
			[]float64{.1, .5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600, 21600, 86400, 604800}, "queue", "strategy"),
	}

	m.decided = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redrive_decisions_total", Help: "Decisions after attempts, by who decided.",
	}, []string{"by", "action"})
	m.refused = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redrive_refused_total", Help: "Requests and connections refused by a limit, of one address or of all.",
	}, []string{"limit", "of"})
	for _, name := range limitNames { // at zero, so that the first refusal is seen as a rise
		for _, why := range []limit.Refusal{limit.ByAddress, limit.ByAll} {
			m.refused.WithLabelValues(name, string(why))
		}
	}

	m.registry.MustRegister(m.duration, m.latency, m.delay, m.decided, m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))

	return m
}

// Settled records an attempt that has ended. It does not block.
func (m *Metrics) Settled(j job.Job, s job.Settlement) {
	queue, a := m.label(j.Queue), s.Attempt
	m.duration.WithLabelValues(queue, string(a.Outcome)).Observe(a.FinishedAt.Sub(a.StartedAt).Seconds())

	due := j.RunAt
	if due.Before(j.EnqueuedAt) {
		due = j.EnqueuedAt
	}

	m.latency.WithLabelValues(queue).Observe(max(0, a.StartedAt.Sub(due).Seconds()))

	if d := a.Delay; d != nil {
		strategy := string(d.Strategy)
		if d.Source != retry.FromPolicy { // a handler or a rule chose the delay, by no strategy
			strategy = string(d.Source)
		}

		m.delay.WithLabelValues(queue, strategy).Observe(d.Final.Seconds())
	}

	if a.DecidedBy != "" {
		m.decided.WithLabelValues(labelValue(m.deciders.bound(decider(a.DecidedBy))), string(a.Action)).Inc()
	}
}

// Refused counts what was beyond a limit.
func (m *Metrics) Refused(name string, why limit.Refusal) {
	m.refused.WithLabelValues(name, string(why)).Inc()
}

// decider is the code of a decision without the parts that differ from job to
// job, which would make a new time series each: the number of the attempt, and
// the error that is never retried.
func decider(code string) string {
	who, what, _ := strings.Cut(code, ":")
	if who != "policy" {
		return code
	}

	kind, _, _ := strings.Cut(what, ":")

	return who + ":" + kind
}

// deciders bounds who is told apart: after the first hundred every new one is
// "other", because a monitoring system pays for each.
type deciders struct {
	mu   sync.Mutex
	seen map[string]bool
}

const (
	maxDeciders = 100
	other       = "other"
)

// bound returns the value itself, or "other".
func (l *deciders) bound(value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()

	switch {
	case l.seen[value]:
		return value
	case len(l.seen) >= maxDeciders:
		return other
	case l.seen == nil:
		l.seen = map[string]bool{}
	}

	l.seen[value] = true

	return value
}

// watch adds what is read from the database and the engine at each scrape.
func (m *Metrics) watch(s *web.Site) error {
	if err := m.registry.Register(newCollector(s)); err != nil {
		return fmt.Errorf("server: these metrics belong to another server: %w", err)
	}
	return nil
}

// handler serves what could be collected, even if something could not.
func (m *Metrics) handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, ErrorLog: scrapeLog{log},
	})
}

// scrapeLog logs what a scrape could not read.
type scrapeLog struct{ *slog.Logger }

// Println logs what the metrics package says, unless that is only that the one who asked
// has left: it says so for each metric.
func (l scrapeLog) Println(v ...any) {
	for _, part := range v {
		var network *net.OpError
		if err, ok := part.(error); ok && errors.As(err, &network) && network.Op == "write" {
			return
		}
	}

	l.Warn("metrics are incomplete", "error", fmt.Sprint(v...))
}
