package store

import (
	"strings"
	"testing"

	"redrive/internal/operation"
)

func TestPlans_OfOperationsFollowTheirItems(t *testing.T) {
	s := open(t, Options{})
	const jobs = 200
	for range 3 { // as many operations over the same jobs
		if _, err := write(t.Context(), s.writer, 1, func(tx *tx) (int64, error) {
			o := operation.Operation{Kind: operation.Replay, State: operation.Preview}
			var err error
			if o.ID, err = tx.insertOperation(o); err != nil {
				return 0, err
			}
			all := make([]workItem, jobs)
			for i := range all {
				all[i] = workItem{seq: int64(i + 1), run: 1}
			}
			_, err = tx.addItems(o, all, testTime)
			return o.ID, err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, query := range []string{outcomeQuery, undropQuery} {
		got := plan(t, s.reads, query)
		if strings.Contains(got, "SCAN operation_items") || strings.Contains(got, "AUTOMATIC") || !strings.Contains(got, "operation_items_job") {
			t.Errorf("the items of ended runs are found by\n%s", got)
		}
	}
	if got := plan(t, s.reads, nextQuery); got != "SEARCH operation_items USING INDEX operation_items_state (operation_id=? AND state=?)" {
		t.Errorf("the next items are found by\n%s", got)
	}
	if got := plan(t, s.reads, pruneQuery); strings.Contains(got, "SCAN i") || strings.Contains(got, "SCAN operation_items") ||
		!strings.Contains(got, "SEARCH i USING PRIMARY KEY (operation_id=?)") {
		t.Errorf("the items of old operations are found by\n%s", got)
	}
	for _, f := range []operation.ItemFilter{{}, {State: operation.ItemDone}, {State: operation.ItemSkipped}, {Outcome: operation.RunRelapsed}, {Outcome: operation.RunUnsettled}} {
		query, _ := itemsQuery(1, f, 0, 50)
		if got := plan(t, s.reads, query); strings.Contains(got, "SCAN i") || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("items of %+v are read by\n%s", f, got)
		}
	}
}
