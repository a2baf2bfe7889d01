package storetest

import (
	"fmt"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// NewerCountsWhatStandsBefore: the place of any row of a list, up to a limit.
func NewerCountsWhatStandsBefore(k *kit) {
	k.deads(5)
	k.add(simple(), simple())

	for _, f := range []filter.Filter{{}, {Status: job.StatusDeadLetter}, {Status: "available"}, {Status: "discarded", Queue: "orders"}} {
		list, err := k.Jobs(k.ctx, f, filter.Cursor{}, 10)
		k.check(err)

		for before, j := range list.Jobs {
			n, more, err := k.Newer(k.ctx, f, f.CursorOf(j), 3)
			k.check(err)
			k.same(fmt.Sprintf("before row %d of %+v", before, f), []any{n, more}, []any{min(before, 3), before > 3})
		}
	}
}
