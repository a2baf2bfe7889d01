package groups

import (
	"redrive/internal/store/db"
)

// Invariants returns the queries that find rows which break a rule of this projection. After
// every commit, each of them finds none.
func (*Projection) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "counts of error groups match their jobs", Query: `SELECT fingerprint AS id FROM groups LEFT JOIN (
				SELECT group_id, count(*) FILTER (WHERE letter = 'stored') AS dead_letters,
					count(*) FILTER (WHERE letter = 'refused') AS refused_letters,
					count(*) FILTER (WHERE state IN ('scheduled', 'returning', 'returned', 'available', 'active', 'retryable')) AS waiting
				FROM jobs WHERE group_id <> 0 GROUP BY group_id) AS found ON found.group_id = groups.id
			WHERE dead <> coalesce(dead_letters, 0) OR refused <> coalesce(refused_letters, 0) OR retrying <> coalesce(waiting, 0)`},
		{What: "the error group of every job exists",
			Query: `SELECT id FROM jobs AS j WHERE group_id <> 0 AND NOT EXISTS (SELECT 1 FROM groups WHERE id = j.group_id)`},
	}
}
