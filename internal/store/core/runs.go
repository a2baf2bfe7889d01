package core

import (
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// runKey is a run of the job with the number seq.
type runKey struct {
	seq int64
	run int
}

// endedRun is how a replayed run ended in this transaction.
type endedRun struct {
	at      int64 // in microseconds
	outcome operation.RunOutcome
	group   int64 // the error group of the job then
}

// End records how the current run of a job ended, for Flush to report. If it is called more
// than once for a run within a transaction, the first call counts. It ignores the first run of
// a job, because no replay started that.
func (c *Core) End(t *db.Tx, j *job.Job, outcome operation.RunOutcome, now time.Time) {
	if j.Run == 1 {
		return
	}

	runs := c.in(t).runs
	k := runKey{j.Seq, j.Run}
	if _, recorded := runs[k]; !recorded {
		runs[k] = endedRun{db.Micros(now), outcome, j.Group}
	}
}

// endedRuns returns the replayed runs that ended, each with what its replay says of it. They
// are in the order of their jobs, so that those who write to them touch each page of the
// database once.
func (g *gathered) endedRuns(t *db.Tx) ([]projection.EndedRun, error) {
	const query = `SELECT r.job_seq, r.run + 1, r.group_id, r.operation_id FROM json_each($1) AS e
		JOIN replays AS r ON r.job_seq = CAST(e.value ->> 0 AS BIGINT) AND r.run = CAST(e.value ->> 1 AS BIGINT)`

	// A replay is stored with the run that it ended, and starts the run after that.
	replays := make([][2]int64, 0, len(g.runs))
	for k := range g.runs {
		replays = append(replays, [2]int64{k.seq, int64(k.run - 1)})
	}

	slices.SortFunc(replays, func(a, b [2]int64) int { return slices.Compare(a[:], b[:]) })

	fields := func(r *projection.EndedRun) []any { return []any{&r.Seq, &r.Run, &r.Origin, &r.Operation} }
	all, err := db.All(t, query, fields, db.Rows(replays))
	for i := range all {
		r := &all[i]
		end := g.runs[runKey{r.Seq, r.Run}]
		r.At, r.Outcome, r.Group = end.at, end.outcome, end.group
	}

	return all, err
}

// runsResumed takes back that the current runs of these jobs were dropped: both what this
// transaction has recorded of it, and what projections have written about it earlier.
func (c *Core) runsResumed(t *db.Tx, jobs []job.Job) error {
	var runs [][2]int64 // number of the job, run
	gathered := c.in(t).runs
	for _, j := range jobs {
		if j.Run == 1 {
			continue
		}

		runs = append(runs, [2]int64{j.Seq, int64(j.Run)})

		k := runKey{j.Seq, j.Run}
		if gathered[k].outcome == operation.RunDropped {
			delete(gathered, k)
		}
	}

	if len(runs) == 0 {
		return nil
	}

	return c.projections.RunsResumed(t, db.Rows(runs))
}
