package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/stats"
	"redrive/internal/store/db"
)

var searching = []func(*kit){
	SearchTakesTextLiterally, SearchFindsEachField, SearchFindsWhatWasEdited, SearchReadsEscapedLetters, SearchFindsWhatAPageShows, SearchIgnoresWhiteSpace, SearchRefusesShortText, SearchFindsTheNewestFailure,
	SearchLagsUntilItIsFilled, SearchForgetsWhatIsPruned, SearchPagesAreComplete, SearchFindsWhatWasSetAside,
	ListsOldestFirst, FiltersMeanWhatTheySay, FacetsFollowTheFilter, TalliesAreCounts, TalliesOfTooManyJobs, SearchedJobsHaveWhatIsSearched, CountsUpToALimit, NewerCountsWhatStandsBefore,
}

// fill makes every failure searchable.
func (k *kit) fill() {
	k.Helper()
	_, err := k.Search.Update(k.ctx)
	k.check(err)
}

// failing settles a new job that failed so, permanently.
func (k *kit) failing(j job.Job, typ, message string) job.Job {
	k.Helper()

	j.Policy = policy(1)
	started := k.begin(j)
	e := k.ending(job.Failed)
	e.Error = job.ErrorInfo{Type: typ, Message: message}

	return k.settleAs(started.Settle(e, nil))
}

// SearchTakesTextLiterally: the text has no wildcards and no operators.
func SearchTakesTextLiterally(k *kit) {
	k.failing(simple(), "a_b", `100% of C:\x "quoted" 'too' (NOT this OR that) é*`)
	k.fill()

	for text, want := range map[string]int{
		"A_B": 1, "a%b": 0, "axb": 0, "100%": 1, `c:\X`: 1, "'too'": 1, "' OR 1=1": 0, `"quoted"`: 1, `"quoted`: 1, `""quoted`: 0,
		"not this or THAT": 1, "(NOT": 1, ") É*": 1, "too*": 0, "error:": 0, "a_b: 100": 1, "^100": 0,
	} {
		k.same(fmt.Sprintf("jobs with %q in the error", text), len(k.all(filter.Filter{Error: text}, 10)), want)
		k.same(fmt.Sprintf("jobs with %q anywhere", text), len(k.all(filter.Filter{Text: text}, 10)), want)
		k.same(fmt.Sprintf("letters with %q in the error", text), len(k.letters(filter.Filter{Error: text}, 10)), want)
	}
}

// SearchFindsEachField: each text is looked for in its field, and one without a
// field in all of them; case is ignored.
func SearchFindsEachField(k *kit) {
	j := simple()
	j.Type, j.Payload, j.Meta = "invoice.render", []byte(`{"customer":"Żółć & Söhne","n":[1,2,3]}`), []byte(`{"tenant":"acme"}`)
	j = k.failing(j, "http.503", "upstream said no")
	k.failing(simple(), "other", "nothing of this")
	k.fill()

	for _, f := range []filter.Filter{
		{Error: "UPSTREAM"}, {Error: "503: up"}, {Payload: "żółć"}, {Payload: "SÖHNE"}, {Payload: `"n":[1,`}, {Meta: "acme"}, {Meta: `{"tenant"`},
		{Text: "upstream said"}, {Text: "söhne"}, {Text: "acme"}, {Text: "voice.rend"}, {Text: j.ID[9:20]}, {Text: "said no", Payload: "customer", Meta: "ten"},
	} {
		k.same("what is found by "+f.String(), ids(k.all(f, 10)), []string{j.ID})
		k.same("the letters that are found by "+f.String(), len(k.letters(f, 10)), 1)
	}

	for _, f := range []filter.Filter{{Error: "acme"}, {Payload: "upstream"}, {Meta: "customer"}, {Text: "acmeupstream"}, {Error: "upstream", Meta: "other"}} {
		k.same("what is found by "+f.String(), len(k.all(f, 10)), 0)
	}
}

