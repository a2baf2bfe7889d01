package storetest

import (
	"strings"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// whole is what a list of jobs with all that they bring along has.
var whole = []func(*kit){WholeJobsAreTheSame, WholeJobsOfGreatSizeComeInShortPages}

// WholeJobsAreTheSame: the same jobs in the same pages, with all that they bring
// along.
func WholeJobsAreTheSame(k *kit) {
	k.variety()

	for _, f := range []filter.Filter{{}, {Text: "service"}, {Status: job.StatusDeadLetter, Queue: "mail"}} {
		var after filter.Cursor
		for range 3 {
			list, err := k.Jobs(k.ctx, f, after, 5)
			k.check(err)
			whole, err := k.WholeJobs(k.ctx, f, after, 5)
			k.check(err)
			k.same("the place of the next page", whole.Next, list.Next)

			for _, j := range whole.Jobs {
				k.same("a job of "+f.String(), j, k.job(j.ID))
			}

			k.same("the jobs of "+f.String(), ids(whole.Jobs), ids(list.Jobs))
			after = list.Next
		}
	}
}

// WholeJobsOfGreatSizeComeInShortPages: a page holds a bounded number of bytes,
// and no job is lost between two.
func WholeJobsOfGreatSizeComeInShortPages(k *kit) {
	const size, all = 900_000, 7
	var want []string
	for range all {
		j := simple()
		j.Payload = []byte(`"` + strings.Repeat("x", size) + `"`)
		want = append(ids(k.add(j)), want...)
	}

	var got []string
	var after filter.Cursor
	for {
		page, err := k.WholeJobs(k.ctx, filter.Filter{}, after, 50)
		k.check(err)

		if n := len(page.Jobs); n == 0 || n > 3 {
			k.Fatalf("a page of %d jobs of %d bytes each", n, size)
		}

		got, after = append(got, ids(page.Jobs)...), page.Next
		if after == (filter.Cursor{}) {
			break
		}
	}

	k.same("the jobs of all pages", got, want)
}

// CountsUpToALimit: of every filter, text included, and no further.
func CountsUpToALimit(k *kit) {
	k.deads(5)
	k.add(simple(), simple())
	_, err := k.Search.Update(k.ctx)
	k.check(err)

	for query, want := range map[string]int{
		"": 7, "state:dead_letter": 5, "state:available": 2, "state:dead_letter queue:nowhere": 0, "state:dead_letter attempts:1": 5,
		"state:dead_letter since:1h": 5,
	} {
		f, err := filter.Parse(query, k.now)
		k.check(err)
		n, more, err := k.Count(k.ctx, f, 7)
		k.check(err)
		k.same("all of "+query, []any{n, more}, []any{want, false})
		n, more, err = k.Count(k.ctx, f, 3)
		k.check(err)
		k.same("some of "+query, []any{n, more}, []any{min(want, 3), want > 3})
	}
}
