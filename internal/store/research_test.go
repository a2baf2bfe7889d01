package store

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/store/search"
	"redrive/internal/store/sqlite"
	"redrive/internal/store/sqlite/sqlitetest"
)

// hiding are options that take some words out of everything.
func hiding(t *testing.T, path string, words ...string) Options {
	text := func(s string) string {
		for _, word := range words {
			s = strings.ReplaceAll(s, word, "••••••")
		}
		return s
	}
	if path == "" {
		path = sqlitetest.New(t)
	}
	return Options{
		Database: sqlite.File{Path: path}, Redact: search.Redaction{
			Data: func(_ string, data []byte) []byte { return []byte(text(string(data))) },
			Text: text, Fingerprint: strings.Join(words, " "),
		},
	}
}

// failWith lets n jobs fail permanently, and sets one aside that never ran.
func failWith(t *testing.T, s *Store, n int, text string) {
	t.Helper()
	setAside(t, s, text)
	enqueue(t, s, n)
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Minute), Lease: time.Minute, Free: map[string]int{"orders": n}}
	claimed, _, err := s.Exchange(t.Context(), nil, claim)
	check(t, err)
	var settle []job.Settlement
	for _, j := range claimed {
		e := job.Ending{Outcome: job.Failed, FinishedAt: claim.Now, Error: job.ErrorInfo{Type: "io", Message: text}}
		settle = append(settle, j.Settle(e, nil))
	}
	_, _, err = s.Exchange(t.Context(), settle, job.Claim{})
	check(t, err)
}

// setAside sets a job aside that never ran.
func setAside(t *testing.T, s *Store, text string) {
	t.Helper()
	aside := testJob(text)
	aside.State, aside.Reason, aside.Error = job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "poison", Message: text}
	_, err := s.Enqueue(t.Context(), testTime, []job.Job{aside})
	check(t, err)
}

