package store

import (
	"context"
	"fmt"

	"redrive/internal/store/accounts"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/groups"
	"redrive/internal/store/operations"
)

// Examine looks at a database without writing to it, also while a program has
// it open. What it finds damaged it says, and goes on; it returns an error that
// is job.ErrCorrupt when the database cannot be read as a whole.
func Examine(ctx context.Context, d db.Database) (found []db.Finding, err error) {
	err = d.Inspect(ctx, func(src db.Source, integrity []db.Finding) {
		found = integrity
		for _, i := range invariants() {
			found = append(found, i.Examine(src))
		}
		found = append(found, chain(src))
	})
	return found, err
}

// chain verifies the audit log.
func chain(src db.Source) db.Finding {
	n, err := accounts.Verify(src)
	f := db.Finding{What: fmt.Sprintf("the audit log is whole, %d entries", n)}
	if err != nil {
		f = db.Finding{What: "the audit log is whole", Problem: err.Error()}
	}
	return f
}

// invariants are those of the core, followed by those of the books.
func invariants() []db.Invariant {
	all := []db.Invariant{
		{What: "the list of a job repeats its state", Query: `SELECT id FROM jobs
			WHERE list_state <> CASE WHEN state IN ('available', 'active', 'completed') THEN '' ELSE state END`},
		{What: "only discarded jobs have letters", Query: `SELECT id FROM jobs WHERE letter <> '' AND state <> 'discarded'`},
		{What: "stored letters are open, and no others are", Query: `SELECT j.id AS id FROM jobs AS j
			LEFT JOIN dead_letters AS l ON l.job_seq = j.seq AND l.run = j.run WHERE (j.letter = 'stored') <> (coalesce(l.open, 0) = 1)`},
		{What: "letters are open for the current run only", Query: `SELECT job_seq AS id FROM dead_letters AS l WHERE open = 1
			AND NOT EXISTS (SELECT 1 FROM jobs WHERE seq = l.job_seq AND run = l.run)`},
		{What: "the trash knows where its jobs were", Query: `SELECT id FROM jobs AS j
			WHERE (letter = 'trashed') <> EXISTS (SELECT 1 FROM trash WHERE job_seq = j.seq)`},
		{What: "attempts are counted right", Query: `SELECT id FROM jobs AS j WHERE state <> 'completed' AND attempts <> (
			SELECT count(*) FROM attempts AS a WHERE a.job_seq = j.seq AND a.run = j.run AND a.number > 0)`},
		{What: "each run but the first was replayed once", Query: `SELECT id FROM jobs AS j
			WHERE run - 1 <> (SELECT count(*) FROM replays WHERE job_seq = j.seq)`},
		{What: "nothing is left of jobs that are gone", Query: `SELECT job_seq AS id FROM (SELECT job_seq FROM bodies
			UNION SELECT job_seq FROM attempts UNION SELECT job_seq FROM dead_letters UNION SELECT job_seq FROM replays
			UNION SELECT job_seq FROM trash UNION SELECT job_seq FROM earlier_runs UNION SELECT job_seq FROM search_backlog)
			WHERE job_seq NOT IN (SELECT seq FROM jobs)`},
	}
	for _, b := range []interface{ Invariants() []db.Invariant }{(*counters.Book)(nil), (*groups.Book)(nil), (*operations.Book)(nil)} {
		all = append(all, b.Invariants()...)
	}
	return all
}
