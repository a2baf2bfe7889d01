package store

import (
	"testing"

	"redrive/internal/audit"
	"redrive/internal/store/accounts"
)

func TestRecord_ContinuesTheChain(t *testing.T) {
	s := open(t, Options{})
	enqueue(t, s, 1)
	check(t, s.Pause(t.Context(), testTime, "orders", audit.Actor{Name: "ana"}))
	check(t, s.Accounts.Record(t.Context(), audit.Entry{At: testTime, Actor: audit.Actor{Name: "eve"}, Action: "worker.quiet", Subject: "w1", Count: 1}))
	page, err := s.Accounts.Audit(t.Context(), audit.Filter{}, 0, 1)
	check(t, err)
	if last := page.Entries[0]; last.Seq != 2 || last.Action != "worker.quiet" || last.Actor.Name != "eve" {
		t.Errorf("the newest entry is %+v", last)
	}
	if n, err := accounts.Verify(s.reader.In(t.Context())); n != 2 || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}
