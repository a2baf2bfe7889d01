//go:build linux

package chaos

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"
	"time"

	_ "modernc.org/sqlite"
)

// history is what everything but the dashboard knows of a run.
type history struct {
	producers *ledger
	runs      runs
	unwritten []time.Time // when a process ended that could not write what it knew
	workers   int
	shops     []outcome
}

// verdict is what a run showed.
type verdict struct {
	problems                                        []string
	acknowledged, replays, executions, lost, unseen int

	// What the attached sources showed.
	shops                                              []string
	shopJobs, shopReplays, shopExecutions, shopUnknown int
}

func (v *verdict) accuse(format string, args ...any) {
	v.problems = append(v.problems, fmt.Sprintf(format, args...))
}

// kept is a job as it is stored in the database.
type kept struct {
	id, typ, state, deadLetter, reason string
	number, run                        int
}

// attempt is an attempt as it is stored in the database.
type attempt struct {
	execution
	outcome, class string // class is the error's type
	began, settled time.Time
}

// judge compares the database, which no process has open any more, with the logs.
func judge(t *testing.T, path string, h history) verdict {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	jobs, attempts := readJobs(t, db), readAttempts(t, db)
	v := verdict{acknowledged: len(h.producers.acknowledged), replays: len(h.producers.replayed), executions: len(h.runs.seen)}
	v.checkJobs(jobs, h.producers)
	v.checkReplays(jobs, h.producers)
	v.checkAttempts(attempts, h)
	for _, o := range h.shops {
		v.shops = append(v.shops, o.name)
		v.shopJobs += o.born
		v.checkShop(readMirrored(t, db, o.name), o)
	}
	for _, job := range h.runs.twice {
		v.accuse("job %s was run twice at once", job)
	}
	for _, about := range slices.Sorted(maps.Keys(h.producers.wrong)) {
		v.accuse("%s: %s", about, h.producers.wrong[about])
	}
	return v
}

// checkJobs: each acknowledged job is there, once, unchanged and at its end, and
// nothing is there that was never sent.
func (v *verdict) checkJobs(jobs []kept, l *ledger) {
	there := map[int]kept{}
	for _, j := range jobs {
		if other, double := there[j.number]; double {
			v.accuse("job %d is there twice, as %s and as %s", j.number, other.id, j.id)
		}
		there[j.number] = j
		switch sent := l.kinds[j.number]; {
		case sent != j.typ:
			v.accuse("job %d (%s) has the type %q, %q was sent", j.number, j.id, j.typ, sent)
		case j.state == "completed":
		case j.typ == "service.dead" && j.state == "discarded" && j.deadLetter == "stored" && j.reason == "attempts_exhausted" && j.run == 1:
		default:
			v.accuse("job %d (%s, %s) ended as %s %s %q in run %d", j.number, j.id, j.typ, j.state, j.deadLetter, j.reason, j.run)
		}
	}
	for n, id := range l.acknowledged {
		if there[n].id != id {
			v.accuse("job %d was acknowledged as %s, the database has %q", n, id, there[n].id)
		}
	}
}

// checkReplays: each acknowledged replay began the next run, and no run began
// without one.
func (v *verdict) checkReplays(jobs []kept, l *ledger) {
	for _, j := range jobs {
		if want, ok := l.replayed[j.id]; ok && j.run != want {
			v.accuse("job %s was replayed into run %d, the database has run %d", j.id, want, j.run)
		}
		if j.run > 2 || j.run == 2 && j.typ != "service.dead" {
			v.accuse("job %s (%s) is in run %d, and was not replayed", j.id, j.typ, j.run)
		}
	}
}

