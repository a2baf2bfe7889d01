//go:build linux

package chaos

import (
	"database/sql"
	"fmt"
	"testing"
)

// outcome is what a shop knows at the end of a run.
type outcome struct {
	name     string
	born     int            // jobs that have died, numbered from 1
	dead     map[int]bool   // jobs that are among its dead letters now
	ran      map[int]int    // by job: how often its worker ran it
	mended   map[int]bool   // jobs that its worker has run successfully
	replayed map[string]int // by id: the newest run that an acknowledged replay began
	clicks   int            // replays that were acknowledged
	wrong    []string       // what no fault explains
	number   func(lineage string) (int, error)
}

// outcome is what the shop knows, once its worker has stopped.
func (s *shop) outcome(t *testing.T) outcome {
	t.Helper()
	dead, err := s.queue.dead()
	if err != nil {
		t.Fatal(err)
	}
	return outcome{name: s.name, born: s.born, dead: dead, ran: s.ran, mended: s.mended, replayed: s.replayed, clicks: s.clicks,
		wrong: s.wrong, number: s.queue.number}
}

// mirrored is a job of a source in the database, with what the ledger says of it.
type mirrored struct {
	id, lineage, state, deadLetter, reason string
	run                                    int

	replays, unknown int // replays that the source carried out, and those of which that is not known
	discards         int // that the source carried out, or may have
	open             int // requests that are still under way
}

// checkShop compares the database with what a shop knows: each of its jobs has one row,
// each replay that the source carried out brought the job to the shop's worker once, and
// the database says of each job where it is.
func (v *verdict) checkShop(jobs []mirrored, o outcome) {
	v.problems = append(v.problems, o.wrong...)
	v.shopReplays += o.clicks

	rows := map[int]mirrored{}
	for _, j := range jobs {
		n, err := o.number(j.lineage)
		if err != nil {
			v.accuse("%s: the record of job %s: %v", o.name, j.id, err)
			continue
		}
		if other, double := rows[n]; double {
			v.accuse("%s: job %d is there twice, as %s and as %s", o.name, n, other.id, j.id)
		}
		if n < 1 || n > o.born {
			v.accuse("%s: job %d (%s) never died there", o.name, n, j.id)
		}
		rows[n] = j
	}

	for n := 1; n <= o.born; n++ {
		j, found := rows[n]
		if !found {
			v.accuse("%s: job %d is not in the database", o.name, n)
			continue
		}
		v.shopExecutions += o.ran[n]
		v.shopUnknown += j.unknown
		v.checkPlace(n, j, o)
		v.checkRuns(n, j, o)
	}
}

// checkPlace: a job is among the dead letters here if and only if it is there, and no job
// is lost: it is dead, was run successfully, or was discarded on request.
func (v *verdict) checkPlace(n int, j mirrored, o outcome) {
	if shown := j.deadLetter == "stored"; shown != o.dead[n] {
		v.accuse("%s: job %d (%s) is a dead letter there: %v, and in the database: %v (%s, %s)", o.name, n, j.id, o.dead[n], shown, j.state, j.reason)
	}
	if !o.dead[n] && !o.mended[n] && j.discards == 0 {
		v.accuse("%s: job %d (%s) is lost: it neither ran nor was discarded", o.name, n, j.id)
	}
	if j.open > 0 {
		v.accuse("%s: %d requests for job %d (%s) are still under way", o.name, j.open, n, j.id)
	}
}

// checkRuns: the worker ran a job once for each replay that the ledger calls done, and at
// most once for each whose end it does not know. An acknowledged replay began its run.
func (v *verdict) checkRuns(n int, j mirrored, o outcome) {
	if ran := o.ran[n]; ran < j.replays || ran > j.replays+j.unknown {
		v.accuse("%s: job %d (%s) ran %d times after %d replays, and %d of which the end is unknown", o.name, n, j.id, ran, j.replays, j.unknown)
	}
	if want := o.replayed[j.id]; j.run < want {
		v.accuse("%s: job %d (%s) was replayed into run %d, the database has run %d", o.name, n, j.id, want, j.run)
	}
}

// readMirrored reads the jobs of a source with what the ledger says of them.
func readMirrored(t *testing.T, db *sql.DB, name string) (all []mirrored) {
	t.Helper()
	const query = `SELECT id, lineage, state, letter, reason, run,
		(SELECT count(*) FROM source_acts AS a WHERE a.job_seq = seq AND kind = 'replay' AND a.state = 'done'),
		(SELECT count(*) FROM source_acts AS a WHERE a.job_seq = seq AND kind = 'replay' AND a.state = 'unknown'),
		(SELECT count(*) FROM source_acts AS a WHERE a.job_seq = seq AND kind = 'discard' AND a.state IN ('done', 'unknown')),
		(SELECT count(*) FROM source_acts AS a WHERE a.job_seq = seq AND a.state IN ('asked', 'begun'))
		FROM jobs JOIN mirrored AS m ON m.job_seq = seq WHERE m.source = '%s'`
	each(t, db, fmt.Sprintf(query, name), func(rows *sql.Rows) error {
		var j mirrored
		err := rows.Scan(&j.id, &j.lineage, &j.state, &j.deadLetter, &j.reason, &j.run, &j.replays, &j.unknown, &j.discards, &j.open)
		all = append(all, j)
		return err
	})
	return all
}
