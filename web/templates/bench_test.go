package templates_test

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/failurepage"
	"redrive/web/templates/jobpage"
	"redrive/web/templates/listpage"
)

// BenchmarkPages draws the pages that people look at most, with 50 rows each and
// every facet that a list may have.
func BenchmarkPages(b *testing.B) {
	for _, of := range []struct {
		name string
		page page
	}{
		{"dead-letters", fullDeadLetters()},
		{"jobs", fullJobs()},
		{"jobs,dead", deadJobs()},
		{"job", usualJob()},
		{"job,long", manyRuns(25).page()},
		{"failures", fullFailures()},
		{"overview", overview(frame("overview", "Overview"))},
	} {
		b.Run(of.name, func(b *testing.B) {
			var to bytes.Buffer
			b.ReportAllocs()
			for b.Loop() {
				to.Reset()
				if err := of.page.Page().Render(b.Context(), &to); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(to.Len()), "page-bytes")
		})
	}
}

func fullDeadLetters() listpage.DeadLetters {
	v := deadLetters(frame("dead-letters", "Dead letters"))
	v.Refused, v.List, v.Query = nil, deadLetterRows(50), fullQuery()
	return v
}

func fullJobs() listpage.Jobs {
	v := jobs(frame("jobs", "Jobs"))
	v.List.Jobs, v.Query = mixed(50), fullQuery()
	return v
}

// deadJobs is the list of jobs with all that its filter can bring along.
func deadJobs() listpage.Jobs {
	v := fullJobs()
	v.Filter = filter.Filter{Status: job.StatusDeadLetter, Queue: "payments", Error: "timeout"}
	v.List.Jobs, v.After = failing(50), filter.Cursor{At: now, Seq: 5}.String()
	return v
}

// usualJob has as many others of its type as are shown.
func usualJob() jobpage.View {
	v := recentPage()
	for n := range jobpage.RecentJobs {
		v.Recent = append(v.Recent, failureOf(n%20, []job.Status{job.StatusDeadLetter, job.Status(job.Completed), job.Status(job.Retryable)}[n%3]))
	}
	v.Recent = v.Recent[:jobpage.RecentJobs]
	return v
}

func fullFailures() failurepage.List {
	v := groupFailures(frame("failures", "Failures"))
	for n := len(v.List.Groups); n < 50; n++ {
		g := group(n % len(kinds()))
		g.Number, g.Fingerprint = int64(n), fmt.Sprintf("%016x", n)
		g.LastSeen = now.Add(-time.Duration(n) * time.Minute)
		v.List.Groups = append(v.List.Groups, g)
	}
	return v
}

// fullQuery has as many facets and suggestions as are shown.
func fullQuery() listpage.Query {
	q := above()
	names := func(format string, n int) (all []filter.NameCount) {
		for i := range n {
			all = append(all, filter.NameCount{Name: fmt.Sprintf(format, i), Count: int64(2000 - 31*i)})
		}
		return all
	}
	q.Tally.Facets.Queues, q.Tally.Facets.Types = names("queue-%d", 20), names("kind.of.%d", 20)
	q.Dead = q.Tally.Facets
	for _, c := range q.Tally.Facets.Queues {
		q.Queues = append(q.Queues, c.Name)
	}
	return q
}
