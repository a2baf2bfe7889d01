package counters

import (
	"fmt"
	"strings"

	"redrive/internal/store/db"
)

// Invariants are what holds after every commit: each rollup is what counting the
// rows gives.
func (*Projection) Invariants() []db.Invariant {
	// What a job is counted under: its queue and type, or "other" where these have no label of
	// their own.
	const (
		queue = `CASE WHEN queue IN (SELECT name FROM labels WHERE kind = 'queue') THEN queue ELSE 'other' END`
		typ   = `CASE WHEN EXISTS (SELECT 1 FROM labels AS l WHERE l.kind = 'type' AND l.source = jobs.source AND l.name = type)
			THEN type ELSE 'other' END`
	)

	return []db.Invariant{
		// The table depths has the states, in which each job is once, and four statuses that
		// are part of a state and are counted beside it.
		{What: "counts of jobs by queue and state match the jobs", Query: differing("queue || ' ' || status", "queue, status",
			`SELECT queue, status, n, 0 FROM depths WHERE status NOT IN ('dead_letter', 'dlq_failed', 'held', 'trashed')`,
			`SELECT queue, state AS status, 0, count(*) FROM jobs GROUP BY queue, state`)},
		{What: "counts of dead letters, of jobs in the trash and of jobs without a handler match the jobs", Query: differing(
			"queue || ' ' || status", "queue, status",
			`SELECT queue, status, n, 0 FROM depths WHERE status IN ('dead_letter', 'dlq_failed', 'held', 'trashed')`,
			`SELECT queue, CASE letter WHEN 'stored' THEN 'dead_letter' WHEN 'refused' THEN 'dlq_failed' ELSE 'trashed' END, 0, count(*)
				FROM jobs WHERE letter <> '' GROUP BY 1, 2`,
			`SELECT queue, 'held', 0, count(*) FROM jobs WHERE held = 1 GROUP BY queue`)},
		{What: "counts of jobs without a handler by queue and type match the jobs", Query: differing("queue || ' ' || type", "queue, type",
			`SELECT queue, type, n, 0 FROM held`,
			`SELECT queue, type, 0, count(*) FROM jobs WHERE held = 1 GROUP BY queue, type`)},
		{What: "counts of open dead letters by queue, type and reason match the jobs", Query: differing(
			"queue || ' ' || type || ' ' || reason", "queue, type, reason",
			`SELECT queue, type, reason, n, 0 FROM reasons`,
			`SELECT `+queue+`, `+typ+`, reason, 0, count(*) FROM jobs WHERE letter = 'stored' GROUP BY 1, 2, 3`)},
		{What: "every failed attempt is counted as retried or as permanent", Query: `
			SELECT queue || ' ' || type AS id FROM counters WHERE failed <> requeued + failed_permanently`},
		// Jobs are removed some time after they completed, and stay counted: more may be
		// counted than found.
		{What: "the counters include every completed job", Query: `
			SELECT 'completed (counted ' || counted || ', found ' || there || ')' AS id FROM (
			SELECT (SELECT count(*) FROM jobs WHERE state = 'completed') AS there,
				(SELECT coalesce(sum(succeeded), 0) FROM counters) AS counted) AS totals WHERE there > counted`},
		{What: "the counters include what was counted in each minute", Query: `SELECT type AS id FROM (
			SELECT type, sum(succeeded) AS s, sum(failed) AS f, sum(replayed) AS r, sum(dlq_failed) AS d FROM minutes GROUP BY type) AS m
			WHERE NOT EXISTS (SELECT 1 FROM counters AS c WHERE c.type = m.type GROUP BY c.type
				HAVING sum(succeeded) >= s AND sum(failed) >= f AND sum(replayed) >= r AND sum(dlq_failed) >= d)`},
		{What: "counts are kept only for known queues and types", Query: fmt.Sprintf(`
			SELECT 'queues' AS id FROM labels WHERE kind = 'queue' AND source = ''
				GROUP BY kind HAVING count(*) > %d
			UNION ALL SELECT 'queue ' || queue FROM (SELECT queue FROM counters UNION SELECT queue FROM reasons WHERE n <> 0) AS counted
				WHERE queue NOT IN ('', 'other') AND queue NOT IN (SELECT name FROM labels WHERE kind = 'queue')
			UNION ALL SELECT 'type ' || type FROM (SELECT type FROM counters UNION SELECT type FROM minutes
				UNION SELECT type FROM reasons WHERE n <> 0) AS counted
				WHERE type <> 'other' AND type NOT IN (SELECT name FROM labels WHERE kind = 'type')`, maxQueueLabels)},
	}
}

// differing is the query for sums that are not what they count: the first part
// gives what is counted, the others what is there. The ids say how many of both.
func differing(id, key, counted string, there ...string) string {
	return `WITH counts (` + key + `, counted, there) AS (` + strings.Join(append([]string{counted}, there...), ` UNION ALL `) +
		`) SELECT ` + id + ` || ' (counted ' || sum(counted) || ', found ' || sum(there) || ')' AS id FROM counts
		GROUP BY ` + key + ` HAVING sum(counted) <> sum(there)`
}
