package store

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
)

func TestPlans_OfOperationsFollowTheirItems(t *testing.T) {
	s, recorded := openRecorded(t)
	ctx, by := t.Context(), audit.Actor{Name: "ana"}
	dead(t, s, 200)
	for range 3 { // as many operations over the same jobs
		o, err := s.Operations.New(ctx, testTime.Add(time.Hour), operation.Request{Kind: operation.Discard, Filter: filter.Filter{Queue: "orders"}, Start: true}, by)
		check(t, err)
		_, err = s.Operations.Collect(ctx, testTime.Add(time.Hour), o.ID)
		check(t, err)
	}
	work := func(id int64) {
		_, err := s.Operations.Work(ctx, func() time.Time { return testTime.Add(time.Hour) }, id, 10)
		check(t, err)
	}
	work(1)
	replay, err := s.Operations.New(ctx, testTime.Add(time.Hour), operation.Request{
		Kind: operation.Replay, Filter: filter.Filter{Status: job.StatusDeadLetter}, Start: true,
	}, by)
	check(t, err)
	_, err = s.Operations.Collect(ctx, testTime.Add(time.Hour), replay.ID)
	check(t, err)
	work(replay.ID)
	replayed, err := s.Jobs(ctx, filter.Filter{Status: "available"}, filter.Cursor{}, 1)
	check(t, err)
	_, err = s.Discard(ctx, testTime.Add(time.Hour), replayed.Jobs[0].ID, 2, by)
	check(t, err)
	_, err = s.Restore(ctx, testTime.Add(time.Hour), replayed.Jobs[0].ID, 2, by)
	check(t, err)
	_, err = s.Operations.Abort(ctx, testTime.Add(time.Hour), 1, by)
	check(t, err)
	_, err = s.Sweep.Prune(ctx, testTime.Add(2*time.Hour), retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
	check(t, err)
	for _, query := range []string{recorded.one(t, "JOIN operation_items AS i ON i.job_seq = e.value"), recorded.one(t, "SET outcome = '', ended_at = 0")} {
		got := plan(t, s.engine.Reads(), query)
		if strings.Contains(got, "SCAN operation_items") || strings.Contains(got, "SCAN i") || strings.Contains(got, "AUTOMATIC") || !strings.Contains(got, "operation_items_job") {
			t.Errorf("the items of ended runs are found by\n%s", got)
		}
	}
	write := recorded.one(t, "SET outcome = e.column3")
	if got := plan(t, s.engine.Reads(), write); !strings.Contains(got, "SEARCH operation_items USING PRIMARY KEY (operation_id=? AND n=?)") {
		t.Errorf("the outcomes are written by\n%s", got)
	}
	next := recorded.one(t, "SELECT n, job_seq, run FROM operation_items")
	if got := plan(t, s.engine.Reads(), next); got != "SEARCH operation_items USING PRIMARY KEY (operation_id=? AND n>?)" {
		t.Errorf("the next items are found by\n%s", got)
	}
	for _, part := range []string{"DELETE FROM operation_items WHERE operation_id = $1 AND n IN", "AND EXISTS (SELECT 1 FROM operation_items"} {
		got := plan(t, s.engine.Reads(), recorded.one(t, part))
		if strings.Contains(got, "SCAN i") || strings.Contains(got, "SCAN operation_items") || !strings.Contains(got, "USING PRIMARY KEY (operation_id=?") {
			t.Errorf("the items of old operations are found by\n%s", got)
		}
	}
	for _, f := range []operation.ItemFilter{{}, {State: operation.ItemDone}, {State: operation.ItemPending}, {State: operation.ItemSkipped}, {Outcome: operation.RunRelapsed}, {Outcome: operation.RunUnsettled}} {
		recorded.forget()
		_, err := s.Operations.Items(ctx, 1, f, 0, 50)
		check(t, err)
		query := recorded.one(t, "FROM operation_items AS i")
		if got := plan(t, s.engine.Reads(), query); strings.Contains(got, "SCAN i") || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("items of %+v are read by\n%s", f, got)
		}
	}
}
