package storetest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
)

// hardToFind are filters of which no index has all conditions. Most select few jobs, or none.
func hardToFind() (all []filter.Filter) {
	none := filter.Filter{Class: "none"}
	late := filter.Filter{From: time.Unix(1<<33, 0)}

	for _, status := range append(job.Statuses(), "") {
		if status == job.Status(job.Retryable) || status == job.Status(job.Scheduled) {
			continue // listed by the time of their next run
		}

		for _, f := range []filter.Filter{none, {Attempts: filter.Span{Min: 2}}, {Run: filter.Span{Min: 2}}, {Type: "email.*"}} {
			f.Status = status
			all = append(all, f)
		}
	}

	all = append(all, late, filter.Filter{Status: job.StatusDeadLetter, Queue: "mail", Type: "report"}, filter.Filter{Queue: "mail.slow"},
		filter.Filter{Source: "shop", Type: "charge"}, filter.Filter{Queue: "shop:orders", Type: "refund"},
		filter.Filter{Status: job.StatusDeadLetter, Source: "shop", Class: "Declined", Run: filter.Span{Min: 1}},
		filter.Filter{Status: job.Status(job.Discarded), Source: "shop", Type: "refund"})
	for _, f := range slices.Clone(all) {
		f.Sort = filter.Oldest
		all = append(all, f)
	}

	return all
}

// ListsGoOnWhereTheirTimeEnded: a list for which there is no time says how far it has come, also if
// it has found nothing. Page by page it finds what it finds with time, each job once.
func ListsGoOnWhereTheirTimeEnded(k *kit) {
	k.variety()

	// Its policy has to be read for a page.
	lone := simple()
	lone.Policy = policy(9)
	k.add(lone)

	var records []source.Record
	for n := range 12 {
		records = append(records, k.deadAt(strconv.Itoa(n)))
		records[n].FailedAt = k.now.Add(-time.Duration(n/2) * time.Minute)
		records[n].Type = []string{"charge", "refund"}[n%2]
	}

	group := filter.Filter{Status: job.StatusDeadLetter, Group: k.group(k.mirror(12, records...)[0]).Fingerprint, Class: "Declined"}

	want := map[filter.Filter][]string{}
	for _, f := range append(hardToFind(), group) {
		want[f] = ids(k.all(f, 1000))
	}

	over, cancel := context.WithDeadline(k.ctx, time.Unix(0, 0))
	defer cancel()

	for f, want := range want {
		k.restart() // what pages have read is not known any more

		got := k.leaf(f, func(after filter.Cursor) ([]job.Job, filter.Cursor, error) {
			page, err := k.Jobs(over, f, after, 20)
			return page.Jobs, page.Next, err
		})
		k.same(fmt.Sprintf("jobs of %+v, found without time", f), got, want)

		got = k.leaf(f, func(after filter.Cursor) ([]job.Job, filter.Cursor, error) {
			page, err := k.WholeJobs(over, f, after, 20)
			return page.Jobs, page.Next, err
		})
		k.same(fmt.Sprintf("whole jobs of %+v, found without time", f), got, want)

		if f.Status != job.StatusDeadLetter {
			continue
		}

		got = k.leaf(f, func(after filter.Cursor) (jobs []job.Job, next filter.Cursor, err error) {
			page, err := k.DeadLetters(over, f, after, 20)
			for _, l := range page.DeadLetters {
				jobs = append(jobs, l.Job)
			}

			return jobs, page.Next, err
		})
		k.same(fmt.Sprintf("dead letters of %+v, found without time", f), got, want)
	}
}

// leaf reads every page of a list whose time is over, and returns the ids of the jobs. An early end of a
// page has to say where the list goes on.
func (k *kit) leaf(f filter.Filter, read func(after filter.Cursor) ([]job.Job, filter.Cursor, error)) (found []string) {
	k.Helper()

	found = []string{}
	var after filter.Cursor
	for range 1000 {
		jobs, next, err := read(after)
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			k.Fatal(err)
		}

		found = append(found, ids(jobs)...)

		if next == (filter.Cursor{}) {
			if err != nil {
				k.Fatalf("filter %+v: a page that was ended early does not say where to go on", f)
			}

			return found
		}

		after, err = filter.ParseCursor(next.String())
		k.check(err)
	}

	k.Fatalf("filter %+v: a list does not end", f)

	return nil
}
