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
	"redrive/internal/shortage"
	"redrive/internal/stats"
	"redrive/internal/store/health"
)

// collector reads the numbers that are in the database and the engine.
type collector struct {
	*web.Site
	descs map[string]*prometheus.Desc // by name
}

// newCollector describes its metrics in advance, as the registry demands.
func newCollector(s *web.Site) *collector {
	c := &collector{s, map[string]*prometheus.Desc{}}

	add := func(name, help string, labels ...string) { c.descs[name] = prometheus.NewDesc(name, help, labels, nil) }
	help := map[string]string{
		"jobs_failed":             "Attempts that failed, retried or not.",
		"jobs_requeued":           "Failed attempts that put the job back.",
		"jobs_failed_permanently": "Failed attempts that were the last of their run.",
		"jobs_dlq_failed":         "Dead letters that were refused.",
		"jobs_succeeded":          "Attempts that succeeded.",
		"jobs_replayed":           "Jobs that were replayed.",
	}
	for _, counter := range (stats.Totals{}).Counters() {
		add(counter.Name+"_total", help[counter.Name], "queue", "type")
	}

	add("redrive_jobs", "Jobs by queue and state.", "queue", "state")
	add("redrive_workers", "Workers by queue, busy or free.", "queue", "state")
	add("redrive_queues", "Queues that exist, without those of sources.")
	add("redrive_queues_limit", "The largest number of queues that may exist.")
	add("redrive_types", "Types of jobs that are counted separately.")
	add("redrive_types_limit", "The largest number of types that are counted separately; later ones count as other.")
	add("redrive_error_groups", "Error groups, without those that sources brought.")
	add("redrive_error_groups_limit", "The largest number of error groups; new failures above it fall into one group, other.")
	add("redrive_ready", "1 while jobs are accepted and run, otherwise 0.")
	add("redrive_standby", "1 while another process works on the database and this one stands by, otherwise 0.")
	add("redrive_held", "1 while no jobs are claimed because a resource has run out, otherwise 0.", "resource")
	add("redrive_holds_total", "How often a resource has run out.", "resource")
	add("redrive_given_back_total", "Executions that went back to the queue because a resource had run out.", "resource")

	// These are gauges: they fall as dead letters are replayed, discarded and pruned, and
	// as failures become searchable.
	add("redrive_dead_letters", "Dead letters that are neither replayed nor discarded, by reason.", "reason")
	add("redrive_source_dead_letters", "Dead letters that lie at a source, as Redrive last saw it.", "source")
	add("redrive_source_up", "1 while a source answered the last look at it.", "source")
	add("redrive_source_quarantined", "Records of a source that could not be taken over.", "source")
	add("redrive_source_polled_timestamp_seconds", "When a source was looked at last.", "source")
	add("redrive_source_acts_total", "Acts on a source, by kind and by how they ended.", "source", "kind", "state")
	add("redrive_source_succeeded_total", "Replayed jobs that succeeded, as their source says.", "source")
	add("redrive_dead_letters_refused", "Jobs whose dead letter was refused and that need attention.")
	add("redrive_dead_letter_queue_letters", "Dead letters in the dead-letter queue, without those that are in sources.")
	add("redrive_dead_letter_queue_limit_letters", "Number of dead letters above which the oldest are removed; 0 means no limit.")
	add("redrive_dead_letter_queue_full_timestamp_seconds",
		"When the dead-letter queue will be full at the rate of the last 24 hours; absent if it will not.")
	add("redrive_dead_letter_queue_fill_ratio", "How full the dead-letter queue is; at 1, the oldest dead letters are removed.")
	add("redrive_dead_letter_queue_oldest_age_seconds", "Age of the oldest dead letter; 0 when there is none.")
	add("redrive_dead_letter_queue_max_age_seconds", "Age at which dead letters are removed; 0 means they are kept forever.")
	add("redrive_retention_kept_jobs", "Finished jobs, by how they ended, without dead letters that are in sources.", "kind")
	add("redrive_retention_held", "1 while retention removes nothing because the clock of the machine moved forward, otherwise 0.")
	add("redrive_retention_removed_within_day_jobs", "Jobs that retention will remove within 24 hours.", "kind")
	add("redrive_retention_removed_total", "Jobs that retention removed.", "kind", "queue")
	add("redrive_database_cleanup_held_seconds",
		"How long the server of the database has been kept from removing old versions of rows; 0 when nothing has for a minute.", "kind")
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
	read(s, "redrive_jobs", s.depths)(c.View.DepthsByLabel(ctx))
	s.workers()
	s.gauge("redrive_queues", float64(ownQueues(c.View.QueueNames())))
	s.gauge("redrive_queues_limit", float64(c.Config.Limits().Queues))
	s.gauge("redrive_types", float64(c.View.CountedTypes()))
	s.gauge("redrive_types_limit", float64(c.Config.Limits().Types))
	s.gauge("redrive_error_groups", float64(c.View.GroupCount()))
	s.gauge("redrive_error_groups_limit", float64(c.Config.Limits().Groups))
	read(s, "redrive_dead_letters", s.reasons)(c.View.Reasons(ctx))
	read(s, "redrive_search_lag_jobs", func(lag int) { s.gauge("redrive_search_lag_jobs", float64(lag)) })(c.View.SearchLag(ctx))
	read(s, "redrive_dead_letter_queue_letters", func(u retention.Usage) { s.usage(u, now) })(c.View.Usage(ctx, now))
	read(s, "redrive_retention_removed_total", s.removals)(c.View.Removals(ctx))

	// What retention keeps, what it will remove, and whether it waits for the clock.
	forecast := c.View.Retention()
	held := 0.
	if forecast.Clock.Held() {
		held = 1
	}

	s.gauge("redrive_retention_held", held)

	for _, o := range forecast.Kinds {
		if o.Kind != retention.OverCount { // they are dead letters too, and a sum has each once
			s.gauge("redrive_retention_kept_jobs", float64(o.Jobs), string(o.Kind))
		}

		s.gauge("redrive_retention_removed_within_day_jobs", float64(o.Soon), string(o.Kind))
	}

	s.sources(ctx)
	s.gauge("redrive_dead_letters_refused", float64(c.View.Snapshot().Depths[job.StatusDLQFailed]))

	// Whether jobs are run, and if not, what has run out.
	ready := 0.
	if c.Engine.Ready() == nil {
		ready = 1
	}

	s.gauge("redrive_ready", ready)
	s.gauge("redrive_standby", 0) // a process that stands by has no other metric (internal/app)
	s.shortages()
	s.hindrances(now)
}

