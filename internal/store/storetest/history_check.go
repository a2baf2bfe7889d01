package storetest

import (
	"maps"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// agree compares what is cheap to compare, after each step.
func (h *random) agree(t *rapid.T) {
	models := []job.Job{}
	for _, j := range h.jobs {
		models = append(models, *j)
	}

	got := h.kit.Snapshot()
	if want := depths(models); !maps.Equal(got.Depths, want) {
		t.Fatalf("depths are %v, want %v", got.Depths, want)
	}

	if got.Totals != h.totals || got.Totals.Failed != got.Totals.Requeued+got.Totals.FailedPermanently {
		t.Fatalf("totals are %+v, want %+v", got.Totals, h.totals)
	}

	if h.kit.T.Failed() {
		t.FailNow()
	}
}

// details compares every job with its model.
func (h *random) details(*rapid.T) {
	open := int64(0)
	for _, id := range h.order {
		d := h.kit.detail(id)
		h.kit.same("the job", d.Job, *h.jobs[id])
		h.kit.same("executions that ended", len(d.Attempts), h.ended[id])

		counted := 0
		for _, a := range d.Attempts {
			if a.Run == d.Job.Run && a.Number > 0 {
				counted++
			}
		}

		h.kit.same("counted attempts", counted, d.Job.Attempts)

		if d.Job.DeadLetter == job.DeadLetterStored {
			open++
		}
	}

	h.countGroups()
	reasons, err := h.kit.Counters.Reasons(h.kit.ctx)
	h.must(err)

	for _, r := range reasons {
		open -= r.Count
	}

	h.kit.same("letters that are open but not counted", open, int64(0))
	fill, err := h.kit.Sweep.DeadLetterUsage(h.kit.ctx, h.kit.now)
	h.must(err)

	day := int64(0)
	for _, l := range h.kit.deadLetters(filter.Filter{}, 1000) {
		if !l.FailedAt.Before(h.kit.now.Truncate(time.Hour).Add(-23 * time.Hour)) {
			day++
		}
	}

	h.kit.same("letters of the last day", fill.LastDay, day)
}
