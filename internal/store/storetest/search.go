package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/retry"
)

var searching = []func(*kit){
	SearchTakesTextLiterally, SearchFindsEachField, SearchFindsWhatWasEdited, SearchReadsEscapedCharacters, SearchFindsWhatAPageShows, SearchIgnoresWhiteSpace, SearchRefusesShortText, SearchFindsTheNewestFailure,
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
		k.same(fmt.Sprintf("letters with %q in the error", text), len(k.deadLetters(filter.Filter{Error: text}, 10)), want)
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
		k.same("the letters that are found by "+f.String(), len(k.deadLetters(f, 10)), 1)
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

// SearchReadsEscapedCharacters: a text is found by its characters, whether a client wrote
// them as themselves or escaped, also in a string of JSON in another one and by a
// user who looks for what the client wrote.
func SearchReadsEscapedCharacters(k *kit) {
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
		k.same(fmt.Sprintf("letters with %q anywhere", text), len(k.deadLetters(filter.Filter{Text: text}, 10)), 1)
	}

	k.same("jobs with a word less", len(k.all(filter.Filter{Error: "duplicate value"}, 10)), 0)
}

// SearchRefusesShortText: a text that the index cannot answer is no empty list.
func SearchRefusesShortText(k *kit) {
	for _, f := range []filter.Filter{{Text: "ab"}, {Error: "éé"}, {Payload: "1"}, {Meta: "  "}, {Error: "   "}, {Text: " \n ab"}} {
		_, err := k.Jobs(k.ctx, f, filter.Cursor{}, 10)
		_, deadLetterErr := k.DeadLetters(k.ctx, f, filter.Cursor{}, 10)
		if wrong := new(invalid.Error); !errors.As(err, &wrong) || !errors.As(deadLetterErr, &wrong) {
			k.Errorf("%v: %v and %v, want a field that is wrong", f, err, deadLetterErr)
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
	k.same("letters with the second failure", len(k.deadLetters(filter.Filter{Error: "second failure"}, 10)), 0)
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
	done, err := k.Sweep.Prune(k.ctx, k.now, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
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

		rows := k.deadLetters(f, 1000)
		k.same(fmt.Sprintf("the letters of %v in pages of 3", f), k.deadLetters(f, 3), rows)
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
		k.same("what is found by "+f.String(), len(k.deadLetters(f, 10)), 1)
	}
}
