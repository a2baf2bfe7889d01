package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/store/rows"
)

// plan returns how SQLite would run a query, one step a line.
func plan(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	args := make([]any, strings.Count(query, "?"))
	for i := 1; strings.Contains(query, fmt.Sprint("$", i)); i++ {
		args = append(args, 1)
	}
	rows, err := db.Query("EXPLAIN QUERY PLAN "+query, args...)
	check(t, err)
	var steps []string
	for rows.Next() {
		var id, parent, unused int
		var step string
		check(t, rows.Scan(&id, &parent, &unused, &step))
		steps = append(steps, step)
	}
	check(t, rows.Err())
	return strings.Join(steps, "\n")
}

// scans returns the step of a plan that reads a whole table which can be large.
// Reading an index in its order, until there is enough, is none.
func scans(plan string) string {
	for _, step := range strings.Split(plan, "\n") {
		for _, table := range []string{"jobs", "j", "bodies", "b", "attempts", "dead_letters", "l", "replays", "earlier_runs", "minutes", "policies", "trash", "operation_items"} {
			if step == "SCAN "+table || strings.Contains(step, "AUTOMATIC") {
				return step
			}
		}
	}
	return ""
}

// slow returns a scan, or a sort that needs every row first.
func slow(plan string) string {
	if strings.Contains(plan, "TEMP B-TREE") {
		return plan
	}
	return scans(plan)
}

// jobsQuery is the query of a list of jobs, and wholeJobsQuery with their bodies.
func jobsQuery(s *Store, f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	return rows.Select(s.Search, rows.Columns, "", f, rows.Part{After: after}, limit)
}

func wholeJobsQuery(s *Store, f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	return rows.Select(s.Search, rows.Columns+", "+rows.BodyColumns, " JOIN bodies AS b ON b.job_seq = j.seq", f, rows.Part{After: after}, limit)
}

// deadLettersQuery is the query of a list of dead letters.
func deadLettersQuery(s *Store, f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	l := rows.DeadLetters(f, after, limit)
	return rows.Select(s.Search, l.Columns, l.Join, l.Filter, rows.Part{After: after}, limit)
}

func TestPlans_OfListsFollowAnIndex(t *testing.T) {
	s := open(t, Options{})
	cursor := filter.Cursor{At: testTime, Seq: 7}
	for _, status := range job.Statuses() {
		failure := status == job.Status(job.Discarded) || status == job.Status(job.Retryable)
		for _, f := range []filter.Filter{{Status: status}, {Status: status, Queue: "q"}, {Status: status, Type: "t"}} {
			f.Sort = filter.Newest
			for _, after := range []filter.Cursor{{}, cursor} {
				query, _ := jobsQuery(s, f, after, 50)
				got := plan(t, s.engine.Reads(), query)
				if step := slow(got); step != "" && step != "SCAN j" {
					t.Errorf("%+v: %s", f, got)
				}
				index := "USING INDEX "
				switch {
				case status == job.Status(job.Completed):
					index = "USING INTEGER PRIMARY KEY"
					if after == (filter.Cursor{}) {
						index = "SCAN j" // from its newest end
					}
				case failure && f != filter.Filter{Status: status, Sort: filter.Newest}:
					index += "jobs_failed_"
				}
				if !strings.Contains(got, index) {
					t.Errorf("%+v is not read by %s: %s", f, index, got)
				}
			}
		}
	}
	for _, status := range []job.Status{"retryable", "scheduled"} { // by the time of their next run
		for _, after := range []filter.Cursor{{}, cursor} {
			index := "SEARCH j USING INDEX jobs_due (queue=? AND list_state=?"
			if after == cursor {
				index += " AND run_at>?"
			}
			query, _ := jobsQuery(s, filter.Filter{Status: status, Queue: "q"}, after, 50)
			if got := plan(t, s.engine.Reads(), query); slow(got) != "" || !strings.Contains(got, index) {
				t.Errorf("the next %s jobs of a queue: %s", status, got)
			}
			query, _ = jobsQuery(s, filter.Filter{Status: status}, after, 50) // sorts the soonest of each queue
			if got := plan(t, s.engine.Reads(), query); scans(got) != "" || strings.Count(got, "TEMP B-TREE") != 1 ||
				!strings.Contains(got, strings.Replace(index, "USING INDEX", "USING COVERING INDEX", 1)) {
				t.Errorf("the next %s jobs: %s", status, got)
			}
		}
	}
	query, _ := jobsQuery(s, filter.Filter{}, cursor, 50)
	if got := plan(t, s.engine.Reads(), query); got != "SEARCH j USING INTEGER PRIMARY KEY (rowid<?)" {
		t.Errorf("all jobs: %s", got)
	}
	for index, f := range map[string]filter.Filter{
		"jobs_letter (letter=? AND":        {},
		"jobs_letter_queue (queue=? AND":   {Queue: "q", From: testTime},
		"jobs_letter_reason (reason=? AND": {Reason: retry.AttemptsExhausted, From: testTime},
	} {
		deadLetters, _ := deadLettersQuery(s, f, cursor, 50)
		f.Status = job.StatusDeadLetter
		jobs, _ := jobsQuery(s, f, cursor, 50)
		for _, query := range []string{deadLetters, jobs} {
			if got := plan(t, s.engine.Reads(), query); slow(got) != "" || !strings.Contains(got, "j USING INDEX "+index) {
				t.Errorf("%+v is not read by %s: %s", f, index, got)
			}
		}
	}
}