// SearchFindsWhatWasEdited: a payload that a person changed is found as it is once
// the job failed with it, whether the error is another one or the same.
func SearchFindsWhatWasEdited(k *kit) {
	j := simple()
	j.Payload = []byte(`{"customer":"amara lars"}`)
	j = k.failing(j, "http.503", "upstream said no")
	k.fill()

	for run, found := range []string{"lars amara", "noor pierre"} {
		edit := job.Edit{Body: &job.Body{Type: j.Type, Payload: []byte(`{"customer":"` + found + `"}`)}}
		_, err := k.ReplayWith(k.ctx, k.now, j.ID, run+1, edit, audit.Actor{Name: "ana"})
		k.check(err)
		e := k.ending(job.Failed)
		e.Error = job.ErrorInfo{Type: "http.503", Message: "upstream said no"}
		k.settleAs(k.claim("orders", 1)[0].Settle(e, nil))
		k.fill()

		for text, want := range map[string]int{"amara lars": 0, found: 1, "said no": 1, "no said": 0} {
			k.same(fmt.Sprintf("jobs with %q", text), len(k.all(filter.Filter{Text: text}, 10)), want)
		}
	}
}

// SearchReadsEscapedLetters: a text is found by its letters, whether a client wrote
// them as themselves or escaped, also in a string of JSON in another one and by a
// user who looks for what the client wrote.
func SearchReadsEscapedLetters(k *kit) {
	j := simple()
	j.Payload = []byte(`{"city":"K\u00f6ln","url":"https:\/\/example.org\/a","inner":"{\"name\":\"\\u017b\\u00f3\\u0142\\u0107\"}","smile":"a\ud83d\ude00b","half":"x\ud83dy","tab":"p\u0009q","path":"C:\\users"}`)
	j.Meta = []byte(`{"tenant":"Br\u00FCcke"}`)
	j = k.failing(j, "http.422", `the service said {"detail":"ung\u00fcltig"}`)
	k.failing(simple(), "other", "nothing of this")
	k.fill()

	for _, f := range []filter.Filter{
		{Payload: "köln"}, {Payload: `K\u00f6ln`}, {Payload: `k\u00F6LN`}, {Payload: "https://example.org/a"}, {Payload: `https:\/\/example.org`},
		{Payload: "żółć"}, {Payload: "a😀b"}, {Payload: `p\u0009q`}, {Payload: `C:\\users`}, {Payload: `x\ud83dy`}, {Meta: "brücke"}, {Error: "ungültig"},
		{Text: "köln"}, {Text: "brücke"}, {Text: "ungültig"}, {Error: `ung\u00fcltig`},
	} {
		k.same("what is found by "+f.String(), ids(k.all(f, 10)), []string{j.ID})
	}

	k.same("what is found by another letter", len(k.all(filter.Filter{Payload: "käln"}, 10)), 0)
}

// SearchFindsWhatAPageShows: a name that has backslashes or quotation marks is found in a
// payload as a page shows it, and as JSON writes it.
func SearchFindsWhatAPageShows(k *kit) {
	j := simple()
	j.Payload = []byte(`{"displayName":"App\\Jobs\\Charge","note":"the \"large\" one"}`)
	j = k.failing(j, "http.500", "no")
	k.failing(simple(), "other", "nothing of this")
	k.fill()

	for _, f := range []filter.Filter{
		{Payload: `App\Jobs\Charge`}, {Payload: `App\\Jobs\\Charge`}, {Text: `app\jobs\charge`}, {Payload: `the "large" one`}, {Text: `the \"large\" one`},
	} {
		k.same("what is found by "+f.String(), ids(k.all(f, 10)), []string{j.ID})
	}

	k.same("what is found by another class", len(k.all(filter.Filter{Payload: `App\Jobs\Refund`}, 10)), 0)
}