// One failure that the index refuses is left out, with a word in the log, and
// keeps none of the others from being found.
func TestFillSearch_PassesWhatItCannotIndex(t *testing.T) {
	var log bytes.Buffer
	s := open(t, Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	failWith(t, s, 100, "alpha")
	edit(t, pathOf(t, s)+"-search",
		`CREATE TRIGGER spoil BEFORE INSERT ON search_docsize WHEN new.id = 77 BEGIN SELECT raise(ABORT, 'no'); END`)
	for range 2 {
		if _, err := s.Search.Update(t.Context()); err != nil {
			t.Error(err)
		}
	}
	lag, err := s.Search.Lag(t.Context())
	if n := finds(t, s, "alpha"); n != 100 || lag != 0 || err != nil {
		t.Errorf("%d of 101 jobs are found, %d wait, %v", n, lag, err)
	}
	if n := strings.Count(log.String(), "cannot be made searchable"); n != 1 {
		t.Errorf("it is said %d times: %s", n, log.String())
	}
}

// Two segments of a size become one, and do not wait for more.
func TestFillSearch_JoinsSegments(t *testing.T) {
	s := open(t, Options{})
	for range 3 {
		failWith(t, s, 1, "alpha")
		_, err := s.Search.Update(t.Context())
		check(t, err)
	}
	const query = `SELECT count(DISTINCT id >> 37) FROM search_data WHERE id > 10` // the number of a page begins with its segment's
	segments := 0
	check(t, s.reader.In(t.Context()).Query(query, func(rows *sql.Rows) error { return rows.Scan(&segments) }))
	if n := finds(t, s, "alpha"); n != 6 || segments > 2 {
		t.Errorf("%d of 6 jobs are found in %d segments, want 2 at most", n, segments)
	}
}

// While failures keep coming the index is not put in order, but its segments stay
// few.
func TestSweep_BoundsTheSegments(t *testing.T) {
	s := open(t, Options{})
	const sweeps = 260 // more than may be segments
	for range sweeps {
		setAside(t, s, "alpha")
		_, err := s.Search.Sweep(t.Context())
		check(t, err)
	}
	n, err := s.Search.Segments(s.reader.In(t.Context()))
	if found := finds(t, s, "alpha"); found != sweeps || n < 2 || n > 256 || err != nil {
		t.Errorf("%d of %d jobs are found in %d segments, %v", found, sweeps, n, err)
	}
}

// However many failures a step has, they are one segment: each has its price in every
// search.
func TestStep_MakesOneSegment(t *testing.T) {
	s := open(t, Options{})
	failWith(t, s, 200, "alpha")
	filled, _, err := s.Search.Step(t.Context())
	check(t, err)
	n, err := s.Search.Segments(s.reader.In(t.Context()))
	if filled != 201 || n != 1 || err != nil {
		t.Errorf("%d failures are in %d segments, %v", filled, n, err)
	}
}

// A job that fails again is found by what both failures said only as far as it still
// says so.
func TestSweep_FindsTheNewestFailureOnly(t *testing.T) {
	s := open(t, Options{})
	for i, text := range []string{"capture 7919 refused", "capture 15838 refused"} {
		failAgain(t, s, i, text)
		_, err := s.Search.Sweep(t.Context())
		check(t, err)
		for word, want := range map[string]int{"7919": 1 - i, "15838": i, "e 15838 r": i, "refused": 1, "capture": 1} {
			if n := finds(t, s, word); n != want {
				t.Errorf("after failure %d: %q is found in %d jobs, want %d", i+1, word, n, want)
			}
		}
	}
}

// failAgain lets the only job fail, for the first time when i is 0, and be tried again.
func failAgain(t *testing.T, s *Store, i int, text string) {
	t.Helper()
	if i == 0 {
		j := testJob("1")
		j.Policy = retry.Default()
		_, err := s.Enqueue(t.Context(), testTime, []job.Job{j})
		check(t, err)
	}
	now := testTime.Add(time.Duration(i+1) * time.Hour)
	claim := job.Claim{Worker: "w", Now: now, Lease: time.Minute, Free: map[string]int{"orders": 1}}
	claimed, _, err := s.Exchange(t.Context(), nil, claim)
	check(t, err)
	if len(claimed) != 1 {
		t.Fatalf("%d jobs are claimed for failure %d, want 1", len(claimed), i+1)
	}
	e := job.Ending{Outcome: job.Failed, FinishedAt: now, Error: job.ErrorInfo{Type: "io", Message: text}}
	half := func() float64 { return 0.5 }
	_, _, err = s.Exchange(t.Context(), []job.Settlement{claimed[0].Settle(e, half)}, job.Claim{})
	check(t, err)
}

// In a flood no failure waits longer because of newer ones.
func TestSweep_BeginsWithTheOldest(t *testing.T) {
	s := open(t, Options{})
	failWith(t, s, 2400, "alpha")
	for want := 1024; want <= 2048; want += 1024 {
		_, more, err := s.Search.Step(t.Context())
		if n := finds(t, s, "alpha"); n != want || !more || err != nil {
			t.Errorf("%d jobs are found, want %d, %v", n, want, err)
		}
		failWith(t, s, 1, "bravo")
	}
	for _, want := range []struct{ failures, bravo int }{{353, 0}, {4, 4}} { // of the rest of the sweep, and of the next one
		n, err := s.Search.Sweep(t.Context())
		if a, b := finds(t, s, "alpha"), finds(t, s, "bravo"); n != want.failures || a != 2401 || b != want.bravo || err != nil {
			t.Errorf("a sweep has %d failures, %d and %d jobs are found, %v", n, a, b, err)
		}
	}
}

// So is one at which the redaction panics.
func TestFillSearch_PassesWhatCannotBeRedacted(t *testing.T) {
	var log bytes.Buffer
	o := hiding(t, "")
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	hide := o.Redact.Text
	o.Redact.Text = func(s string) string {
		if s == "bravo" {
			panic("slice bounds")
		}
		return hide(s)
	}
	s := open(t, o)
	failWith(t, s, 40, "alpha")
	failWith(t, s, 1, "bravo") // and one that never ran
	filled, err := s.Search.Update(t.Context())
	check(t, err)
	lag, err := s.Search.Lag(t.Context())
	if n := finds(t, s, "alpha"); filled != 43 || n != 41 || lag != 0 || err != nil {
		t.Errorf("%d are filled in, %d of 41 jobs are found, %d wait, %v", filled, n, lag, err)
	}
	if n := strings.Count(log.String(), "cannot be made searchable"); n != 2 || !strings.Contains(log.String(), "panic: slice bounds") {
		t.Errorf("it is said %d times: %s", n, log.String())
	}
}

// No more is read than one transaction writes, however large the payloads are.
func TestUnsearched_EndsWhereItHasEnough(t *testing.T) {
	s := open(t, Options{})
	jobs := make([]job.Job, 32)
	for i := range jobs {
		jobs[i] = testJob(strings.Repeat("x", 1<<20))
		jobs[i].State, jobs[i].Reason, jobs[i].Error = job.Discarded, retry.MissingURN, job.ErrorInfo{Type: "poison", Message: "x"}
	}
	_, err := s.Enqueue(t.Context(), testTime, jobs)
	check(t, err)
	waiting := 0
	used := allocated(func() { waiting, _, err = s.Search.Step(t.Context()) })
	if err != nil || waiting == 0 || used > 16<<20 {
		t.Errorf("%d failures took %d bytes, %v", waiting, used, err)
	}
}

// allocated is how many bytes something allocates, including what other goroutines
// allocate meanwhile.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// finds is how many jobs a search finds.
func finds(t *testing.T, s *Store, text string) int {
	t.Helper()
	list, err := s.Jobs(t.Context(), filter.Filter{Text: text}, filter.Cursor{}, 10_000)
	check(t, err)
	return len(list.Jobs)
}

// What another redaction made searchable is no longer found as soon as the database
// is open, and all that is not hidden is found again.
func TestFillSearch_ForgetsWhatIsHiddenNow(t *testing.T) {
	const n = 5000 + 10
	path := sqlitetest.New(t)
	s, err := Open(t.Context(), hiding(t, path, "alpha"))
	check(t, err)
	failWith(t, s, n, "alpha bravo charlie")
	_, err = s.Search.Update(t.Context())
	check(t, err)
	if a, b, c := finds(t, s, "alpha"), finds(t, s, "bravo"), finds(t, s, "charlie"); a != 0 || b != n+1 || c != n+1 {
		t.Fatalf("%d, %d and %d jobs are found", a, b, c)
	}
	check(t, s.Close())

	s, err = Open(t.Context(), hiding(t, path, "bravo"))
	check(t, err)
	for _, search := range []func() error{
		func() error {
			_, err := s.Jobs(t.Context(), filter.Filter{Text: "bravo"}, filter.Cursor{}, 1)
			return err
		},
		func() error {
			_, err := s.WholeJobs(t.Context(), filter.Filter{Text: "bravo"}, filter.Cursor{}, 1)
			return err
		},
		func() error {
			_, err := s.DeadLetters(t.Context(), filter.Filter{Text: "bravo"}, filter.Cursor{}, 1)
			return err
		},
	} {
		if err := search(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the old index answers a search: %v", err)
		}
	}
	if lag, err := s.Search.Lag(t.Context()); lag == 0 || err != nil {
		t.Errorf("the lag is %d, %v", lag, err)
	}
	_, _, err = s.Search.Step(t.Context()) // it is empty now
	check(t, err)
	check(t, s.Close()) // in the middle of it

	s = open(t, hiding(t, path, "bravo"))
	if list, err := s.Jobs(t.Context(), filter.Filter{Text: "bravo"}, filter.Cursor{}, 1); len(list.Jobs) != 0 || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d jobs are found by what is hidden, %v", len(list.Jobs), err)
	}
	filled, err := s.Search.Update(t.Context())
	check(t, err)
	if a, b, c := finds(t, s, "alpha"), finds(t, s, "bravo"), finds(t, s, "charlie"); filled != n+1 || a != n+1 || b != 0 || c != n+1 {
		t.Errorf("%d jobs were made searchable anew; %d, %d and %d are found", filled, a, b, c)
	}
	if lag, err := s.Search.Lag(t.Context()); lag != 0 || err != nil {
		t.Errorf("the lag is %d, %v", lag, err)
	}
	if filled, err = s.Search.Update(t.Context()); filled != 0 || err != nil {
		t.Errorf("%d jobs were made searchable once more, %v", filled, err)
	}
}

