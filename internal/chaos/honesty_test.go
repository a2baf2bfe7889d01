//go:build linux

package chaos

import (
	"database/sql"
	"path/filepath"
	"strconv"
	"testing"
	"time"
)

// honest is a short history without a fault: a job that succeeded at its second
// attempt, one that died, one that died and was replayed, one that was lost to a kill
// before its handler heard of it, and one that had begun when a kill came although
// nothing shows it. A source has a job that is dead, one that failed again after its replay
// and succeeded after the next, one that was discarded, and one of whose replay the end is
// unknown.
func honest() history {
	return history{
		producers: &ledger{
			kinds:        map[int]string{1: "service.quick", 2: "service.dead", 3: "service.dead", 4: "program", 5: "program"},
			acknowledged: map[int]string{1: "a", 2: "b", 3: "c", 4: "d", 5: "e"},
			replayed:     map[string]int{"c": 2},
		},
		runs: runs{seen: []execution{
			{"a", 1, 1}, {"a", 1, 2}, {"b", 1, 1}, {"b", 1, 2}, {"c", 1, 1}, {"c", 1, 2}, {"c", 2, 1}, {"d", 1, 2},
			{"e", 1, 1}, {"e", 1, 1},
		}},
		unwritten: []time.Time{time.UnixMicro(50)}, workers: 1,
		shops: []outcome{{
			name: "outlet", born: 4, dead: map[int]bool{1: true}, ran: map[int]int{2: 2, 4: 1}, mended: map[int]bool{2: true, 4: true},
			replayed: map[string]int{"t": 3}, clicks: 2, number: strconv.Atoi,
		}},
	}
}

// honestDatabase is what the dashboard keeps of it.
const honestDatabase = `
CREATE TABLE jobs (seq INTEGER PRIMARY KEY, id TEXT, type TEXT, state TEXT, letter TEXT, reason TEXT, run INTEGER,
	attempts INTEGER, execution INTEGER, started_at INTEGER, finished_at INTEGER, queue TEXT DEFAULT 'default');
CREATE TABLE bodies (job_seq INTEGER, payload BLOB);
CREATE TABLE attempts (job_seq INTEGER, execution INTEGER, run INTEGER, number INTEGER, outcome TEXT, error_type TEXT,
	started_at INTEGER, finished_at INTEGER);
CREATE TABLE mirrored (job_seq INTEGER, source TEXT, lineage TEXT);
CREATE TABLE source_acts (job_seq INTEGER, kind TEXT, state TEXT);
INSERT INTO jobs (seq, id, type, state, letter, reason, run, attempts, execution, started_at, finished_at)
	VALUES (1, 'a', 'service.quick', 'completed', '', '', 1, 2, 2, 3, 4), (2, 'b', 'service.dead', 'discarded', 'stored', 'attempts_exhausted', 1, 2, 2, 3, 4),
	(3, 'c', 'service.dead', 'completed', '', '', 2, 1, 3, 5, 6),
	(4, 'd', 'program', 'completed', '', '', 1, 2, 3, 63, 64), (5, 'e', 'program', 'completed', '', '', 1, 1, 2, 63, 64);
INSERT INTO bodies VALUES (1, '1'), (2, '2'), (3, '3'), (4, '4'), (5, '5');
INSERT INTO attempts VALUES (1, 1, 1, 1, 'failed', '', 1, 2), (2, 1, 1, 1, 'failed', '', 1, 2), (2, 2, 1, 2, 'failed', '', 3, 4),
	(3, 1, 1, 1, 'failed', '', 1, 2), (3, 2, 1, 2, 'failed', '', 3, 4),
	(4, 1, 1, 1, 'lost', '', 40, 60), (4, 2, 1, 0, 'released', '', 61, 62),
	(5, 1, 1, 0, 'interrupted', 'not_begun', 40, 60);
INSERT INTO jobs (seq, id, queue, state, letter, reason, run)
	VALUES (11, 's', 'orders@outlet', 'discarded', 'stored', 'permanent', 1), (12, 't', 'orders@outlet', 'pending', '', '', 3),
	(13, 'u', 'orders@outlet', 'discarded', 'trashed', 'permanent', 1), (14, 'v', 'orders@outlet', 'pending', '', '', 2);
INSERT INTO mirrored VALUES (11, 'outlet', '1'), (12, 'outlet', '2'), (13, 'outlet', '3'), (14, 'outlet', '4');
INSERT INTO source_acts VALUES (12, 'replay', 'done'), (12, 'replay', 'done'), (13, 'discard', 'done'), (14, 'replay', 'unknown');`