// checkAttempts: each attempt that was charged was an execution, each execution
// was one attempt, and they are numbered without gaps. Only a kill or a failed disk can
// take away an execution between its claim and the moment at which its handler gets
// it: as many as there are workers, for each. A job that was claimed in advance can have
// begun in the last moment before, and no record says so: it is carried out again under
// the same number then, and its record says that this may be.
func (v *verdict) checkAttempts(attempts []attempt, h history) {
	seen, charged, last := map[execution]int{}, map[execution]int{}, map[string]attempt{}
	doubtful := map[execution]int{} // by the number of the next attempt
	for _, e := range h.runs.seen {
		seen[e]++
	}
	for _, a := range attempts {
		if a.attempt == 0 { // given back, not charged
			if a.class == "not_begun" && cutBetween(h.unwritten, a.began, a.settled) {
				doubtful[following(last[a.job], a)]++
			}
			continue
		}
		charged[a.execution]++
		if before := last[a.job]; before.run == a.run && a.attempt != before.attempt+1 || before.run != a.run && a.attempt != 1 {
			v.accuse("job %s, run %d: attempt %d follows attempt %d of run %d", a.job, a.run, a.attempt, before.attempt, before.run)
		}
		last[a.job] = a
		if a.outcome == "lost" {
			v.lost++
		}
		if seen[a.execution] > 0 {
			continue
		}
		if a.outcome == "lost" && cutBetween(h.unwritten, a.began, a.settled) {
			v.unseen++
			continue
		}
		v.accuse("job %s was charged attempt %d of run %d (%s), which no handler saw", a.job, a.attempt, a.run, a.outcome)
	}
	if v.unseen > len(h.unwritten)*h.workers {
		v.accuse("%d attempts were charged that no handler saw, %d ends of a process explain at most %d", v.unseen, len(h.unwritten), len(h.unwritten)*h.workers)
	}
	for e, n := range seen {
		if n > 1+doubtful[e] {
			v.accuse("attempt %d of job %s, run %d, was carried out %d times", e.attempt, e.job, e.run, n)
		}
		if charged[e] != 1 {
			v.accuse("attempt %d of job %s, run %d, was carried out, the database has %d of it", e.attempt, e.job, e.run, charged[e])
		}
	}
}

// following is the attempt for which an execution was given back, after the last one
// that was charged.
func following(last, a attempt) execution {
	if last.run != a.run {
		return execution{a.job, a.run, 1}
	}
	return execution{a.job, a.run, last.attempt + 1}
}

func cutBetween(ends []time.Time, from, to time.Time) bool {
	return slices.ContainsFunc(ends, func(end time.Time) bool { return !end.Before(from) && !end.After(to) })
}

func readJobs(t *testing.T, db *sql.DB) (all []kept) {
	t.Helper()
	each(t, db, "SELECT id, type, state, letter, reason, run, payload FROM jobs JOIN bodies ON job_seq = seq WHERE instr(queue, '@') = 0", func(rows *sql.Rows) error {
		var j kept
		var payload []byte
		err := rows.Scan(&j.id, &j.typ, &j.state, &j.deadLetter, &j.reason, &j.run, &payload)
		if err == nil {
			j.number, err = strconv.Atoi(string(payload))
		}
		all = append(all, j)
		return err
	})
	return all
}

// readAttempts reads the attempts of each job in their order. An execution that
// completed its job has no row of its own: the job's row tells of it.
func readAttempts(t *testing.T, db *sql.DB) (all []attempt) {
	t.Helper()
	each(t, db, `SELECT id, a.run, number, outcome, a.error_type, a.started_at, a.finished_at, a.execution
			FROM attempts a JOIN jobs ON seq = job_seq WHERE instr(queue, '@') = 0
		UNION ALL
		SELECT id, run, attempts, 'succeeded', '', started_at, finished_at, execution FROM jobs
			WHERE state = 'completed' AND instr(queue, '@') = 0 AND NOT EXISTS (SELECT 1 FROM attempts a WHERE job_seq = seq AND a.execution = jobs.execution)
		ORDER BY id, execution`, func(rows *sql.Rows) error {
		var a attempt
		var began, settled, number int64
		err := rows.Scan(&a.job, &a.run, &a.attempt, &a.outcome, &a.class, &began, &settled, &number)
		a.began, a.settled = time.UnixMicro(began), time.UnixMicro(settled)
		all = append(all, a)
		return err
	})
	return all
}

func each(t *testing.T, db *sql.DB, query string, read func(*sql.Rows) error) {
	t.Helper()
	rows, err := db.Query(query)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := read(rows); err != nil {
			t.Fatal(err)
		}
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
}