// collection is one scrape.
type collection struct {
	*collector
	out chan<- prometheus.Metric
}

// read passes on what was read, or reports that the metric could not be.
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

// sources reports how the attached sources fare.
func (s collection) sources(ctx context.Context) {
	for _, h := range s.Engine.Sources() {
		up := 0.
		if (h.Problem == "" || h.Own && !h.Moved) && !h.Polled.IsZero() {
			up = 1
		}

		s.gauge("redrive_source_up", up, h.Name)
		s.gauge("redrive_source_quarantined", float64(h.Quarantine()), h.Name)

		if !h.Polled.IsZero() {
			s.gauge("redrive_source_polled_timestamp_seconds", float64(h.Polled.UnixMilli())/1000, h.Name)
		}

		s.out <- prometheus.MustNewConstMetric(s.descs["redrive_source_succeeded_total"], prometheus.CounterValue, float64(h.Succeeded), h.Name)

		for end, n := range h.Acts {
			s.out <- prometheus.MustNewConstMetric(s.descs["redrive_source_acts_total"], prometheus.CounterValue, float64(n),
				h.Name, string(end.Kind), string(end.State))
		}

		read(s, "redrive_source_dead_letters", func(t filter.Tally) {
			s.gauge("redrive_source_dead_letters", float64(t.Total), h.Name)
		})(tally(s.View.Known(ctx, filter.Filter{Status: job.StatusDeadLetter, Source: h.Name})))
	}
}

// tally leaves out whether a tally has a total, which one of dead letters always has.
func tally(t filter.Tally, _ bool, err error) (filter.Tally, error) { return t, err }

// shortages reports what had run out, also what never has.
func (s collection) shortages() {
	breaker, isOpen := s.Engine.OpenBreaker()

	counts := s.Engine.Shortages()
	count := func(name string, n int64, of shortage.Resource) {
		s.out <- prometheus.MustNewConstMetric(s.descs[name], prometheus.CounterValue, float64(n), string(of))
	}
	for _, of := range shortage.Resources() {
		now := 0.
		if isOpen && breaker.Of == of {
			now = 1
		}

		s.gauge("redrive_held", now, string(of))
		count("redrive_holds_total", counts[of].Openings, of)
		count("redrive_given_back_total", counts[of].GivenBack, of)
	}
}

