package sweep

import "redrive/internal/retention"

// notHeld is the condition that no operation under way needs the job.
const notHeld = `NOT EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
	WHERE i.job_seq = jobs.seq AND o.state IN ('running', 'paused'))`

// ownDeadLetter is the condition that a dead letter is held here alone. A dead letter of a
// source is in its source too, which alone decides how long it stays: retention
// neither counts nor removes it.
const ownDeadLetter = `letter = 'stored' AND source = ''`

// notNewest is the condition that the job is not the newest dead letter of our own,
// which always stays.
const notNewest = `seq <> (SELECT seq FROM jobs WHERE ` + ownDeadLetter + ` ORDER BY changed_at DESC, seq DESC LIMIT 1)`

// notAtSource is the condition that a source has nothing of the job any more: its record
// has left, and no act on it is under way. Otherwise the source would bring the job back
// as a new one, and an act that was asked for would be forgotten.
const notAtSource = `(source = '' OR NOT EXISTS (SELECT 1 FROM mirrored AS m WHERE m.job_seq = jobs.seq AND m.present <> 0)
	AND NOT EXISTS (SELECT 1 FROM source_acts AS a WHERE a.job_seq = jobs.seq AND a.state IN ('asked', 'begun')))`

// ended are the conditions by which jobs of a kind are found, each with what the
// index of its list repeats. Completed jobs have no such index (see the table jobs):
// they are read in the order of their numbers. Nothing is known of the end of a returned job,
// so it is kept as long as a completed one, from when it was to run.
func ended(k retention.Kind) (where, at string) {
	switch k {
	case retention.Completed:
		return `state IN ('completed', 'returned')`, `CASE state WHEN 'completed' THEN finished_at ELSE max(changed_at, run_at) END`
	case retention.Cancelled:
		return `list_state = 'cancelled' AND list_state <> ''`, `changed_at`
	case retention.Discarded:
		return `list_state = 'discarded' AND letter = ''`, `changed_at`
	}

	return ownDeadLetter, `changed_at`
}
