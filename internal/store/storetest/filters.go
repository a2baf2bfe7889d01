package storetest

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/db"
)

// ListsOldestFirst: the other way round, and in pages.
func ListsOldestFirst(k *kit) {
	k.variety()

	for _, f := range []filter.Filter{{}, {Status: job.Status(job.Retryable)}, {Status: job.Status(job.Active), Queue: "mail"}} {
		f.Sort = filter.Newest
		want := ids(k.all(f, 1000))
		slices.Reverse(want)

		f.Sort = filter.Oldest
		k.same(f.String(), ids(k.all(f, 7)), want)
	}

	rows := k.deadLetters(filter.Filter{}, 1000)
	slices.Reverse(rows)
	k.same("the letters", k.deadLetters(filter.Filter{Sort: filter.Oldest}, 4), rows)
}

// FiltersMeanWhatTheySay: whatever a filter combines, the lists have exactly the
// jobs that filter.Filter.Match selects.
func FiltersMeanWhatTheySay(k *kit) {
	k.variety()

	for i, typ := range []string{"http.503", "http.500", "httpx", "sql.deadlock"} {
		for range 3 {
			j := in([]string{"orders", "mail"}[i%2])
			j.Payload = fmt.Appendf(nil, `{"order_id":%d,"name":"Ünï %d"}`, 1040+i, i)
			j.Meta = fmt.Appendf(nil, `{"tenant":"t%d"}`, i)

			k.pass(time.Second)

			if dead := k.failing(j, typ, fmt.Sprintf("attempt on order %d timed out", 1040+i)); i%2 == 0 {
				_, err := k.Replay(k.ctx, k.now, dead.ID, 1, audit.Actor{Name: "ana"})
				k.check(err)
			}
		}
	}

	k.fill()

	jobs := k.all(filter.Filter{}, 1000)
	documents := make([]db.Document, len(jobs))
	for i, j := range jobs {
		documents[i] = k.document(j.ID)
	}

	rapid.Check(k.T, func(t *rapid.T) {
		f, chosen := drawFilter(t, jobs)
		got, want := ids(k.all(f, 1000)), selected(f, jobs, documents, func(job.Job) bool { return true })
		slices.Sort(got)

		if !slices.Equal(got, want) {
			t.Fatalf("%v lists %d jobs, want %d", f, len(got), len(want))
		}

		if chosen != "" && !slices.Contains(got, chosen) {
			t.Fatalf("%v does not list job %s, from which it was made", f, chosen)
		}

		f.Status = "" // a list of dead letters has no other
		got = nil
		for _, l := range k.deadLetters(f, 1000) {
			got = append(got, l.JobID)
		}

		slices.Sort(got)

		if want := selected(f, jobs, documents, func(j job.Job) bool { return j.DeadLetter == job.DeadLetterStored }); !slices.Equal(got, want) {
			t.Fatalf("%v lists %d letters, want %d", f, len(got), len(want))
		}
	})
}

// selected are the ids of the jobs that the filter selects, of some.
func selected(f filter.Filter, jobs []job.Job, documents []db.Document, of func(job.Job) bool) []string {
	var all []string
	for i, j := range jobs {
		if of(j) && selects(f, j, documents[i]) {
			all = append(all, j.ID)
		}
	}

	slices.Sort(all)

	return all
}

// document is what can be searched of a job, by its history.
func (k *kit) document(id string) db.Document {
	k.Helper()

	d := k.detail(id)
	for _, a := range slices.Backward(d.Attempts) {
		if a.Outcome.Counted() && a.Outcome != job.Succeeded {
			d.Job.Error = a.Error
			return db.DocumentOf(d.Job)
		}
	}

	return db.Document{}
}

