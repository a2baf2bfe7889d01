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

// The constants of this file are conditions on rows of the table jobs, for the WHERE clause
// of a query.

// lookedUp ends a query that is run for each job. PostgreSQL would otherwise read all the rows of the
// other table first, which can be many more than the jobs of a page.
const lookedUp = ` LIMIT 1 OFFSET 0`

// notHeld holds for a job that no operation under way has among its items. (A job that waits
// for a handler is "held" in another sense.)
const notHeld = `NOT EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
	WHERE i.job_seq = jobs.seq AND o.state IN ('running', 'paused')` + lookedUp + `)`

// ownDeadLetter holds for a dead letter that is stored here and nowhere else. A dead letter
// of a source is also in that source, which alone decides how long it stays: retention
// neither counts nor removes it.
const ownDeadLetter = `letter = 'stored' AND source = ''`

// notNewest holds for every job but the newest own dead letter, which is never removed.
const notNewest = `seq <> (SELECT seq FROM jobs WHERE ` + ownDeadLetter + ` ORDER BY changed_at DESC, seq DESC LIMIT 1)`

// notAtSource holds for a job of our own, and for a job of a source that has finished with
// it: its record has left the source, and no act on it is still to be carried out there. If
// retention removed another job of a source, the next scan would bring it back as a new job,
// or an act that a person asked for would be forgotten.
const notAtSource = `(source = '' OR NOT EXISTS (SELECT 1 FROM mirrored AS m WHERE m.job_seq = jobs.seq AND m.present <> 0` + lookedUp + `)
	AND NOT EXISTS (SELECT 1 FROM source_acts AS a WHERE a.job_seq = jobs.seq AND a.state IN ('asked', 'begun')` + lookedUp + `))`

// ended returns two SQL expressions for a kind of retention: the condition that a job is of
// that kind, and the time from which on its age counts. Each condition is written as in the
// partial index of its list, so that SQLite uses the index. Completed jobs have no such index
// (see the table jobs): they are read in the order of their numbers.
func ended(k retention.Kind) (where, at string) {
	switch k {
	// Nothing is known of the end of a returned job. It is kept as long as a completed one,
	// counted from when it was due to run at its source.
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