// What is found by its text comes from the index of texts, in the order of the
// list; what has a time, a group or an id, from an index as well.
func TestPlans_OfSearchesFollowAnIndex(t *testing.T) {
	s := open(t, Options{})
	cursor := filter.Cursor{At: testTime, Seq: 7}
	for _, f := range []filter.Filter{
		{Text: "timeout"}, {Error: "timeout", Queue: "q", Status: "retryable"}, {Payload: "1042", Sort: filter.Oldest}, {Meta: "acme", From: testTime},
	} {
		for _, after := range []filter.Cursor{{}, cursor} {
			jobs, _ := jobsQuery(s, f, after, 50)
			whole, _ := wholeJobsQuery(s, f, after, 50)
			deadLetters, _ := deadLettersQuery(s, f, after, 50)
			for _, query := range []string{jobs, whole, deadLetters} {
				got := plan(t, s.engine.Reads(), query)
				if slow(got) != "" || !strings.HasPrefix(got, "SCAN s VIRTUAL TABLE INDEX ") || !strings.Contains(got, "SEARCH j USING INTEGER PRIMARY KEY") {
					t.Errorf("%v: %s", f, got)
				}
				if after == cursor && !strings.Contains(got, "<") && !strings.Contains(got, ">") {
					t.Errorf("%v does not begin behind the cursor: %s", f, got)
				}
			}
		}
	}
	for index, f := range map[string]filter.Filter{
		"jobs_shelf (list_state=? AND changed_at>?":                        {Status: "retryable", From: testTime, Sort: filter.Newest},
		"jobs_failed_queue (queue=? AND list_state=? AND changed_at>? AND": {Status: "discarded", Queue: "q", From: testTime, To: testTime},
		"jobs_group (group_id=? AND list_state=?":                          {Status: "discarded", Group: "g"},
		"sqlite_autoindex_jobs_1 (id>? AND id<?)":                          {ID: "019ce22a"},
	} {
		query, _ := jobsQuery(s, f, filter.Cursor{}, 50)
		if got := plan(t, s.engine.Reads(), query); !strings.Contains(got, index) || f.ID == "" && slow(got) != "" {
			t.Errorf("%v is not read by %s: %s", f, index, got)
		}
	}
}

func TestPlans_OfDeadLettersOfAGroupOrTypeFollowItsIndex(t *testing.T) {
	s := open(t, Options{})
	query, _ := deadLettersQuery(s, filter.Filter{Group: "g", Queue: "q"}, filter.Cursor{At: testTime, Seq: 7}, 50)
	if got := plan(t, s.engine.Reads(), query); slow(got) != "" || !strings.Contains(got, "j USING INDEX jobs_group (group_id=? AND list_state=?") {
		t.Errorf("the letters of a group: %s", got)
	}
	query, _ = deadLettersQuery(s, filter.Filter{Group: "g,h"}, filter.Cursor{At: testTime, Seq: 7}, 50)
	if got := plan(t, s.engine.Reads(), query); slow(got) != "" || !strings.Contains(got, "j USING INDEX jobs_letter (") {
		t.Errorf("the letters of two groups: %s", got)
	}
	query, _ = deadLettersQuery(s, filter.Filter{Type: "t", Queue: "q"}, filter.Cursor{At: testTime, Seq: 7}, 50)
	if got := plan(t, s.engine.Reads(), query); slow(got) != "" || !strings.Contains(got, "j USING INDEX jobs_failed_type (type=? AND list_state=?") {
		t.Errorf("the letters of a type: %s", got)
	}
}