// drawFilter draws a filter of a few parts, most of which some job has. Half of the
// filters are made from one job, which they select: chosen is its id then.
func drawFilter(t *rapid.T, jobs []job.Job) (f filter.Filter, chosen string) {
	j := rapid.SampledFrom(jobs).Draw(t, "job")
	selects := rapid.Bool().Draw(t, "that selects the job")
	maybe := func(name string, values ...string) string {
		if selects {
			values = values[:1]
		}
		return rapid.SampledFrom(append(values, make([]string, 12*len(values))...)).Draw(t, name)
	}
	words := []string{"timed", "ORDER 104", "ünï", "http.5", "Service", "nothing of it", `"order_id":1041`, "t1", "email", j.ID[:13]}
	long := slices.DeleteFunc(words, func(s string) bool { return len(s) < filter.MinSearch })

	f = filter.Filter{
		Status: job.Status(maybe("state", string(j.State), string(j.Status()), "dead_letter", "held")),
		Queue:  maybe("queue", j.Queue, "mail"), Type: maybe("type", j.Type, "email.*"),
		Reason: retry.Reason(maybe("reason", string(j.Reason), "manual")),
		Class:  maybe("class", j.Error.Type, "http.*"), ID: maybe("id", j.ID, j.ID[:filter.MinID], strings.Repeat("f", 8)),
		Sort: filter.Sort(maybe("sort", "oldest")),
	}
	if selects {
		return f, j.ID
	}

	f.Error, f.Payload, f.Meta, f.Text = maybe("error", long...), maybe("payload", long...), maybe("meta", long...), maybe("text", long...)
	f.Group = maybe("group", "none")
	if rapid.IntRange(0, 4).Draw(t, "with numbers") == 0 {
		f.Attempts = filter.Span{Min: rapid.IntRange(0, 2).Draw(t, "attempts")}
		f.Run = filter.Span{Max: rapid.IntRange(0, 2).Draw(t, "run")}
	}

	if rapid.IntRange(0, 3).Draw(t, "with times") == 0 {
		f.From = j.ChangedAt.Add(rapid.SampledFrom([]time.Duration{-time.Second, 0, time.Microsecond}).Draw(t, "from"))
		f.To = f.From.Add(rapid.SampledFrom([]time.Duration{time.Microsecond, time.Second, time.Hour}).Draw(t, "to"))
	}

	return f, ""
}

// TalliesAreCounts: a tally has the numbers of jobs that lists under the same filter,
// or under it with another state, queue, type or reason, have; with too many to look
// at it says so. What is known in advance says the same.
func TalliesAreCounts(k *kit) {
	k.variety()

	count := func(f filter.Filter) int64 { return int64(len(k.all(f, 1000))) }
	dead := job.StatusDeadLetter
	for _, f := range []filter.Filter{
		{}, {Queue: "mail"}, {Status: dead}, {Status: dead, Queue: "mail", Type: "email.*", Reason: retry.AttemptsExhausted}, {Status: "retryable"},
		{Text: "service"}, {Error: "unavail", Status: dead, Type: "email.*"}, {Text: "service", Queue: "mail", Reason: retry.AttemptsExhausted},
		{Attempts: filter.Span{Min: 1}}, {Text: "nothing of it"}, {Status: "retryable", Error: "service"},
	} {
		t, err := k.Tally(k.ctx, f, 1000)
		k.check(err)
		known, complete, err := k.Counters.Known(k.ctx, f)
		k.check(err)
		k.same("the total of "+f.String(), t.Total, count(f))

		if complete {
			k.same("the known total of "+f.String(), known.Total, t.Total)
		}

		for _, status := range job.Statuses() {
			other := f
			other.Status = status
			k.same(fmt.Sprintf("%s jobs of %v", status, f), t.States[status], count(other))

			if known.States != nil {
				k.same(fmt.Sprintf("known %s jobs of %v", status, f), known.States[status], t.States[status])
			}
		}

		k.same("counted under all of "+f.String(), t.Whole, true)

		for _, q := range t.Facets.Queues {
			other := f
			other.Queue = q.Name
			k.same("jobs of "+other.String(), q.Count, count(other))
		}

		for _, r := range t.Facets.Reasons {
			other := f
			other.Reason = r.Reason
			k.same("jobs of "+other.String(), r.Count, count(other))
		}

		for _, typ := range t.Facets.Types {
			other := f
			other.Type = typ.Name
			k.same("jobs of "+other.String(), typ.Count, count(other))
		}
	}

	t, err := k.Tally(k.ctx, filter.Filter{Text: "service"}, 3)
	k.check(err)

	if !t.More || t.Whole || t.Total != 3 {
		k.Errorf("a tally of three has %d, more: %v, facets: %v", t.Total, t.More, t.Whole)
	}

	all := count(filter.Filter{Text: "service"})
	t, err = k.Tally(k.ctx, filter.Filter{Text: "service", Queue: "mail"}, int(all)-1)
	k.check(err)

	if t.More || t.Whole || t.Total != count(filter.Filter{Text: "service", Queue: "mail"}) || len(t.Facets.Queues) > 0 {
		k.Errorf("a tally of a queue among too many is %+v", t)
	}
}

