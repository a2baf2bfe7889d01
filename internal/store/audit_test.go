package store

import (
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/store/accounts"
	"redrive/internal/store/db"
	"redrive/internal/store/sqlite"
)

// logged is a store whose audit log has five entries.
func logged(t *testing.T) *Store {
	t.Helper()
	s := open(t, Options{})
	for i := range 5 {
		by := audit.Actor{Name: []string{"ana", "eve"}[i%2], Address: "192.0.2.1"}
		at := testTime.Add(time.Duration(i) * time.Hour)
		check(t, s.Accounts.Record(t.Context(), audit.Entry{
			At: at, Actor: by, Action: []string{"job.replay", audit.Reveal, "queue.pause"}[i%3], Subject: fmt.Sprint("s", i%2), Count: int64(i),
			Filter: "queue:orders", Before: "x", After: "y",
		}))
	}
	return s
}

func seqsOf(entries []audit.Entry) (all []int64) {
	for _, e := range entries {
		all = append(all, e.Seq)
	}
	return all
}

func TestAudit_Filters(t *testing.T) {
	s := logged(t)
	for name, c := range map[string]struct {
		f    audit.Filter
		want []int64
	}{
		"everything":  {audit.Filter{}, []int64{5, 4, 3, 2, 1}},
		"by actor":    {audit.Filter{Actor: "eve"}, []int64{4, 2}},
		"by action":   {audit.Filter{Action: "queue.pause"}, []int64{3}},
		"by kind":     {audit.Filter{Action: "job.*"}, []int64{5, 4, 2, 1}},
		"by subject":  {audit.Filter{Subject: "s0", Actor: "ana"}, []int64{5, 3, 1}},
		"by time":     {audit.Filter{From: testTime.Add(time.Hour), To: testTime.Add(3 * time.Hour)}, []int64{3, 2}},
		"own reveals": {audit.Filter{Own: "ana"}, []int64{5, 4, 3, 1}},
	} {
		page, err := s.Accounts.Audit(t.Context(), c.f, 0, 10)
		if got := seqsOf(page.Entries); err != nil || !slices.Equal(got, c.want) || page.Next != 0 {
			t.Errorf("%s: %v next %d, %v; want %v", name, got, page.Next, err, c.want)
		}
	}
}

// Those who may not manage see of reveals, logins, users and tokens only their own.
func TestAudit_GuardedEntriesAreSeenByTheirActor(t *testing.T) {
	s := open(t, Options{})
	want := map[string]bool{}
	for action, open := range map[string]bool{
		"job.replay": true, "job.reveal": false, "queue.pause": true, "operation.start": true, "export": true, "config.reload": true, "logins": true,
		"login": false, "login.failed": false, "logout": false, "session.end": false, "user.add": false, "user.role": false, "token.create": false,
	} {
		for _, name := range []string{"ana", "eve"} {
			check(t, s.Accounts.Record(t.Context(), audit.Entry{At: testTime, Actor: audit.Actor{Name: name}, Action: action}))
			if open || name == "ana" {
				want[action+" "+name] = true
			}
		}
	}
	page, err := s.Accounts.Audit(t.Context(), audit.Filter{Own: "ana"}, 0, 100)
	check(t, err)
	got := map[string]bool{}
	for _, e := range page.Entries {
		got[e.Action+" "+e.Actor.Name] = true
	}
	if !maps.Equal(got, want) {
		t.Errorf("ana sees %v, want %v", slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)))
	}
}

func TestAudit_Pages(t *testing.T) {
	s := logged(t)
	first, err := s.Accounts.Audit(t.Context(), audit.Filter{}, 0, 2)
	check(t, err)
	second, err := s.Accounts.Audit(t.Context(), audit.Filter{}, first.Next, 3)
	check(t, err)
	if got := append(seqsOf(first.Entries), seqsOf(second.Entries)...); !slices.Equal(got, []int64{5, 4, 3, 2, 1}) || second.Next != 0 {
		t.Errorf("two pages have %v, next %d", got, second.Next)
	}
	e := second.Entries[2]
	if !e.At.Equal(testTime) || e.Actor != (audit.Actor{Name: "ana", Address: "192.0.2.1"}) || e.Filter != "queue:orders" || e.Before+e.After != "xy" {
		t.Errorf("the first entry is %+v", e)
	}
}

// verify walks the log from its beginning.
func verify(t *testing.T, s *Store) (n int64, err error) {
	t.Helper()
	err = s.reader.Consistently(t.Context(), func(src db.Source) (err error) {
		n, err = accounts.Verify(src)
		return err
	})
	return n, err
}

// tampered runs statements as a person with the file and a shell would, and
// verifies the log.
func tampered(t *testing.T, s *Store, statements ...string) (n int64, broken *audit.Broken) {
	t.Helper()
	other, err := sql.Open("sqlite", "file:"+pathOf(t, s))
	check(t, err)
	defer func() { check(t, other.Close()) }()
	for _, statement := range statements {
		_, err := other.Exec(statement)
		check(t, err)
	}
	n, err = verify(t, s)
	if err != nil && !errors.As(err, &broken) {
		t.Fatal(err)
	}
	return n, broken
}