// While the index is rebuilt a list is incomplete, and whatever acts on all jobs that
// match waits, also in another process.
func TestFillSearch_NothingTakesAPartForTheWhole(t *testing.T) {
	const n = 5000 + 10
	path := sqlitetest.New(t)
	s, err := Open(t.Context(), hiding(t, path))
	check(t, err)
	failWith(t, s, n, "alpha")
	_, err = s.Search.Update(t.Context())
	check(t, err)
	check(t, s.Close())
	s, err = Open(t.Context(), hiding(t, path, "bravo"))
	check(t, err)
	waiting := 0 // the newest, that can be found
	for range 3 {
		waiting, _, err = s.Search.Step(t.Context())
		check(t, err)
	}
	check(t, s.Close())

	s = open(t, hiding(t, path, "bravo"))
	f := filter.Filter{Text: "alpha", Status: job.Status(job.Discarded)}
	o, err := s.Operations.New(t.Context(), testTime.Add(time.Hour), operation.Request{Kind: operation.Replay, Filter: f}, audit.Actor{Name: "eve"})
	check(t, err)
	list, err := s.Jobs(t.Context(), f, filter.Cursor{}, n)
	if len(list.Jobs) != waiting || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d jobs are listed, %v", len(list.Jobs), err)
	}
	deadLetters, err := s.DeadLetters(t.Context(), filter.Filter{Text: "alpha"}, filter.Cursor{}, n)
	if len(deadLetters.DeadLetters) != waiting || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%d letters are listed, %v", len(deadLetters.DeadLetters), err)
	}
	for what, do := range map[string]func() error{
		"an export": func() error { _, err := s.WholeJobs(t.Context(), f, filter.Cursor{}, 1); return err },
		"a count":   func() error { _, _, err := s.Count(t.Context(), f, 1); return err },
		"a scope":   func() error { _, err := s.Operations.Collect(t.Context(), testTime, o.ID); return err },
	} {
		if err := do(); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s takes a part for the whole: %v", what, err)
		}
	}
	_, err = s.Search.Update(t.Context())
	check(t, err)
	for more := true; more; {
		more, err = s.Operations.Collect(t.Context(), testTime, o.ID)
		check(t, err)
	}
	o, err = s.Operations.Get(t.Context(), o.ID)
	if got := finds(t, s, "alpha"); got != n+1 || o.Total != n+1 || s.Search.Reindexing() || err != nil {
		t.Errorf("%d jobs are found and %d in the scope, %v", got, o.Total, err)
	}
}

