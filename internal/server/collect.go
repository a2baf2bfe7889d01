package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/server/web"
)

// collector reads the numbers that live in the database and the engine.
type collector struct {
	*web.Site
	descs map[string]*prometheus.Desc // by name
}

func newCollector(s *web.Site) *collector {
	c := &collector{s, map[string]*prometheus.Desc{}}
	add := func(name, help string, labels ...string) { c.descs[name] = prometheus.NewDesc(name, help, labels, nil) }
	help := map[string]string{
		"jobs_failed":             "Attempts that failed, retried or not.",
		"jobs_requeued":           "Failed attempts that put the job back.",
		"jobs_failed_permanently": "Failed attempts that were the last of their run.",
		"jobs_dlq_failed":         "Dead letters that were asked for and not accepted.",
		"jobs_succeeded":          "Attempts that succeeded.",
		"jobs_replayed":           "Jobs that were replayed.",
	}
	for _, counter := range (job.Totals{}).Counters() {
		add(counter.Name+"_total", help[counter.Name], "queue", "type")
	}
	add("redrive_jobs", "Jobs by queue and state.", "queue", "state")
	add("redrive_workers", "Workers by queue, busy or free.", "queue", "state")
	add("redrive_ready", "Whether jobs are taken and run: 1 or 0.")

	// These are gauges: they fall as letters are replayed, discarded and pruned, and
	// as failures become searchable.
	add("redrive_dead_letters", "Dead letters that are neither replayed nor discarded, by reason.", "reason")
	add("redrive_dead_letters_refused", "Jobs whose dead letter was refused and that wait for a person.")
	add("redrive_dead_letter_queue_letters", "Dead letters in the dead-letter queue.")
	add("redrive_dead_letter_queue_limit_letters", "Dead letters beyond which the oldest are removed.")
	add("redrive_dead_letter_queue_fill_ratio", "How full the dead-letter queue is: 1 when the oldest are removed.")
	add("redrive_dead_letter_queue_oldest_age_seconds", "Age of the oldest dead letter; 0 when there is none.")
	add("redrive_dead_letter_queue_max_age_seconds", "Age from which dead letters are removed.")
	add("redrive_search_lag_jobs", "Jobs whose newest failure cannot be searched yet.")
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	s, now := collection{c, out}, time.Now()
	read(s, "jobs_failed_total", s.tallies)(c.View.Tallies(ctx))
	read(s, "redrive_jobs", s.queues)(c.View.Queues(ctx, now))
	read(s, "redrive_dead_letters", s.reasons)(c.View.Reasons(ctx))
	read(s, "redrive_search_lag_jobs", func(lag int) { s.gauge("redrive_search_lag_jobs", float64(lag)) })(c.View.SearchLag(ctx))
	read(s, "redrive_dead_letter_queue_letters", func(u retention.Usage) { s.usage(u, now) })(c.View.Usage(ctx, now))
	s.gauge("redrive_dead_letters_refused", float64(c.View.Snapshot().Depths[job.StatusDLQFailed]))
	ready := 0.
	if c.Engine.Ready() == nil {
		ready = 1
	}
	s.gauge("redrive_ready", ready)
}

// collection is what one scrape collects.
type collection struct {
	*collector
	out chan<- prometheus.Metric
}

// read hands on what was read, or says that a metric could not be.
func read[T any](s collection, name string, use func(T)) func(T, error) {
	return func(found T, err error) {
		if err != nil {
			s.out <- prometheus.NewInvalidMetric(s.descs[name], err)
			return
		}
		use(found)
	}
}

func (s collection) gauge(name string, value float64, labels ...string) {
	s.out <- prometheus.MustNewConstMetric(s.descs[name], prometheus.GaugeValue, value, labels...)
}

func (s collection) tallies(tallies []queues.Tally) {
	for _, t := range tallies {
		for _, counter := range t.Totals.Counters() {
			desc := s.descs[counter.Name+"_total"]
			s.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(counter.Value), t.Queue, label(t.Type))
		}
	}
}

func (s collection) queues(all []queues.Info) {
	type key struct{ queue, state string }
	var names labels
	jobs, workers, running := map[key]int64{}, map[key]int64{}, s.Engine.Running()
	for _, q := range all {
		name := names.bound(q.Name)
		for _, state := range job.States() {
			jobs[key{name, string(state)}] += q.Depths[job.Status(state)]
		}
		busy := int64(running[q.Name])
		workers[key{name, "busy"}] += busy
		workers[key{name, "free"}] += max(0, int64(s.Config.Workers(q.Name))-busy)
	}
	for k, n := range jobs {
		s.gauge("redrive_jobs", float64(n), k.queue, k.state)
	}
	for k, n := range workers {
		s.gauge("redrive_workers", float64(n), k.queue, k.state)
	}
}

// reasons tells each known reason, also at zero, so that its first letter is a rise.
func (s collection) reasons(counts []filter.ReasonCount) {
	all := map[retry.Reason]int64{}
	for _, r := range retry.Reasons() {
		all[r] = 0
	}
	for _, r := range counts {
		all[r.Reason] = r.Count
	}
	for reason, n := range all {
		s.gauge("redrive_dead_letters", float64(n), label(string(reason)))
	}
}

func (s collection) usage(u retention.Usage, now time.Time) {
	keeps, oldest := s.Config.Retention(), 0.
	if !u.Oldest.IsZero() {
		oldest = max(0, now.Sub(u.Oldest).Seconds())
	}
	s.gauge("redrive_dead_letter_queue_letters", float64(u.Open))
	s.gauge("redrive_dead_letter_queue_oldest_age_seconds", oldest)
	s.gauge("redrive_dead_letter_queue_fill_ratio", u.Share(keeps))
	s.gauge("redrive_dead_letter_queue_limit_letters", float64(keeps.Count))
	s.gauge("redrive_dead_letter_queue_max_age_seconds", keeps.Age.Seconds())
}

// label is a value that every reader of metrics accepts.
func label(s string) string { return clip.Text(s, job.MaxType) }
