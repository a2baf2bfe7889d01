package operations

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// ResumePassed lets a paused operation go on with the causes that passed its canary: those whose
// jobs in the canary all succeeded. The jobs of all other causes are skipped. The error is a
// *job.Conflict while jobs of the canary may still end, and if no cause has passed.
func (p *Projection) ResumePassed(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return p.change(ctx, id, "resumed", func(t *db.Tx, o operation.Operation) error {
		var seen operation.Progress
		if err := cheapProgress(t, now, o, &seen); err != nil {
			return err
		}

		if seen.Canary.Unsettled() > seen.Canary.SourceRuns.Returned {
			return &job.Conflict{Problem: fmt.Sprintf("the canary of operation %d is not over; wait for its jobs", id)}
		}

		passed, err := passedCauses(t, o)
		if err != nil {
			return err
		}

		if len(passed) == 0 {
			return &job.Conflict{Problem: fmt.Sprintf("no cause has passed the canary of operation %d", id)}
		}

		if err := leaveOut(t, id, passed); err != nil {
			return err
		}

		// The items of the other causes are skipped before the next item is processed (see Sift).
		o.State, o.Why = operation.Running, ""
		o.ResumedAt, o.Guarded, o.Sift = now, false, o.Position+1
		e := entry(o, "operation.resume", now, by)
		e.After = fmt.Sprintf("%d of %d causes, which passed the canary", len(passed), o.Causes)

		return p.record(t, operation.Paused, o, e)
	}, operation.Paused)
}

// passedCauses returns the causes whose jobs in the canary all succeeded.
func passedCauses(t *db.Tx, o operation.Operation) ([]cause, error) {
	query := `SELECT canary.cause, ` + typeOfCause("canary.cause") + ` FROM ` + canaryItems + `
		GROUP BY 1, 2 HAVING count(*) = count(*) FILTER (WHERE outcome = 'succeeded')`

	if o.CanaryAt.IsZero() || o.Causes == 0 { // an earlier version, which did not store causes, collected its jobs
		return nil, nil
	}

	all, err := db.All(t, query, func(c *cause) []any { return []any{&c.group, &c.typ} }, o.ID, o.Pace.Canary)

	return all, db.Wrap(err, "read which causes passed the canary of operation %d", o.ID)
}

// leaveOut marks all causes of an operation as left out, except those that passed.
func leaveOut(t *db.Tx, id int64, passed []cause) error {
	const markAll = `UPDATE operation_causes SET left_out = 1 WHERE operation_id = $1`
	const unmark = `UPDATE operation_causes SET left_out = 0 FROM json_each($2) AS e
		WHERE operation_id = $1 AND cause = CAST(e.value ->> 0 AS BIGINT) AND operation_causes.type = e.value ->> 1`

	kept := make([][2]any, len(passed))
	for i, c := range passed {
		kept[i] = [2]any{c.group, c.typ}
	}

	err := t.Run(markAll, id)
	if err == nil {
		err = t.Run(unmark, id, db.Rows(kept))
	}

	return db.Wrap(err, "leave out causes of operation %d", id)
}

// siftChunk is how many items one transaction of Sift looks at.
const siftChunk = 1000

// Sift looks at the next items of a running operation, and skips those whose causes are left out
// (see ResumePassed). The caller repeats it while the operation's Sift is not 0. Until then, no
// item is processed.
func (p *Projection) Sift(ctx context.Context, now time.Time, id int64) error {
	return p.writer.Do(ctx, siftChunk, func(t *db.Tx) error {
		o, err := byID(t, id)
		if err != nil || o.State != operation.Running || o.Sift == 0 {
			return err
		}

		o, err = p.sift(t, o, now)
		if err != nil {
			return fmt.Errorf("skip what operation %d goes on without: %w", id, err)
		}

		_, err = p.endStep(t, o, now)

		return err
	})
}

// sift skips the items of one chunk, and returns the operation with its new counts. Its Sift is the
// number of the item with which the next chunk begins, or 0 after the last one.
func (p *Projection) sift(t *db.Tx, o operation.Operation, now time.Time) (operation.Operation, error) {
	query := `SELECT i.n, coalesce(c.left_out, 1) FROM operation_items AS i LEFT JOIN jobs AS j ON j.seq = i.job_seq
		LEFT JOIN operation_causes AS c ON c.operation_id = i.operation_id AND c.cause = i.cause AND c.type = ` + typeOfCause("i.cause") + `
		WHERE i.operation_id = $1 AND i.n >= $2 AND i.state = 'pending' ORDER BY i.n LIMIT $3 + 0`
	const skip = `UPDATE operation_items SET state = 'skipped', code = $3, why = $4, at = $5
		WHERE operation_id = $1 AND n IN (SELECT value FROM json_each($2)) AND state = 'pending'`
	const why = "its cause did not pass the canary, or was not in it"
	type item struct {
		n    int64
		left bool
	}

	items, err := db.All(t, query, func(it *item) []any { return []any{&it.n, &it.left} }, o.ID, o.Sift, siftChunk)
	if err != nil {
		return o, err
	}

	var left []int64
	for _, it := range items {
		o.Sift = it.n + 1
		if it.left {
			left = append(left, it.n)
		}
	}

	if len(items) < siftChunk {
		o.Sift = 0
	}

	if len(left) == 0 {
		return o, nil
	}

	n := int64(len(left))
	o.Pending, o.Skipped = o.Pending-n, o.Skipped+n

	return o, db.Steps(t,
		func(t *db.Tx) error {
			return t.ExecExactly(len(left), skip, o.ID, db.Numbers(left), string(operation.SkipCause), why, db.Micros(now))
		},
		func(t *db.Tx) error {
			return p.countScope(t, o.ID, nil, map[operation.Skip]int64{operation.SkipCause: n})
		})
}