func TestVerifyAudit_FindsWhatWasChanged(t *testing.T) {
	const free = `DROP TRIGGER audit_keeps; DROP TRIGGER audit_stays;`
	for name, c := range map[string]struct {
		change, want string
	}{
		"nothing":           {`SELECT 1`, ""},
		"another actor":     {free + `UPDATE audit SET actor = 'adam' WHERE seq = 3`, "entry 3 of the audit log was changed"},
		"another count":     {free + `UPDATE audit SET count = 0 WHERE seq = 2`, "entry 2 of the audit log was changed"},
		"a text moved over": {free + `UPDATE audit SET before = 'xy', after = '' WHERE seq = 4`, "entry 4 of the audit log was changed"},
		"one taken out":     {free + `DELETE FROM audit WHERE seq = 3`, "entry 3 of the audit log is missing"},
		"the first":         {free + `DELETE FROM audit WHERE seq = 1`, "entry 1 of the audit log is missing"},
		"the end cut off":   {free + `DELETE FROM audit WHERE seq >= 4`, "entry 4 of the audit log and all later entries are missing: the log had 5"},
		"all of it":         {free + `DELETE FROM audit`, "entry 1 of the audit log and all later entries are missing: the log had 5"},
		"one added":         {`INSERT INTO audit SELECT 6, at, actor, address, action, subject, filter, count, before, after, hash FROM audit WHERE seq = 5`, "entry 6 of the audit log was changed"},
	} {
		t.Run(name, func(t *testing.T) {
			s := logged(t)
			n, broken := tampered(t, s, c.change)
			if c.want == "" {
				if broken != nil || n != 5 {
					t.Errorf("%d entries, %v; want 5", n, broken)
				}
				return
			}
			if broken == nil || broken.Error() != c.want {
				t.Errorf("found %v, want %s", broken, c.want)
			}
		})
	}
}

// TestVerifyAudit_NothingHeals: what was changed while the program was down is
// found also after a new entry has followed.
func TestVerifyAudit_NothingHeals(t *testing.T) {
	const free = `DROP TRIGGER audit_keeps; DROP TRIGGER audit_stays;`
	for name, c := range map[string]struct{ change, want string }{
		"the end cut off": {free + `DELETE FROM audit WHERE seq >= 4`, "entry 4 of the audit log is missing"},
		"all of it":       {free + `DELETE FROM audit`, "entry 1 of the audit log is missing"},
		"the last one":    {free + `UPDATE audit SET actor = 'adam' WHERE seq = 5`, "entry 5 of the audit log was changed"},
		"one added":       {`INSERT INTO audit SELECT 6, at, actor, address, action, subject, filter, count, before, after, hash FROM audit WHERE seq = 5`, "entry 6 of the audit log was changed"},
		"the head moved":  {`UPDATE audit_head SET seq = 99`, "entry 6 of the audit log is missing"},
	} {
		t.Run(name, func(t *testing.T) {
			s := logged(t)
			path := pathOf(t, s)
			check(t, s.Close())
			other, err := sql.Open("sqlite", "file:"+path)
			check(t, err)
			_, err = other.Exec(c.change)
			check(t, errors.Join(err, other.Close()))
			s = open(t, Options{Database: sqlite.File{Path: path}})
			for range 2 {
				check(t, s.Accounts.Record(t.Context(), audit.Entry{At: testTime, Actor: audit.Actor{Name: "ana"}, Action: "queue.pause"}))
			}
			if _, broken := tampered(t, s); broken == nil || broken.Error() != c.want {
				t.Errorf("found %v, want %s", broken, c.want)
			}
		})
	}
}

func TestAudit_RefusesChanges(t *testing.T) {
	s := logged(t)
	other, err := sql.Open("sqlite", "file:"+pathOf(t, s))
	check(t, err)
	defer func() { check(t, other.Close()) }()
	for _, statement := range []string{`UPDATE audit SET actor = 'x'`, `DELETE FROM audit WHERE seq = 5`} {
		if _, err := other.Exec(statement); err == nil || !strings.Contains(err.Error(), "append-only") {
			t.Errorf("%s: %v", statement, err)
		}
	}
}

func TestVerifyAudit_HoldsOverManyEntries(t *testing.T) { holdsOverManyEntries(t, 50) }

func TestLong_VerifyAuditHoldsOverManyEntries(t *testing.T) { holdsOverManyEntries(t, 400) }

func holdsOverManyEntries(t *testing.T, each int) {
	t.Helper()
	s := open(t, Options{})
	for range 3 {
		for _, j := range dead(t, s, each) {
			_, err := s.Discard(t.Context(), testTime, j.ID, 1, audit.Actor{Name: "ana"})
			check(t, err)
		}
	}
	if n, err := verify(t, s); n != int64(3*each) || err != nil {
		t.Errorf("%d entries, %v", n, err)
	}
}