func TestPlans_OfUsersFindTheirLoginsBySubject(t *testing.T) {
	s, recorded := openRecorded(t)
	_, err := s.Accounts.Users(t.Context())
	check(t, err)
	if got := plan(t, s.engine.Reads(), recorded.one(t, "FROM users ORDER BY name")); !strings.Contains(got, "SEARCH audit USING INDEX audit_subject (subject=?)") {
		t.Errorf("users are read by\n%s", got)
	}
}

// A page of a source with a million records is looked up by its keys and threads: to read
// all records of the source for each page would take hours.
func TestPlans_OfTheMirrorFollowKeysAndThreads(t *testing.T) {
	s, recorded := openRecorded(t)
	records := []source.Record{{Key: "1", Lineage: "a", Queue: "orders", Type: "charge"}, {Key: "2", Lineage: "b", Queue: "orders", Type: "charge"}}
	_, err := s.Mirror.Update(t.Context(), testTime, "shop", records)
	check(t, err)
	_, err = s.Sources.Unseen(t.Context(), "shop", append(records, source.Record{Key: "3", Lineage: "a"}))
	check(t, err)
	_, err = s.Sources.Duplicates(t.Context(), "shop", records)
	check(t, err)
	looked := 0
	for _, query := range recorded.all() {
		if !strings.HasPrefix(query, "SELECT") || !strings.Contains(query, "FROM mirrored") {
			continue
		}
		looked++
		if got := plan(t, s.engine.Reads(), query); !strings.Contains(got, "(source=? AND key=?)") && !strings.Contains(got, "(source=? AND lineage=?)") {
			t.Errorf("%s\n%s", query, got)
		}
	}
	if looked != 3 {
		t.Errorf("%d statements were looked at", looked)
	}
}

// The jobs that a source has are read in their order, and nothing is read when there are none.
func TestPlans_OfReturnedJobsFollowTheirIndex(t *testing.T) {
	s, recorded := openRecorded(t)
	_, err := s.Sources.Returned(t.Context(), "shop", source.ReplayedJob{}, 10)
	check(t, err)
	for _, query := range recorded.all() {
		if strings.Contains(query, "JOIN mirrored AS m") {
			if got := plan(t, s.engine.Reads(), query); !strings.Contains(got, "USING INDEX jobs_returned (source=?") || strings.Contains(got, "TEMP B-TREE") {
				t.Errorf("%s\n%s", query, got)
			}
			return
		}
	}
	t.Error("the statement was not looked at")
}

// Retention finds discarded jobs without reading past dead letters, of which there can be a
// million.
func TestPlans_OfDiscardedJobsReadNoDeadLetters(t *testing.T) {
	s, recorded := openRecorded(t)
	_, err := s.Enqueue(t.Context(), testTime, []job.Job{{Queue: "orders", Type: "charge", Policy: retry.Default(), Timeout: time.Minute}})
	check(t, err)
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Second), Lease: time.Minute, Free: map[string]int{"orders": 1}}
	begun, _, err := s.Exchange(t.Context(), nil, claim)
	check(t, err)
	dropped := begun[0].Settle(job.Ending{Outcome: job.Failed, FinishedAt: testTime, Answer: retry.Answer{Code: retry.CodeDiscard}}, nil)
	_, _, err = s.Exchange(t.Context(), []job.Settlement{dropped}, job.Claim{})
	check(t, err)
	limits := retention.Limits{Ages: retention.Ages{retention.Discarded: time.Hour}}
	_, err = s.Sweep.Forecast(t.Context(), testTime.Add(2*time.Hour), limits)
	check(t, err)
	_, err = s.Sweep.Prune(t.Context(), testTime.Add(2*time.Hour), limits)
	check(t, err)
	looked := 0
	for _, query := range recorded.all() {
		if strings.Contains(query, "list_state = 'discarded' AND letter = ''") && !strings.Contains(query, "json_each") {
			looked++
			if got := plan(t, s.engine.Reads(), query); !strings.Contains(got, "INDEX jobs_dropped") || strings.Contains(got, "TEMP B-TREE FOR ORDER BY") {
				t.Errorf("%s\n%s", query, got)
			}
		}
	}
	if looked != 3 {
		t.Errorf("%d statements were looked at", looked)
	}
}

