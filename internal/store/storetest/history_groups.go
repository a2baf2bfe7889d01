package storetest

import (
	"slices"

	"redrive/internal/failures"
	"redrive/internal/job"
)

// grouped counts a failure in the model: groups are numbered as they are first
// seen.
func (h *random) grouped(m *job.Job, class string) {
	i := slices.IndexFunc(h.groups, func(g failures.Group) bool { return g.Class == class })
	if i < 0 {
		i = len(h.groups)
		g := failures.Group{FirstSeen: h.kit.now}
		g.Class = class
		h.groups = append(h.groups, g)
	}

	h.groups[i].Failures++
	h.groups[i].LastSeen = h.kit.now
	m.Group = int64(i + 1)
}

// proved counts how a replayed run ended, for the group from which it came.
func (h *random) proved(m *job.Job) {
	from := h.from[job.Token{ID: m.ID, Run: m.Run}]
	switch {
	case from == 0:
	case m.State == job.Completed:
		h.groups[from-1].Recovered++
	case m.State == job.Discarded:
		h.groups[from-1].Relapsed++
	}
}

// countGroups compares the groups with the model, whose jobs are counted the
// long way.
func (h *random) countGroups() {
	for i := range h.groups {
		g := &h.groups[i]
		g.Dead, g.Refused, g.Retrying = 0, 0, 0
		for _, m := range h.jobs {
			switch {
			case m.Group != int64(i+1):
			case m.DeadLetter == job.DeadLetterStored:
				g.Dead++
			case m.DeadLetter == job.DeadLetterRefused:
				g.Refused++
			case m.Cancellable():
				g.Retrying++
			}
		}
	}

	page, err := h.kit.Groups.List(h.kit.ctx, h.kit.now, failures.Filter{}, failures.Cursor{}, 10)
	h.must(err)
	h.kit.same("the number of groups", len(page.Groups), len(h.groups))

	for _, g := range page.Groups {
		want := h.groups[g.Number-1]
		h.kit.same("the group "+g.Class, []any{g.Class, g.Failures, g.Dead, g.Refused, g.Retrying, g.Replayed, g.Recovered, g.Relapsed, g.FirstSeen, g.LastSeen},
			[]any{want.Class, want.Failures, want.Dead, want.Refused, want.Retrying, want.Replayed, want.Recovered, want.Relapsed, want.FirstSeen, want.LastSeen})

		sum := int64(0)
		for _, q := range g.Queues {
			sum += q.Count
		}

		h.kit.same("its queues and its day", []int64{sum, total(g.LastDay)}, []int64{want.Failures, want.Failures})
	}
}

func total(all []int64) (sum int64) {
	for _, n := range all {
		sum += n
	}
	return sum
}