// hindrances reports for each kind how long the oldest has kept the database from cleaning up.
func (s collection) hindrances(now time.Time) {
	held := map[string]float64{}
	for _, h := range s.View.Hindrances() {
		held[h.Kind] = max(held[h.Kind], now.Sub(h.Since).Seconds())
	}

	for _, kind := range health.HindranceKinds() {
		s.gauge("redrive_database_cleanup_held_seconds", held[kind], kind)
	}
}

// tallies reports the counters by queue and type.
func (s collection) tallies(tallies []queues.Tally) {
	for _, t := range tallies {
		for _, counter := range t.Totals.Counters() {
			desc := s.descs[counter.Name+"_total"]
			s.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(counter.Value), t.Queue, labelValue(t.Type))
		}
	}
}

// depths reports how many jobs of each queue have which state. Queues beyond the bound of
// labels are added up.
func (s collection) depths(byLabel map[string]stats.Depths) {
	for queue, depths := range byLabel {
		for _, state := range job.States() {
			s.gauge("redrive_jobs", float64(depths[job.Status(state)]), queue, string(state))
		}
	}
}

// workers reports the workers of each queue, likewise.
func (s collection) workers() {
	type places struct{ busy, free int }
	workers, running := map[string]places{}, s.Engine.Running()
	for _, name := range s.View.QueueNames() {
		busy, label := running[name], s.View.Label(name)
		p := workers[label]
		workers[label] = places{p.busy + busy, p.free + max(0, s.Config.Workers(name)-busy)}
	}

	for queue, p := range workers {
		s.gauge("redrive_workers", float64(p.busy), queue, "busy")
		s.gauge("redrive_workers", float64(p.free), queue, "free")
	}
}

// reasons reports every known reason, also at zero, so that the first dead letter of
// a reason is seen as a rise.
func (s collection) reasons(counts []filter.ReasonCount) {
	all := map[retry.Reason]int64{}
	for _, r := range retry.Reasons() {
		all[r] = 0
	}

	for _, r := range counts {
		all[r.Reason] = r.Count
	}

	for reason, n := range all {
		s.gauge("redrive_dead_letters", float64(n), labelValue(string(reason)))
	}
}

// usage reports how full the dead-letter queue is.
func (s collection) usage(u retention.Usage, now time.Time) {
	keeps, oldest := s.Config.Retention(), 0.
	if !u.Oldest.IsZero() {
		oldest = max(0, now.Sub(u.Oldest).Seconds())
	}

	s.gauge("redrive_dead_letter_queue_letters", float64(u.Open))
	s.gauge("redrive_dead_letter_queue_oldest_age_seconds", oldest)
	s.gauge("redrive_dead_letter_queue_fill_ratio", u.Share(keeps))
	s.gauge("redrive_dead_letter_queue_limit_letters", float64(keeps.Count))

	if full, ok := u.Reaches(keeps, 1, now); ok {
		s.gauge("redrive_dead_letter_queue_full_timestamp_seconds", float64(full.Unix()))
	}

	s.gauge("redrive_dead_letter_queue_max_age_seconds", keeps.Ages[retention.DeadLetters].Seconds())
}

// removals reports what retention removed. Queues beyond
// the bound of labels are added up.
func (s collection) removals(all []retention.Removal) {
	sums := map[retention.Part]int64{}
	for _, r := range all {
		sums[retention.Part{Kind: r.Kind, Queue: s.View.Label(r.Queue)}] += r.Jobs
	}

	for part, n := range sums {
		desc := s.descs["redrive_retention_removed_total"]
		s.out <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(n), string(part.Kind), part.Queue)
	}
}

// ownQueues counts the queues that belong to no source: only these are limited.
func ownQueues(names []string) (n int) {
	for _, name := range names {
		if job.SourceOf(name) == "" {
			n++
		}
	}

	return n
}

// labelValue makes a value that every reader of metrics accepts.
func labelValue(s string) string { return clip.Text(s, job.MaxType) }