// Retention counts and removes our own dead letters without reading those of sources, of
// which there can be a million.
func TestPlans_OfOwnDeadLettersReadNoneOfASource(t *testing.T) {
	s, recorded := openRecorded(t)
	enqueue(t, s, 3)
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Second), Lease: time.Minute, Free: map[string]int{"orders": 3}}
	begun, _, err := s.Exchange(t.Context(), nil, claim)
	check(t, err)
	var dead []job.Settlement
	for _, j := range begun {
		dead = append(dead, j.Settle(job.Ending{Outcome: job.Failed, FinishedAt: claim.Now, Answer: retry.Answer{Code: retry.CodeDeadLetter}}, nil))
	}
	_, _, err = s.Exchange(t.Context(), dead, job.Claim{})
	check(t, err)
	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: 100 * time.Hour}, Count: 2}
	for range 2 { // the second sweep removes what the first forecast announced
		_, err = s.Sweep.Prune(t.Context(), testTime.Add(2*time.Hour), limits)
		check(t, err)
		_, err = s.Sweep.Forecast(t.Context(), testTime.Add(2*time.Hour), limits)
		check(t, err)
	}
	_, err = s.Sweep.DeadLetterUsage(t.Context(), testTime)
	check(t, err)
	looked := 0
	for _, query := range recorded.all() {
		if strings.Contains(query, `letter = 'stored' AND source = ''`) && !strings.Contains(query, "json_each") {
			looked++
			if got := plan(t, s.engine.Reads(), query); !strings.Contains(got, "INDEX jobs_letter_own") || strings.Contains(got, "INDEX jobs_letter_queue") {
				t.Errorf("%s\n%s", query, got)
			}
		}
	}
	if looked < 5 {
		t.Errorf("%d statements were looked at", looked)
	}
}

// Completed jobs have no index by their ends: to find that there are none, a sweep would read
// all other jobs.
func TestPlans_RetentionLooksForNoCompletedJobsWhereThereAreNone(t *testing.T) {
	s, recorded := openRecorded(t)
	limits := retention.Limits{Ages: retention.Ages{retention.Completed: time.Hour}}
	sweep := func() bool {
		_, err := s.Sweep.Prune(t.Context(), testTime.Add(2*time.Hour), limits)
		check(t, err)
		return slices.ContainsFunc(recorded.all(), func(query string) bool { return strings.Contains(query, "state IN ('completed', 'returned')") })
	}
	_, err := s.Enqueue(t.Context(), testTime, []job.Job{{Queue: "orders", Type: "charge", Policy: retry.Default(), Timeout: time.Minute}})
	check(t, err)
	if sweep() {
		t.Error("a sweep looks for completed jobs while there are none")
	}
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Second), Lease: time.Minute, Free: map[string]int{"orders": 1}}
	begun, _, err := s.Exchange(t.Context(), nil, claim)
	check(t, err)
	done := begun[0].Settle(job.Ending{Outcome: job.Succeeded, FinishedAt: claim.Now}, nil)
	_, _, err = s.Exchange(t.Context(), []job.Settlement{done}, job.Claim{})
	check(t, err)
	if !sweep() {
		t.Error("a sweep looks for no completed job although there is one")
	}
}

// Every statement that a busy life of the store prepares is looked at.
func TestPlans_OfEveryStatementAvoidFullScans(t *testing.T) {
	s, recorded := openRecorded(t)
	live(t, s)
	other, err := sql.Open("sqlite", "file:"+pathOf(t, s))
	check(t, err)
	defer other.Close()
	other.SetMaxOpenConns(1)
	_, err = other.Exec(`ATTACH DATABASE $1 AS search_file`, pathOf(t, s)+"-search")
	check(t, err)
	looked := 0
	for _, query := range recorded.all() {
		if strings.HasPrefix(query, "SELECT") || strings.HasPrefix(query, "UPDATE") || strings.HasPrefix(query, "DELETE") {
			looked++
			if step := scans(plan(t, other, query)); step != "" && step != "SCAN j" { // all jobs, the newest first
				t.Errorf("%s\n%s", query, step)
			}
		}
	}
	if looked < 30 {
		t.Errorf("only %d statements were looked at", looked)
	}
}

