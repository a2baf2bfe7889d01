package groups

import "redrive/internal/store/db"

// Invariants are what holds after every commit.
func (*Book) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "the jobs of error groups are counted right", Query: `SELECT fingerprint AS id FROM groups LEFT JOIN (
				SELECT group_id, sum(letter IN ('stored', 'refused')) AS lie,
					sum(state IN ('scheduled', 'pending', 'available', 'active', 'retryable')) AS wait
				FROM jobs WHERE group_id <> 0 GROUP BY group_id) ON group_id = groups.id
			WHERE dead <> coalesce(lie, 0) OR retrying <> coalesce(wait, 0)`},
		{What: "jobs belong to error groups that are there", Query: `SELECT id FROM jobs WHERE group_id <> 0 AND group_id NOT IN (SELECT id FROM groups)`},
	}
}
