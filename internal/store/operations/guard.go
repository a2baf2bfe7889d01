package operations

import (
	"fmt"

	"redrive/internal/operation"
	"redrive/internal/store/db"
)

// guarded returns why the guard of an operation stops it, or "": most of the runs that ended last
// failed with the same error as before the replay. Runs that ended before the operation was last
// resumed do not count.
func (p *Projection) guarded(t *db.Tx, o operation.Operation) (why string, err error) {
	if !o.Pace.Guard || o.Kind != operation.Replay {
		return "", nil
	}

	var seen operation.Progress
	err = guardSees(t, o, &seen)
	if err != nil || seen.Ended < operation.GuardLeast || 2*seen.Same <= seen.Ended {
		return "", err
	}

	// Name the error if a single one came back in most of the runs.
	if 2*seen.BackN > seen.Ended && seen.Back.Class != "" {
		return fmt.Sprintf("%s came back in %d of the last %d replays", seen.Back.Class, seen.BackN, seen.Ended), nil
	}

	// Otherwise several errors came back, or one that has no name.
	why = fmt.Sprintf("%d of the last %d replays failed permanently with the same errors as before", seen.Same, seen.Ended)
	if seen.Back.Class != "" {
		why += fmt.Sprintf(", most often, %d times, with %s", seen.BackN, seen.Back.Class)
	}

	return why, nil
}

// guardSees sets in p what the guard looks at: how many replayed runs ended last, how many of
// them failed in the same error group as before, and the group in which most of these failed.
func guardSees(src db.Source, o operation.Operation, p *operation.Progress) error {
	const newest = `(SELECT same, cause FROM operation_items
		WHERE operation_id = $1 AND ended_at > $2 AND ended_at <> 0 ORDER BY ended_at DESC LIMIT $3 + 0) AS newest`
	const counts = `SELECT count(*), coalesce(sum(same), 0) FROM ` + newest
	const back = `SELECT count(*) AS n, ` + causeColumns + ` FROM ` + newest + ` JOIN groups AS g ON g.id = newest.cause
		WHERE same = 1 GROUP BY g.id ORDER BY n DESC, g.id LIMIT 1`

	args := []any{o.ID, db.Micros(o.ResumedAt), operation.GuardWindow}
	_, err := db.Row(src, counts, []any{&p.Ended, &p.Same}, args...)
	if err == nil && p.Same > 0 {
		_, err = db.Row(src, back, append([]any{&p.BackN}, causeFields(&p.Back)...), args...)
	}

	return db.Wrap(err, "read what the guard of operation %d sees", o.ID)
}