// SearchIgnoresWhiteSpace: a message is found however its lines were broken, by the error
// and by the person who looks for it.
func SearchIgnoresWhiteSpace(k *kit) {
	j := k.failing(simple(), "PG::UniqueViolation", "duplicate key value\n  violates\tunique constraint \"orders_number_key\"\r\nDETAIL:  Key (number)=(17) exists.")
	k.failing(simple(), "other", "duplicatekeyvalue")
	k.fill()

	for _, text := range []string{
		"key value violates unique", "key value\n\tviolates", `"orders_number_key" DETAIL: Key (number)`, "  duplicate   key\u00a0value ", "violation: duplicate key",
	} {
		k.same(fmt.Sprintf("jobs with %q", text), ids(k.all(filter.Filter{Error: text}, 10)), []string{j.ID})
		k.same(fmt.Sprintf("letters with %q anywhere", text), len(k.letters(filter.Filter{Text: text}, 10)), 1)
	}

	k.same("jobs with a word less", len(k.all(filter.Filter{Error: "duplicate value"}, 10)), 0)
}

// SearchRefusesShortText: a text that the index cannot answer is no empty list.
func SearchRefusesShortText(k *kit) {
	for _, f := range []filter.Filter{{Text: "ab"}, {Error: "éé"}, {Payload: "1"}, {Meta: "  "}, {Error: "   "}, {Text: " \n ab"}} {
		_, err := k.Jobs(k.ctx, f, filter.Cursor{}, 10)
		_, letterErr := k.DeadLetters(k.ctx, f, filter.Cursor{}, 10)
		if wrong := new(invalid.Error); !errors.As(err, &wrong) || !errors.As(letterErr, &wrong) {
			k.Errorf("%v: %v and %v, want a field that is wrong", f, err, letterErr)
		}
	}
}

// SearchFindsTheNewestFailure: a job is found by how it failed last, also when it
// was replayed and succeeded since.
func SearchFindsTheNewestFailure(k *kit) {
	j := k.begin(lasting(2))
	e := k.ending(job.Failed)
	e.Error.Message = "the first failure"
	k.settleAs(j.Settle(e, nil))
	k.fill()
	k.same("jobs with the first failure", len(k.all(filter.Filter{Error: "first failure"}, 10)), 1)
	k.pass(time.Minute)
	e = k.ending(job.Failed)
	e.Error.Message = "the second failure"
	k.settleAs(k.claim("orders", 1)[0].Settle(e, nil))
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	k.fill()
	k.settle(k.claim("orders", 1)[0], job.Succeeded)
	k.fill()
	k.same("jobs with the first failure", len(k.all(filter.Filter{Error: "first failure"}, 10)), 0)
	k.same("jobs with the second failure", len(k.all(filter.Filter{Error: "second failure"}, 10)), 1)
	k.same("letters with the second failure", len(k.letters(filter.Filter{Error: "second failure"}, 10)), 0)
}

// SearchedJobsHaveWhatIsSearched: what a search looks at of a job is the error of its
// newest failure, also when it succeeded since, and the beginning of its payload.
func SearchedJobsHaveWhatIsSearched(k *kit) {
	j := simple()
	j.Payload, j.Meta = []byte(`{"order":1042}`), []byte(`{"tenant":"acme"}`)
	j = k.failing(j, "http.503", "upstream said no")
	want := []job.ErrorInfo{j.Error}
	_, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "ana"})
	k.check(err)
	succeeded := k.settle(k.claim("orders", 1)[0], job.Succeeded)
	large := simple()
	large.Payload = bytes.Repeat([]byte("0123456789"), 50_000)
	large = k.failing(large, "http.422", "too large")
	aside := simple()
	aside.State, aside.Reason, aside.Error = job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "babel.missing_urn", Message: "no type"}
	aside = k.add(aside)[0]
	fresh := k.add(simple())[0]

	want = append(want, large.Error, aside.Error, job.ErrorInfo{})
	got, err := k.Searched(k.ctx, []job.Job{succeeded, large, aside, fresh})
	k.check(err)

	for i, g := range got {
		k.same(fmt.Sprintf("the error of job %d", i), g.Error, want[i])
	}

	k.same("the payload", string(got[0].Payload), `{"order":1042}`)
	k.same("the meta", string(got[0].Meta), `{"tenant":"acme"}`)
	k.same("the beginning of a large payload", len(got[1].Payload), 48<<10)

	many := slices.Repeat([]job.Job{large}, 30)
	got, err = k.Searched(k.ctx, many)
	k.check(err)
	k.same("the payload of the first of many large ones", len(got[0].Payload), 48<<10)
	k.same("the payload of the last of many large ones", len(got[29].Payload), 0)
}

