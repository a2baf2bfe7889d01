package storetest

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
)

var listing = []func(*kit){
	JobsByEveryFilter, JobsNewestFirst, JobsThatRunNextFirst, JobsPagesAreComplete, JobsPagesUnderConcurrentInserts,
	ListsSparePayloads, DeadLettersByEveryFilter, DeadLettersPagesAreComplete, ChangesOfKnownJobs, ListsGoOnWhereTheirTimeEnded,
}

// all reads every page of a list, some jobs at a time.
func (k *kit) all(f filter.Filter, limit int) []job.Job {
	k.Helper()

	var jobs []job.Job
	var after filter.Cursor
	for {
		page, err := k.Jobs(k.ctx, f, after, limit)
		k.check(err)

		jobs = append(jobs, page.Jobs...)
		if page.Next == (filter.Cursor{}) {
			return jobs
		}

		if len(page.Jobs) != limit {
			k.Fatalf("a page of %d jobs, of %d, says that there are more", len(page.Jobs), limit)
		}

		after, err = filter.ParseCursor(page.Next.String())
		if err != nil {
			k.Fatal(err)
		}
	}
}

// variety makes jobs in all states, queues and types, at different times and at
// the same, and returns them as they are stored.
func (k *kit) variety() []job.Job {
	k.Helper()

	var together []job.Job // those that are enqueued next
	for i := range 170 {
		j := simple()
		j.Queue = []string{"orders", "mail", "mail.slow"}[i%3]
		j.Type = []string{"email.send", "email.send.now", "emailx", "report"}[i%4]

		j.Policy = policy(1 + i%2)
		j.Key = fmt.Sprint("job ", i)
		if i%7 == 6 {
			j.RunAt = k.now.Add(time.Hour)
		}

		together = append(together, j)
		if i%5 == 0 {
			k.add(together...)
			together = nil

			k.pass(time.Second)
		}
	}

	k.add(together...)

	outcomes := []job.Outcome{job.Succeeded, job.Failed, job.TimedOut, job.Lost, job.Interrupted}
	for _, queue := range []string{"orders", "mail", "mail.slow"} {
		var ended []job.Settlement // at the same time
		for i, j := range k.claim(queue, 33) {
			if i%6 != 5 {
				ended = append(ended, j.Settle(k.ending(outcomes[i%5]), nil).Delivered(job.InDeadLetters(j.Queue, i%4 != 0)))
			}

			if i%2 == 1 {
				k.settleAll(ended)
				ended = nil

				k.pass(time.Second)
			}
		}

		k.settleAll(ended)
	}

	_, _, err := k.Exchange(k.ctx, nil, job.Claim{Now: k.now, Free: map[string]int{"mail": 3}, Knows: func(typ string) bool { return typ != "report" }})
	k.check(err)

	jobs := k.all(filter.Filter{}, 1000)
	for i, j := range jobs {
		if i%20 == 0 && j.Cancellable() {
			_, err := k.Cancel(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
			k.check(err)
		} else if i%7 == 0 && j.Discardable() {
			k.discard(j.ID)
		}
	}

	k.fill()

	return k.all(filter.Filter{}, 1000)
}

// matches is what a filter means.
func matches(f filter.Filter, j job.Job) bool {
	prefix, isPrefix := strings.CutSuffix(f.Type, "*")
	text := strings.ToLower(j.Error.Type + "\n" + j.Error.Message)

	return (f.Status == "" || f.Status == j.Status() || f.Status == job.Status(j.State)) &&
		(f.Queue == "" || f.Queue == j.Queue) &&
		(f.Type == "" || f.Type == j.Type || isPrefix && strings.HasPrefix(j.Type, prefix)) &&
		(f.Reason == "" || f.Reason == j.Reason) &&
		(f.Error == "" || strings.Contains(text, strings.ToLower(f.Error)))
}

// JobsByEveryFilter: a list has exactly the jobs that the filter's fields all
// select. A view (held, dead_letter, dlq_failed, trashed) is part of its state.
func JobsByEveryFilter(k *kit) {
	jobs := k.variety()
	for _, status := range append(job.Statuses(), "") {
		for _, queue := range []string{"", "mail", "mail.slow", "none"} {
			for _, typ := range []string{"", "email.send", "email.*", "none.*"} {
				for _, text := range []string{"", "SERVICE un", "nothing"} {
					f := filter.Filter{Status: status, Queue: queue, Type: typ, Error: text}
					var want []string
					for _, j := range jobs {
						if matches(f, j) {
							want = append(want, j.ID)
						}
					}

					got := ids(k.all(f, 1000))

					slices.Sort(want)
					slices.Sort(got)

					if !slices.Equal(got, want) {
						k.Errorf("filter %+v found %d jobs, want %d", f, len(got), len(want))
					}
				}
			}
		}
	}

	for status, n := range k.Snapshot().Depths {
		if n == 0 && status != job.Status(job.Returning) && status != job.Status(job.Returned) {
			k.Errorf("the test has no job that is %s", status)
		}
	}
}

// JobsNewestFirst: by the order of enqueueing or by the time of the last change,
// as the status says.
func JobsNewestFirst(k *kit) {
	k.variety()

	for _, status := range append(job.Statuses(), "") {
		jobs := k.all(filter.Filter{Status: status, Sort: filter.Newest}, 1000)
		for i := 1; i < len(jobs); i++ {
			a, b := jobs[i-1], jobs[i]
			if status.ByEnqueueing() && a.Seq <= b.Seq ||
				!status.ByEnqueueing() && (a.ChangedAt.Before(b.ChangedAt) || a.ChangedAt.Equal(b.ChangedAt) && a.Seq <= b.Seq) {
				k.Errorf("%q: job %d (%v) stands before %d (%v)", status, a.Seq, a.ChangedAt, b.Seq, b.ChangedAt)
			}
		}
	}
}

// JobsThatRunNextFirst: jobs that wait are listed by the time at which they run next,
// of one queue and of all, unless the filter says otherwise.
func JobsThatRunNextFirst(k *kit) {
	k.variety()

	for i, queue := range []string{"orders", "mail", "other"} {
		for n := range 4 {
			j := in(queue)
			j.RunAt = k.now.Add(time.Hour - time.Duration(i+3*n%4)*time.Minute)
			k.add(j)
		}
	}

	for _, state := range []job.State{job.Retryable, job.Scheduled} {
		for _, f := range []filter.Filter{{}, {Queue: "orders"}, {Type: "email.*"}, {Attempts: filter.Span{Max: 1}}} {
			f.Status, f.Sort = job.Status(state), filter.Newest
			want := k.all(f, 1000)
			slices.SortFunc(want, func(a, b job.Job) int { return cmp.Or(a.RunAt.Compare(b.RunAt), cmp.Compare(a.Seq, b.Seq)) })

			if len(want) < 3 {
				k.Errorf("the test has only %d jobs for %v", len(want), f)
			}

			for _, f.Sort = range []filter.Sort{"", filter.Next} {
				k.same(f.String(), ids(k.all(f, 1000)), ids(want))
				k.same(f.String()+" in pages", ids(k.all(f, 3)), ids(want))
			}
		}
	}
}

// JobsPagesAreComplete: pages of any size show each job once, and the last one
// has no next.
func JobsPagesAreComplete(k *kit) {
	k.variety()

	for _, status := range append(job.Statuses(), "") {
		for _, queue := range []string{"", "mail"} {
			f := filter.Filter{Status: status, Queue: queue}
			want := ids(k.all(f, 1000))
			for _, limit := range []int{1, 7, max(1, len(want))} {
				k.same(fmt.Sprintf("%+v in pages of %d", f, limit), ids(k.all(f, limit)), want)
			}
		}
	}
}

// JobsPagesUnderConcurrentInserts: jobs that come while a user turns pages
// neither repeat nor hide those that were there.
func JobsPagesUnderConcurrentInserts(k *kit) {
	for _, f := range []filter.Filter{{}, {Status: job.Status(job.Available)}} {
		want := ids(k.all(f, 1000))
		if len(want) == 0 {
			k.add(many(200)...)
			want = ids(k.all(f, 1000))
		}

		k.pass(time.Second)
		var writer sync.WaitGroup
		stop := make(chan struct{})
		writer.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}

				if _, err := k.Enqueue(k.ctx, k.now, many(2)); err != nil {
					k.Error(err)
					return
				}
			}
		})

		got := ids(k.all(f, 3))

		close(stop)
		writer.Wait()

		if len(got) < len(want) {
			k.Fatalf("%d of %d jobs", len(got), len(want))
		}

		k.same("the jobs that were there", got[len(got)-len(want):], want)
		slices.Sort(got)
		k.same("distinct jobs", len(slices.Compact(got)), len(got))
	}
}