// TestVerdict_CatchesEveryLie holds the verdict itself: a history without a fault
// passes, and each of these would not.
func TestVerdict_CatchesEveryFalsehood(t *testing.T) {
	nothing := func(*history) {}
	for _, falsehood := range []struct {
		name, sql string
		tell      func(*history)
	}{
		{"an acknowledged job is missing", "DELETE FROM jobs WHERE id = 'a'; DELETE FROM attempts WHERE job_seq = 1", nothing},
		{"a job is there twice", "INSERT INTO jobs VALUES (9, 'z', 'service.quick', 'completed', '', '', 1, 1, 1, 1, 2, ''); INSERT INTO bodies VALUES (9, '1')", nothing},
		{"a job was never sent", "INSERT INTO jobs VALUES (9, 'z', 'service.quick', 'completed', '', '', 1, 1, 1, 1, 2, ''); INSERT INTO bodies VALUES (9, '9')", nothing},
		{"a job has another id than its answer said", "", func(h *history) { h.producers.acknowledged[1] = "z" }},
		{"a job has another type", "UPDATE jobs SET type = 'program' WHERE id = 'a'", nothing},
		{"a job never ended", "UPDATE jobs SET state = 'available' WHERE id = 'a'", nothing},
		{"a job died that must not", "UPDATE jobs SET state = 'discarded', letter = 'stored', reason = 'attempts_exhausted' WHERE id = 'a'", nothing},
		{"a dead job has no letter", "UPDATE jobs SET letter = '' WHERE id = 'b'", nothing},
		{"a dead job died for another reason", "UPDATE jobs SET reason = 'expired' WHERE id = 'b'", nothing},
		{"an acknowledged replay is missing", "", func(h *history) { h.producers.replayed["b"] = 2 }},
		{"a job was replayed twice", "UPDATE jobs SET run = 3 WHERE id = 'c'", nothing},
		{"a job was replayed that was not touched", "UPDATE jobs SET run = 2 WHERE id = 'a'", nothing},
		{"an attempt was charged that was not seen", "", func(h *history) { h.runs.seen = h.runs.seen[1:] }},
		{"an attempt was lost without a kill", "", func(h *history) { h.unwritten = nil }},
		{"more attempts were lost than were under way", "", func(h *history) { h.workers = 0 }},
		{"an execution left no attempt", "UPDATE jobs SET attempts = 1, execution = 1 WHERE id = 'a'", nothing},
		{"an execution was repeated under its number", "", func(h *history) { h.runs.seen = append(h.runs.seen, execution{"a", 1, 1}) }},
		{"an execution that had begun was repeated twice", "", func(h *history) { h.runs.seen = append(h.runs.seen, execution{"e", 1, 1}) }},
		{"an execution was repeated that had not ended with a kill", "UPDATE attempts SET started_at = 51 WHERE job_seq = 5", nothing},
		{"an execution was repeated that was known to have begun", "UPDATE attempts SET error_type = '' WHERE job_seq = 5", nothing},
		{"an attempt is recorded twice", "INSERT INTO attempts VALUES (1, 0, 1, 1, 'failed', '', 5, 6)", nothing},
		{"the numbers of attempts have a gap", "UPDATE jobs SET attempts = 3 WHERE id = 'a'",
			func(h *history) { h.runs.seen[1].attempt = 3 }},
		{"a job ran twice at once", "", func(h *history) { h.runs.twice = []string{"a"} }},
		{"a dead letter of a source is missing", "DELETE FROM jobs WHERE id = 's'", nothing},
		{"a dead letter of a source is there twice", "INSERT INTO mirrored VALUES (14, 'outlet', '1')", nothing},
		{"a job of a source never died", "UPDATE mirrored SET lineage = '5' WHERE job_seq = 11", nothing},
		{"a dead letter is not at its source", "", func(h *history) { delete(h.shops[0].dead, 1) }},
		{"a job of a source is shown elsewhere", "UPDATE jobs SET state = 'pending', letter = '' WHERE id = 's'", nothing},
		{"a job of a source is lost", "", func(h *history) { delete(h.shops[0].mended, 2) }},
		{"a replay at a source never came to work", "", func(h *history) { h.shops[0].ran[2] = 1 }},
		{"a replay at a source came to work twice", "", func(h *history) { h.shops[0].ran[2] = 3 }},
		{"a replay of unknown end came to work twice", "", func(h *history) { h.shops[0].ran[4] = 2 }},
		{"a job of a source ran without a replay", "", func(h *history) { h.shops[0].ran[1] = 1 }},
		{"an acknowledged replay at a source is missing", "UPDATE jobs SET run = 2 WHERE id = 't'", nothing},
		{"a discard at a source was not asked for", "UPDATE source_acts SET kind = 'replay' WHERE job_seq = 13", nothing},
		{"a request to a source is still under way", "INSERT INTO source_acts VALUES (11, 'replay', 'begun')", nothing},
		{"an answer about a source is unexplained", "", func(h *history) { h.shops[0].wrong = []string{"500"} }},
		{"an answer is unexplained", "", func(h *history) { h.producers.wrong = map[string]string{"/api/v1/jobs": "500"} }},
	} {
		t.Run(falsehood.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "redrive.db")
			db, err := sql.Open("sqlite", path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(honestDatabase); err != nil {
				t.Fatal(err)
			}
			h := honest()
			if v := judge(t, path, h); len(v.problems) > 0 {
				t.Fatalf("a history without a fault is accused: %q", v.problems)
			}
			if _, err := db.Exec(falsehood.sql); err != nil {
				t.Fatal(err)
			}
			falsehood.tell(&h)
			if v := judge(t, path, h); len(v.problems) == 0 {
				t.Error("it was not noticed")
			}
		})
	}
}