// No error group is found by what is hidden of it, in pages of any size.
func TestGroups_AreNotFoundByWhatIsHidden(t *testing.T) {
	s := open(t, hiding(t, "", "bravo", "note-secret"))
	for i := range 5 {
		failWith(t, s, 1, fmt.Sprintf("alpha%c bravo charlie", 'a'+i))
	}
	all, err := s.Groups.List(t.Context(), testTime, failures.Filter{}, failures.Cursor{}, 100)
	check(t, err)
	for _, g := range all.Groups {
		_, err := s.Groups.Note(t.Context(), testTime, g.Fingerprint, "see note-secret in Wiki", audit.Actor{Name: "eve"})
		check(t, err)
	}
	for text, want := range map[string]int{"bravo": 0, "BRAV": 0, "alphaa br": 0, "note-secret": 0, "t in wiki": 0, "ALPHAb": 2, "charlie": 10, "in WIKI": 10} {
		for _, limit := range []int{1, 3, 100} {
			var after failures.Cursor
			got := 0
			for {
				page, err := s.Groups.List(t.Context(), testTime, failures.Filter{Text: text}, after, limit)
				check(t, err)
				got += len(page.Groups)
				if after = page.Next; after == (failures.Cursor{}) {
					break
				}
			}
			if got != want {
				t.Errorf("%q finds %d groups in pages of %d, want %d", text, got, limit, want)
			}
		}
	}
}
