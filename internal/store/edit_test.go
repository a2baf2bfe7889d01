package store

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// The audit log says what was changed, and of a payload only where.
func TestReplayWith_TellsTheAuditLogNoValues(t *testing.T) {
	s := open(t, Options{})
	was := dead(t, s, 1)[0]
	priority := 5
	_, err := s.ReplayWith(t.Context(), testTime, was.ID, 1, job.Edit{
		Queue: "eu2", Priority: &priority, RunAt: testTime.Add(time.Hour), Paths: []string{"$.provider"},
		Body: &job.Body{Type: was.Type, Payload: []byte(`{"provider":"hush"}`)},
	}, audit.Actor{Name: "ana"})
	check(t, err)
	var action, before, after string
	const query = `SELECT action, before, after FROM audit ORDER BY seq DESC LIMIT 1`
	check(t, s.reader.In(t.Context()).Query(query, func(rows *sql.Rows) error { return rows.Scan(&action, &before, &after) }))
	if want := "dead_letter, run 1; queue orders; priority 0"; action != "job.replay" || before != want {
		t.Errorf("%s: before %q, want job.replay: %q", action, before, want)
	}
	want := "scheduled, run 2; queue eu2; priority 5; not before " + wire.FormatTime(testTime.Add(time.Hour)) + "; payload changed at $.provider"
	if after != want || strings.Contains(before+after, "hush") {
		t.Errorf("after %q, want %q", after, want)
	}
}
