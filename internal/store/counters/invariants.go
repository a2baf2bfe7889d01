package counters

import (
	"fmt"
	"strings"

	"redrive/internal/store/db"
)

// Invariants returns the queries that find counts which differ from what counting the rows would
// give. After every commit, each of them finds none.
func (*Projection) Invariants() []db.Invariant {
	// The labels of a job: its queue and its type, or "other" where these have none of their own.
	const (
		queue = `CASE WHEN queue IN (SELECT name FROM labels WHERE kind = 'queue') THEN queue ELSE 'other' END`
		typ   = `CASE WHEN EXISTS (SELECT 1 FROM labels AS l WHERE l.kind = 'type' AND l.source = jobs.source AND l.name = type)
			THEN type ELSE 'other' END`
	)

	return []db.Invariant{
		// The table depths has counts of two kinds: of the states, one of which each job has, and
		// of four statuses that are part of a state, so that their jobs are counted twice.
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
		// Completed jobs are removed in time and stay counted, so there can be more than are found.
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

// differing returns a query for the keys whose count is not what is there. The query counted
// returns the columns of the key, the count, and 0; each of the queries there returns the
// columns of the key, 0, and the number of rows that are there. The id of a result is the
// expression id with both numbers.
func differing(id, key, counted string, there ...string) string {
	return `WITH counts (` + key + `, counted, there) AS (` + strings.Join(append([]string{counted}, there...), ` UNION ALL `) +
		`) SELECT ` + id + ` || ' (counted ' || sum(counted) || ', found ' || sum(there) || ')' AS id FROM counts
		GROUP BY ` + key + ` HAVING sum(counted) <> sum(there)`
}
