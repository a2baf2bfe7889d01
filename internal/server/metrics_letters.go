package server

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
)

// letterDescs are the metrics of the dead-letter queue and of the search for what
// failed. They are gauges: they fall as letters are replayed, discarded and
// pruned, and as failures become searchable.
type letterDescs struct {
	byReason, refused, open, limit, share, oldest, maxAge, unsearched *prometheus.Desc
}

func newLetterDescs() letterDescs {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(name, help, labels, nil)
	}
	return letterDescs{
		byReason: desc("redrive_dead_letters", "Dead letters that are neither replayed nor discarded, by reason.", "reason"),
		refused:  desc("redrive_dead_letters_refused", "Jobs whose dead letter was refused and that wait for a person."),
		open:     desc("redrive_dead_letter_queue_letters", "Dead letters in the dead-letter queue."),
		limit:    desc("redrive_dead_letter_queue_limit_letters", "Dead letters beyond which the oldest are removed."),
		share:    desc("redrive_dead_letter_queue_fill_ratio", "How full the dead-letter queue is: 1 when the oldest are removed."),
		oldest:   desc("redrive_dead_letter_queue_oldest_age_seconds", "Age of the oldest dead letter; 0 when there is none."),
		maxAge:   desc("redrive_dead_letter_queue_max_age_seconds", "Age from which dead letters are removed."),

		unsearched: desc("redrive_search_lag_jobs", "Jobs whose newest failure cannot be searched yet."),
	}
}

func (d letterDescs) all() []*prometheus.Desc {
	return []*prometheus.Desc{d.byReason, d.refused, d.open, d.limit, d.share, d.oldest, d.maxAge, d.unsearched}
}

// collectLetters reads how many dead letters there are and what bounds them.
// Each known reason is there, also at zero, so that its first letter is a rise.
func (c *collector) collectLetters(ctx context.Context, now time.Time, out chan<- prometheus.Metric) {
	out <- gauge(c.letters.refused, float64(c.View.Snapshot().Depths[job.StatusDLQFailed]))
	if counts, err := c.View.Reasons(ctx); err != nil {
		out <- prometheus.NewInvalidMetric(c.letters.byReason, err)
	} else {
		all := map[retry.Reason]int64{}
		for _, r := range retry.Reasons() {
			all[r] = 0
		}
		for _, r := range counts {
			all[r.Reason] = r.Count
		}
		for reason, n := range all {
			out <- gauge(c.letters.byReason, float64(n), label(string(reason)))
		}
	}
	if lag, err := c.View.SearchLag(ctx); err != nil {
		out <- prometheus.NewInvalidMetric(c.letters.unsearched, err)
	} else {
		out <- gauge(c.letters.unsearched, float64(lag))
	}
	if f, err := c.View.Usage(ctx, now); err != nil {
		out <- prometheus.NewInvalidMetric(c.letters.open, err)
	} else {
		c.collectFill(f, now, out)
	}
}

func (c *collector) collectFill(f retention.Usage, now time.Time, out chan<- prometheus.Metric) {
	keeps, oldest := c.Config.Retention(), 0.
	if !f.Oldest.IsZero() {
		oldest = max(0, now.Sub(f.Oldest).Seconds())
	}
	out <- gauge(c.letters.open, float64(f.Open))
	out <- gauge(c.letters.oldest, oldest)
	out <- gauge(c.letters.share, f.Share(keeps))
	out <- gauge(c.letters.limit, float64(keeps.Count))
	out <- gauge(c.letters.maxAge, keeps.Age.Seconds())
}