// live does everything that the store can do.
func live(t *testing.T, s *Store) {
	t.Helper()
	ctx, ok := context.Background(), func(err error) { t.Helper(); check(t, err) }
	keyed := testJob("k")
	keyed.Key, keyed.RunAt = "k", testTime.Add(time.Second)
	message, poison := testJob("m"), testJob("p")
	message.MessageID, poison.State, poison.Reason = "m", job.Discarded, retry.MissingURN
	_, err := s.Enqueue(ctx, testTime, []job.Job{keyed, keyed, message, poison})
	ok(err)
	enqueue(t, s, 40)
	claim := job.Claim{Worker: "w", Now: testTime.Add(time.Minute), Lease: time.Minute, Free: map[string]int{"orders": 35}}
	claimed, _, err := s.Exchange(ctx, nil, claim)
	ok(err)
	outcomes := []job.Outcome{job.Succeeded, job.Failed, job.Interrupted}
	var settle []job.Settlement
	for i, j := range claimed[:30] {
		j.Policy.MaxAttempts = 1 + i%2
		settle = append(settle, j.Settle(job.Ending{Outcome: outcomes[i%3], FinishedAt: claim.Now}, func() float64 { return 0 }))
	}
	claim.Knows = func(string) bool { return false }
	_, _, err = s.Exchange(ctx, settle, claim)
	ok(err)
	_, err = s.Extend(ctx, testTime, testTime.Add(time.Hour), []job.Token{claimed[30].Token})
	ok(err)
	_, err = s.Unhold(ctx, func(string) bool { return true })
	ok(err)
	_, err = s.Replay(ctx, testTime, claimed[1].ID, 1, audit.Actor{Name: "eve"})
	ok(err)
	if _, err = s.Replay(ctx, testTime, claimed[1].ID, 1, audit.Actor{Name: "eve"}); err == nil {
		t.Error("replayed twice")
	}
	_, err = s.Discard(ctx, testTime, claimed[1].ID, 2, audit.Actor{Name: "eve"})
	ok(err)
	_, err = s.Cancel(ctx, testTime, claimed[31].ID, 1, audit.Actor{Name: "eve"})
	ok(err)
	refused := claimed[32].Settle(job.Ending{Outcome: job.Failed, FinishedAt: claim.Now, Answer: retry.Answer{Code: retry.CodeDeadLetter}}, nil)
	_, _, err = s.Exchange(ctx, []job.Settlement{refused.Delivered(job.Delivery{Problem: "no"})}, job.Claim{})
	ok(err)
	_, err = s.Forwarded(ctx, testTime, refused.ID, 1, job.Delivery{Problem: "still not"}, audit.Actor{Name: "eve"})
	ok(err)
	problems, err := s.Problems(ctx, claimed[30:34])
	ok(err)
	if len(problems) != 1 || problems[claimed[32].Seq] != "still not" {
		t.Errorf("problems %v, want the newest of the one refused letter", problems)
	}
	_, err = s.Forwarded(ctx, testTime, refused.ID, 1, job.Delivery{}, audit.Actor{Name: "eve"})
	ok(err)
	_, err = s.Restore(ctx, testTime, claimed[1].ID, 2, audit.Actor{Name: "eve"})
	ok(err)
	_, err = s.Discard(ctx, testTime, claimed[1].ID, 2, audit.Actor{Name: "eve"})
	ok(err)
	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}, Count: 1, Trash: time.Minute}
	_, err = s.Sweep.Forecast(ctx, testTime.Add(time.Hour), limits)
	ok(err)
	done, err := s.Sweep.Prune(ctx, testTime.Add(time.Hour), limits)
	ok(err)
	if done.Of(retention.DeadLetters)+done.Of(retention.OverCount) == 0 || done.Of(retention.Trash) == 0 {
		t.Error("nothing was pruned")
	}
	for _, age := range []time.Duration{1000 * time.Hour, time.Hour} { // the first finds nothing
		ages := retention.Ages{retention.Completed: age, retention.Cancelled: age, retention.Discarded: age}
		_, err = s.Sweep.Forecast(ctx, testTime.Add(time.Hour), retention.Limits{Ages: ages, Trash: age})
		ok(err)
		_, err = s.Sweep.Prune(ctx, testTime.Add(time.Hour), retention.Limits{Ages: ages})
		ok(err)
	}
	_, err = s.Sweep.Removals(ctx)
	ok(err)
	redo := job.Edit{Queue: "later", RunAt: testTime.Add(time.Hour), Body: &job.Body{Type: "email.send", Payload: []byte("{}")}}
	_, err = s.ReplayWith(ctx, testTime, claimed[31].ID, 1, redo, audit.Actor{Name: "eve"})
	ok(err)
	ok(s.Pause(ctx, testTime, "orders", audit.Actor{Name: "eve"}))
	ok(s.Resume(ctx, testTime, "orders", audit.Actor{Name: "ana"}))
	for _, kind := range []operation.Kind{operation.Discard, operation.Restore, operation.Replay} {
		operate(t, s, kind)
	}
	look(t, s, claimed[2].ID)
}

