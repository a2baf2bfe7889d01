package core

import (
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// runKey names a run of a job.
type runKey struct {
	seq int64
	run int
}

// endedRun is how a replayed run ended in this transaction.
type endedRun struct {
	at      int64
	outcome operation.RunOutcome
	group   int64 // of the failure that ended it
}

// End notes that a run is over, the first time that it is called for the run. First
// runs belong to no operation, and the projections already know of a run that was over in
// an earlier transaction.
func (c *Core) End(t *db.Tx, j *job.Job, outcome operation.RunOutcome, now time.Time) {
	if j.Run == 1 {
		return
	}

	runs, k := c.in(t).runs, runKey{j.Seq, j.Run}
	if _, noted := runs[k]; !noted {
		runs[k] = endedRun{db.Micros(now), outcome, j.Group}
	}
}

// endedRuns are the replayed runs that ended, in the order of their jobs:
// neighbours share pages.
func (g *gathered) endedRuns(t *db.Tx) ([]projection.EndedRun, error) {
	const query = `SELECT r.job_seq, r.run + 1, r.group_id, r.operation_id FROM json_each($1) AS e
		JOIN replays AS r ON r.job_seq = CAST(e.value ->> 0 AS BIGINT) AND r.run = CAST(e.value ->> 1 AS BIGINT)`

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

// runsResumed takes back that the runs in which these jobs are were dropped.
func (c *Core) runsResumed(t *db.Tx, jobs []job.Job) error {
	var runs [][2]int64
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
