package sweep

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/retention"
)

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

// keptFor is the condition that jobs of a kind are kept for an age, which is one that all jobs,
// a queue or a type has. It decides as [retention.Limits.Age] does: by the exact type, then by
// the longest prefix of the type, then by the queue. The names are the arguments of the
// condition, behind those that there are already.
func keptFor(l retention.Limits, k retention.Kind, age time.Duration, before int) (condition string, names []any) {
	var cases strings.Builder
	add := func(name string, ages retention.Ages, test string) {
		own, ok := ages[k]
		if ok {
			names = append(names, name)
			fmt.Fprintf(&cases, " WHEN "+test+" THEN %[2]t", before+len(names), own == age, utf8.RuneCountInString(name))
		}
	}

	// A longer prefix comes first.
	types := slices.SortedFunc(maps.Keys(l.Types), func(a, b string) int { return cmp.Or(cmp.Compare(len(b), len(a)), cmp.Compare(a, b)) })
	for _, name := range types {
		add(name, l.Types[name], "type = $%[1]d")
	}

	for _, pattern := range types {
		if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
			add(prefix, l.Types[pattern], "substr(type, 1, %[3]d) = $%[1]d AND type <> $%[1]d")
		}
	}

	for _, queue := range slices.Sorted(maps.Keys(l.Queues)) {
		add(queue, l.Queues[queue], "queue = $%[1]d")
	}

	// Most databases have one age for all.
	if len(names) == 0 {
		return "", nil
	}

	return fmt.Sprintf(" AND CASE%s ELSE %t END", cases.String(), l.Ages[k] == age), names
}
