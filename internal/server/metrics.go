package server

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/queues"
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

// collector reads the numbers that live in the database.
type collector struct {
	*web.Site
	counters []*prometheus.Desc // in the order of Totals.Counters
	jobs     *prometheus.Desc
	workers  *prometheus.Desc
	ready    *prometheus.Desc
	letters  letterDescs
}

func newCollector(s *web.Site) *collector {
	c := &collector{
		Site:    s,
		jobs:    prometheus.NewDesc("redrive_jobs", "Jobs by queue and state.", []string{"queue", "state"}, nil),
		workers: prometheus.NewDesc("redrive_workers", "Workers by queue, busy or free.", []string{"queue", "state"}, nil),
		ready:   prometheus.NewDesc("redrive_ready", "Whether jobs are taken and run: 1 or 0.", nil, nil),
		letters: newLetterDescs(),
	}
	help := map[string]string{
		"jobs_failed":             "Attempts that failed, retried or not.",
		"jobs_requeued":           "Failed attempts that put the job back.",
		"jobs_failed_permanently": "Failed attempts that were the last of their run.",
		"jobs_dlq_failed":         "Dead letters that were asked for and not accepted.",
		"jobs_succeeded":          "Attempts that succeeded.",
		"jobs_replayed":           "Jobs that were replayed.",
	}
	for _, counter := range (job.Totals{}).Counters() {
		c.counters = append(c.counters, prometheus.NewDesc(counter.Name+"_total", help[counter.Name], []string{"queue", "type"}, nil))
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range slices.Concat(c.counters, []*prometheus.Desc{c.jobs, c.workers, c.ready}, c.letters.all()) {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if tallies, err := c.View.Tallies(ctx); err != nil {
		out <- prometheus.NewInvalidMetric(c.counters[0], err)
	} else {
		c.collectTallies(tallies, out)
	}
	if queues, err := c.View.Queues(ctx, time.Now()); err != nil {
		out <- prometheus.NewInvalidMetric(c.jobs, err)
	} else {
		c.collectQueues(queues, out)
	}
	ready := 0.
	if c.Engine.Ready() == nil {
		ready = 1
	}
	out <- gauge(c.ready, ready)
	c.collectLetters(ctx, time.Now(), out)
}

func gauge(d *prometheus.Desc, value float64, labels ...string) prometheus.Metric {
	return prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
}

func (c *collector) collectTallies(tallies []queues.Tally, out chan<- prometheus.Metric) {
	for _, t := range tallies {
		for i, counter := range t.Totals.Counters() {
			out <- prometheus.MustNewConstMetric(c.counters[i], prometheus.CounterValue, float64(counter.Value), t.Queue, label(t.Type))
		}
	}
}

func (c *collector) collectQueues(queues []queues.Info, out chan<- prometheus.Metric) {
	type key struct{ queue, state string }
	jobs, workers := map[key]int64{}, map[key]int64{}
	running := c.Engine.Running()
	for i, q := range queues {
		name := q.Name
		if i >= maxLabels {
			name = other
		}
		for _, state := range job.States() {
			jobs[key{name, string(state)}] += q.Depths[job.Status(state)]
		}
		busy := int64(running[q.Name])
		workers[key{name, "busy"}] += busy
		workers[key{name, "free"}] += max(0, int64(c.Config.Workers(q.Name))-busy)
	}
	for k, n := range jobs {
		out <- gauge(c.jobs, float64(n), k.queue, k.state)
	}
	for k, n := range workers {
		out <- gauge(c.workers, float64(n), k.queue, k.state)
	}
}

// label is a value that every reader of metrics accepts.
func label(s string) string { return clip.Text(s, job.MaxType) }