// operate acts on every job that the kind of operation is usually for.
func operate(t *testing.T, s *Store, kind operation.Kind) {
	t.Helper()
	f, err := kind.Scope(filter.Filter{})
	check(t, err)
	n := operation.Request{Kind: kind, Filter: f, Start: true}
	o, err := s.Operations.New(t.Context(), testTime.Add(time.Hour), n, audit.Actor{Name: "eve"})
	check(t, err)
	_, err = s.Operations.Collect(t.Context(), testTime.Add(time.Hour), o.ID)
	check(t, err)
	done, err := s.Operations.Work(t.Context(), func() time.Time { return testTime.Add(time.Hour) }, o.ID, operation.MaxStep)
	check(t, err)
	if done.Items == 0 || done.Operation.State != operation.Finished {
		t.Errorf("%s: %+v", kind, done)
	}
}

// look reads everything that can be read.
func look(t *testing.T, s *Store, id string) {
	t.Helper()
	ctx, ok := context.Background(), func(_ any, err error) { t.Helper(); check(t, err) }
	ok(s.Sweep.DeadLetterUsage(ctx, testTime))
	ok(s.Trashed(ctx, []job.Job{{Seq: 1}}))
	ok(s.Job(ctx, id))
	ok(s.Jobs(ctx, filter.Filter{}, filter.Cursor{}, 10))
	ok(s.DeadLetters(ctx, filter.Filter{}, filter.Cursor{}, 10))
	ok(s.Changes(ctx, []string{id}))
	ok(s.Counters.Queues(ctx, testTime, s.QueueNames()))
	ok(s.Counters.LastHour(ctx, testTime))
	ok(s.Counters.Series(ctx, testTime, "orders", "email.*", queues.LastDay()))
	ok(s.Recent(ctx, "email.send", 60))
	ok(s.Counters.Reasons(ctx))
	ok(s.Counters.Held(ctx, "", 10))
	ok(s.Counters.Tallies(ctx))
	ok(s.Leases(ctx, testTime))
	ok(s.NextDue(ctx, testTime))
	ok(s.Search.Lag(ctx))
	ok(s.Counters.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter}))
	ok(s.Search.Update(ctx))
	ok(s.Jobs(ctx, filter.Filter{Text: "service"}, filter.Cursor{}, 10))
	ok(s.DeadLetters(ctx, filter.Filter{Operation: 1, Group: "g"}, filter.Cursor{}, 10))
}

// The column list_state repeats the state where a list needs it, whatever changed the job.
func TestShelf_RepeatsTheState(t *testing.T) {
	s := open(t, Options{})
	live(t, s)
	const query = `SELECT state, list_state, count(*) FROM jobs GROUP BY state, list_state`
	seen := 0
	err := s.reader.In(t.Context()).Query(query, func(row *sql.Rows) error {
		var state, got string
		var n int
		err := row.Scan(&state, &got, &n)
		if want := rows.ListState(job.State(state)); got != want {
			t.Errorf("%d jobs that are %s are in the list %q, want %q", n, state, got, want)
		}
		seen++
		return err
	})
	check(t, err)
	if seen < 5 {
		t.Errorf("only %d states were seen", seen)
	}
}
