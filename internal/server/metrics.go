package server

import (
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/web"
)

// Metrics is what /metrics shows: the counters of package job as the database
// keeps them, depths and workers as they are, and how long things took in this
// process.
type Metrics struct {
	registry *prometheus.Registry
	duration *prometheus.HistogramVec
	latency  *prometheus.HistogramVec
	delay    *prometheus.HistogramVec
	decided  *prometheus.CounterVec
	queues   labels
	deciders labels
}

// NewMetrics returns metrics with a registry of their own.
func NewMetrics() *Metrics {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	m := &Metrics{
		registry: prometheus.NewRegistry(),
		duration: histogram("redrive_attempt_duration_seconds", "How long attempts took.",
			[]float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800}, "queue", "outcome"),
		latency: histogram("redrive_queue_latency_seconds", "How long jobs that may run waited for a worker.",
			[]float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 5, 10, 60, 300, 1800, 3600}, "queue"),
		delay: histogram("redrive_retry_delay_seconds", "The delays chosen before retries.",
			[]float64{.1, .5, 1, 2, 5, 10, 30, 60, 120, 300, 900, 3600, 21600, 86400, 604800}, "queue", "strategy"),
	}
	m.decided = prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "redrive_decisions_total", Help: "What became of attempts, by who decided.",
	}, []string{"by", "action"})
	m.registry.MustRegister(m.duration, m.latency, m.delay, m.decided,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

// Settled takes note of an attempt that has ended. It is quick.
func (m *Metrics) Settled(j job.Job, s job.Settlement) {
	queue, a := m.queues.bound(j.Queue), s.Attempt
	m.duration.WithLabelValues(queue, string(a.Outcome)).Observe(a.FinishedAt.Sub(a.StartedAt).Seconds())
	due := j.RunAt
	if due.Before(j.EnqueuedAt) {
		due = j.EnqueuedAt
	}
	m.latency.WithLabelValues(queue).Observe(max(0, a.StartedAt.Sub(due).Seconds()))
	if d := a.Delay; d != nil {
		strategy := string(d.Strategy)
		if d.Source != retry.FromPolicy { // whoever chose the delay went by no strategy
			strategy = string(d.Source)
		}
		m.delay.WithLabelValues(queue, strategy).Observe(d.Final.Seconds())
	}
	if a.DecidedBy != "" {
		m.decided.WithLabelValues(label(m.deciders.bound(decider(a.DecidedBy))), string(a.Action)).Inc()
	}
}

// decider is a decision's code without what differs from job to job: the
// numbers of attempts, and the error that is never retried.
func decider(code string) string {
	who, what, _ := strings.Cut(code, ":")
	if who != "policy" {
		return code
	}
	kind, _, _ := strings.Cut(what, ":")
	return who + ":" + kind
}

// labels bounds the number of values of a label: what comes after the first
// thousand is "other".
type labels struct {
	mu   sync.Mutex
	seen map[string]bool
}

const (
	maxLabels = 1000
	other     = "other"
)

func (l *labels) bound(value string) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.seen[value]:
		return value
	case len(l.seen) >= maxLabels:
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

func (m *Metrics) handler(log *slog.Logger) http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{
		EnableOpenMetrics: true, ErrorHandling: promhttp.ContinueOnError, ErrorLog: scrapeLog{log},
	})
}

// scrapeLog tells what a scrape could not read.
type scrapeLog struct{ *slog.Logger }

func (l scrapeLog) Println(v ...any) { l.Warn("metrics are incomplete", "error", fmt.Sprint(v...)) }