// SearchLagsUntilItIsFilled: what failed is counted until it can be found, once
// for each job, also across a restart; what did not fail is not.
func SearchLagsUntilItIsFilled(k *kit) {
	lag := func(want int) {
		k.Helper()
		n, err := k.Search.Lag(k.ctx)
		k.check(err)
		k.same("the lag", n, want)
	}

	k.settle(k.begin(simple()), job.Succeeded)
	k.settle(k.begin(in("quiet")), job.Interrupted)
	lag(0)

	for range 70 {
		k.dead(simple())
	}

	j := k.settle(k.begin(lasting(2)), job.Failed)
	k.pass(time.Minute)
	k.settle(k.claim("orders", 1)[0], job.Failed)
	lag(71)
	k.restart()
	lag(71)
	k.same("jobs that are found too early", len(k.all(filter.Filter{Text: "service"}, 100)), 0)
	n, err := k.Search.Update(k.ctx)
	k.check(err)
	k.same("failures that became searchable", n, 71)
	lag(0)

	found := k.all(filter.Filter{Text: "service"}, 100)
	k.same("jobs that are found", len(found), 71)
	k.same("the newest", found[0].ID, j.ID)
}

// SearchForgetsWhatIsPruned: neither what was searchable nor what was not yet is
// left behind.
func SearchForgetsWhatIsPruned(k *kit) {
	for range 3 {
		k.dead(simple())
	}

	k.fill()

	for range 3 {
		k.dead(simple())
	}

	k.pass(time.Hour)
	k.dead(simple())
	done, err := k.Prune(k.ctx, k.now, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
	k.check(err)
	k.same("letters pruned", done.Of(retention.DeadLetters), int64(6))
	n, err := k.Search.Lag(k.ctx)
	k.check(err)
	k.same("the lag", n, 1)
	k.fill()
	k.same("jobs that are found", len(k.all(filter.Filter{Text: "service"}, 10)), 1)
}

// SearchPagesAreComplete: what is found comes by the order of enqueueing, in
// pages of any size.
func SearchPagesAreComplete(k *kit) {
	k.variety()

	for _, f := range []filter.Filter{{Text: "service"}, {Error: "unavail", Queue: "mail"}, {Text: "service", Sort: filter.Oldest}} {
		want := k.all(f, 1000)
		if !slices.IsSortedFunc(want, func(a, b job.Job) int { return int(b.Seq-a.Seq) * (1 - 2*len(f.Sort)/len(filter.Oldest)) }) || len(want) < 10 {
			k.Errorf("%v: %d jobs in another order than that of their enqueueing", f, len(want))
		}

		for _, limit := range []int{1, 7} {
			k.same(fmt.Sprintf("%v in pages of %d", f, limit), ids(k.all(f, limit)), ids(want))
		}

		rows := k.letters(f, 1000)
		k.same(fmt.Sprintf("the letters of %v in pages of 3", f), k.letters(f, 3), rows)
	}
}

// SearchFindsWhatWasSetAside: an envelope that could not be read is found by its
// error and its bytes.
func SearchFindsWhatWasSetAside(k *kit) {
	j := simple()
	j.State, j.Reason, j.Payload = job.Discarded, retry.MissingURN, []byte("\x00\xffnot \x00 an envelope")
	j.Error = job.ErrorInfo{Type: "babel.missing_urn", Message: "the envelope names no type"}
	k.add(j)
	k.fill()

	for _, f := range []filter.Filter{{Error: "names no type"}, {Payload: "an envelope"}, {Text: "missing_urn"}} {
		k.same("what is found by "+f.String(), len(k.letters(f, 10)), 1)
	}
}

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

	rows := k.letters(filter.Filter{}, 1000)
	slices.Reverse(rows)
	k.same("the letters", k.letters(filter.Filter{Sort: filter.Oldest}, 4), rows)
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

		f.Status = "" // a list of letters has no other
		got = nil
		for _, l := range k.letters(f, 1000) {
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
// each under what the filter says of the other two; a letter that is resolved is no
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
