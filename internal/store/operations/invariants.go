package operations

import "redrive/internal/store/db"

// Invariants are what holds after every commit.
func (*Book) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "operations add up", Query: `SELECT id FROM operations WHERE total <> pending + done + skipped + failed`},
		{What: "operations count their items right", Query: miscounted},
		{What: "operations know when their items were done", Query: `SELECT id FROM operations
			WHERE done <> (SELECT coalesce(sum(n), 0) FROM operation_pace WHERE operation_id = operations.id)`},
	}
}

// miscounted finds operations whose meters say something else than their
// items. The items of operations that ended are removed after a time, and some of
// them may be gone already.
const miscounted = `SELECT id FROM operations AS o LEFT JOIN (
		SELECT operation_id, count(*) AS n, sum(state = 'pending') AS waiting, sum(state = 'done') AS did, sum(state = 'skipped') AS passed,
			sum(state = 'failed') AS broke, sum(outcome = 'succeeded') AS good, sum(outcome = 'relapsed') AS bad, sum(outcome = 'dropped') AS gave_up
		FROM operation_items GROUP BY operation_id) AS i ON i.operation_id = o.id
	WHERE (coalesce(i.n, 0) = o.total OR o.state NOT IN ('finished', 'aborted')) AND o.total + coalesce(i.n, 0) > 0
		AND (i.n IS NULL OR (i.n, waiting, did, passed, broke, good, bad, gave_up) <>
			(o.total, o.pending, o.done, o.skipped, o.failed, o.succeeded, o.relapsed, o.dropped))`