// TalliesOfTooManyJobs: when the jobs of every status are too many to look at, the facets
// are still counted among those of one, and the states among those of a queue.
func TalliesOfTooManyJobs(k *kit) {
	k.variety()

	count := func(f filter.Filter) int64 { return int64(len(k.all(f, 1000))) }
	for _, f := range []filter.Filter{{Text: "service", Status: job.StatusDeadLetter}, {Attempts: filter.Span{Min: 1}, Status: job.StatusDeadLetter}} {
		every := f

		every.Status = ""
		limit := int(count(f))
		if int64(limit) == count(every) {
			k.Fatalf("%s selects all that it does without its status", f)
		}

		t, err := k.Tally(k.ctx, f, limit)
		k.check(err)

		if t.More || !t.Whole || t.Total != count(f) || t.States != nil || len(t.Facets.Queues) == 0 {
			k.Errorf("%s is counted as %+v", f, t)
		}

		for _, q := range t.Facets.Queues {
			of := f
			of.Queue = q.Name
			k.same("jobs of "+of.String(), q.Count, count(of))

			t, err := k.Tally(k.ctx, of, limit)
			k.check(err)
			k.same("the total of "+of.String(), t.Total, count(of))
			k.same("facets of "+of.String(), t.Whole, true)

			of.Status = ""
			if count(of) <= int64(limit) {
				k.same("all jobs of "+of.String(), stats.Depths(t.States).Jobs(), count(of))
			}
		}
	}
}

// FacetsFollowTheFilter: open dead letters are counted by reason, queue and type,
// each under what the filter says of the other two; a dead letter that is resolved is no
// longer counted, also after a restart. Other jobs are counted by queue.
func FacetsFollowTheFilter(k *kit) {
	bury := func(queue, typ string) job.Job {
		j := in(queue)
		j.Type = typ
		return k.dead(j)
	}
	first := bury("orders", "email.send")
	bury("orders", "report")
	bury("mail", "email.send")

	e := k.ending(job.Failed)
	e.Answer.Code = retry.CodeDeadLetter
	k.settleAs(k.begin(in("mail")).Settle(e, nil))
	k.add(in("later"))

	facets := func(f filter.Filter) filter.Facets {
		k.Helper()
		got, err := k.Counters.Facets(k.ctx, f)
		k.check(err)
		return got
	}
	exhausted, handler := retry.AttemptsExhausted, retry.HandlerDeadLetter
	k.same("the facets of a queue", facets(filter.Filter{Status: job.StatusDeadLetter, Queue: "mail"}), filter.Facets{
		Reasons: []filter.ReasonCount{{Reason: exhausted, Count: 1}, {Reason: handler, Count: 1}},
		Queues:  []filter.NameCount{{Name: "mail", Count: 2}, {Name: "orders", Count: 2}},
		Types:   []filter.NameCount{{Name: "email.send", Count: 2}},
	})
	k.same("the facets of a type and a reason", facets(filter.Filter{Status: job.StatusDeadLetter, Type: "email.*", Reason: exhausted}), filter.Facets{
		Reasons: []filter.ReasonCount{{Reason: exhausted, Count: 2}, {Reason: handler, Count: 1}},
		Queues:  []filter.NameCount{{Name: "mail", Count: 1}, {Name: "orders", Count: 1}},
		Types:   []filter.NameCount{{Name: "email.send", Count: 2}, {Name: "report", Count: 1}},
	})
	k.restart()
	_, err := k.Replay(k.ctx, k.now, first.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	k.same("the queues after a replay", facets(filter.Filter{Status: job.StatusDeadLetter}).Queues,
		[]filter.NameCount{{Name: "mail", Count: 2}, {Name: "orders", Count: 1}})
	k.same("the queues of available jobs", facets(filter.Filter{Status: job.Status(job.Available)}),
		filter.Facets{Queues: []filter.NameCount{{Name: "later", Count: 1}, {Name: "orders", Count: 1}}})
	k.same("the queues of all jobs", facets(filter.Filter{}),
		filter.Facets{Queues: []filter.NameCount{{Name: "mail", Count: 2}, {Name: "orders", Count: 2}, {Name: "later", Count: 1}}})
}
