package store

import (
	"database/sql"
	"testing"

	"redrive/internal/audit"
)

func TestRecord_ContinuesTheChain(t *testing.T) {
	s := open(t, Options{})
	enqueue(t, s, 1)
	check(t, s.Pause(t.Context(), testTime, "orders", audit.Actor{Name: "ana"}))
	check(t, s.Record(t.Context(), audit.Entry{At: testTime, Actor: audit.Actor{Name: "eve"}, Action: "worker.quiet", Subject: "w1", Count: 1}))
	var before, hash []byte
	const query = `SELECT hash, action, actor FROM audit ORDER BY seq`
	var last, actor string
	check(t, s.reading(t.Context()).query(query, func(rows *sql.Rows) error {
		before = hash
		return rows.Scan(&hash, &last, &actor)
	}))
	want := chained(before, audit.Entry{Seq: 2, At: testTime, Actor: audit.Actor{Name: "eve"}, Action: "worker.quiet", Subject: "w1", Count: 1})
	if last != "worker.quiet" || actor != "eve" || string(hash) != string(want) {
		t.Errorf("the newest entry is %s by %s, hash %x, want %x", last, actor, hash, want)
	}
}
