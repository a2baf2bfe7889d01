package counters

import "redrive/internal/store/db"

// Invariants are what holds after every commit.
func (*Book) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "jobs by state are counted right", Query: `SELECT queue || ' ' || status AS id FROM (
			SELECT queue, status, n FROM depths WHERE status NOT IN ('dead_letter', 'dlq_failed', 'held', 'trashed')
			UNION ALL SELECT queue, state, -count(*) FROM jobs GROUP BY queue, state) GROUP BY queue, status HAVING sum(n) <> 0`},
		{What: "jobs by view are counted right", Query: `SELECT queue || ' ' || status AS id FROM (
			SELECT queue, status, n FROM depths WHERE status IN ('dead_letter', 'dlq_failed', 'held', 'trashed')
			UNION ALL SELECT queue, CASE letter WHEN 'stored' THEN 'dead_letter' WHEN 'refused' THEN 'dlq_failed' ELSE 'trashed' END, -count(*)
				FROM jobs WHERE letter <> '' GROUP BY 1, 2
			UNION ALL SELECT queue, 'held', -count(*) FROM jobs WHERE held = 1 GROUP BY queue) GROUP BY queue, status HAVING sum(n) <> 0`},
		{What: "what is counted adds up", Query: `SELECT queue || ' ' || type AS id FROM counters WHERE failed <> requeued + failed_permanently`},
		{What: "open dead letters are counted right", Query: `SELECT reason AS id FROM (SELECT reason, n FROM reasons
			UNION ALL SELECT reason, -count(*) FROM dead_letters WHERE open = 1 GROUP BY reason) GROUP BY reason HAVING sum(n) <> 0`},
	}
}