// ListsSparePayloads: a list of jobs comes without payloads, one of dead
// letters with their first 2048 bytes.
func ListsSparePayloads(k *kit) {
	j := lasting(1)
	j.Payload = bytes.Repeat([]byte("é"), 1100)
	k.dead(j)
	k.same("the payload in a list of jobs", len(k.all(filter.Filter{}, 10)[0].Payload), 0)
	k.same("the payload in a list of letters", k.deadLetters(filter.Filter{}, 10)[0].Job.Payload, j.Payload[:2048])
}

// deadLetters reads every page of the open dead letters.
func (k *kit) deadLetters(f filter.Filter, limit int) []filter.DeadLetterRow {
	k.Helper()

	var rows []filter.DeadLetterRow
	var after filter.Cursor
	for {
		page, err := k.DeadLetters(k.ctx, f, after, limit)
		k.check(err)

		rows = append(rows, page.DeadLetters...)
		after = page.Next
		if after == (filter.Cursor{}) {
			return rows
		}
	}
}

// DeadLettersByEveryFilter: the list has the open dead letters of the jobs that the
// filter selects; what is found by its text, by the order of enqueueing.
func DeadLettersByEveryFilter(k *kit) {
	jobs := k.variety()
	for _, queue := range []string{"", "orders", "mail"} {
		for _, typ := range []string{"", "report", "email.*"} {
			for _, reason := range []string{"", "attempts_exhausted", "manual"} {
				f := filter.Filter{Queue: queue, Type: typ, Error: "unavail"}

				f.Reason = retry.Reason(reason)
				want := 0
				for _, j := range jobs {
					if j.DeadLetter == job.DeadLetterStored && matches(f, j) {
						want++
					}
				}

				rows := k.deadLetters(f, 1000)
				k.same(fmt.Sprintf("the number of letters of %+v", f), len(rows), want)

				for i, row := range rows {
					if row.Job.ID != row.JobID || !matches(f, row.Job) || i > 0 && row.Job.Seq > rows[i-1].Job.Seq {
						k.Errorf("%+v: letter %d is %+v", f, i, row)
					}
				}
			}
		}
	}
}

// DeadLettersPagesAreComplete: as JobsPagesAreComplete.
func DeadLettersPagesAreComplete(k *kit) {
	k.variety()

	want := k.deadLetters(filter.Filter{}, 1000)
	if len(want) < 10 {
		k.Fatalf("the test has only %d letters", len(want))
	}

	for _, limit := range []int{1, 3, len(want)} {
		k.same("the letters", k.deadLetters(filter.Filter{}, limit), want)
	}
}

// ChangesOfKnownJobs: where jobs stand, as the changes that were told would
// say; unknown ids are left out.
func ChangesOfKnownJobs(k *kit) {
	var want []job.Change
	for _, j := range []job.Job{k.add(simple())[0], k.dead(in("mail"))} {
		want = append(want, j.Changed())
	}

	got, err := k.Changes(k.ctx, []string{want[1].ID, job.NewID(), "'; --", want[0].ID})
	k.check(err)
	k.same("the changes", got, want)
}
