package sweep

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/retention"
	"redrive/internal/store/core"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// purgeStep is one step of a purge, which goes through the trash with the job first that was
// discarded first.
type purgeStep struct {
	at, seq int64 // of the last job that was looked at: when it was discarded, and its number
	looked  int   // how many jobs this step looked at
	removed parts
}

// purgeTrash removes the jobs that were discarded longer ago than the limit for the trash
// allows, a few in each transaction. Without such a limit it removes none.
func (p *pass) purgeTrash(ctx context.Context) error {
	var last purgeStep
	for p.limits.Trash > 0 {
		// The function has a copy of last: it may still run when Write has returned with the
		// error of its context.
		previous := last
		var err error

		last, err = db.Write(ctx, p.writer, pruneChunk, func(t *db.Tx) (purgeStep, error) { return p.purge(t, previous) })
		if err != nil {
			return fmt.Errorf("purge the trash: %w", err)
		}

		p.count(last.removed)

		if last.looked < pruneChunk { // that was the end of the trash
			break
		}
	}

	return nil
}

// purge looks at the jobs that follow the previous step, and removes those that nothing needs
// (see oldTrash). The audit log gets an entry for each: it says who had discarded the job,
// because what a person did to a job must stay known when the job is gone.
func (p *pass) purge(t *db.Tx, previous purgeStep) (purgeStep, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	// Find the jobs.
	step, old, err := oldTrash(t, p.now.Add(-p.limits.Trash), previous)
	if err != nil || len(old) == 0 {
		return step, err
	}

	jobs, err := p.policies.Jobs(t, query, db.Numbers(old))
	if err != nil {
		return step, err
	}

	// Read who discarded them before they are removed, because that is removed with them.
	discards, err := core.Trashed(t, jobs)
	if err != nil {
		return step, err
	}

	step.removed, err = p.remove(t, retention.Trash, jobs)
	if err != nil {
		return step, err
	}

	// Write the audit log.
	entries := make([]audit.Entry, len(jobs))
	for i, j := range jobs {
		entries[i] = audit.Entry{
			At: p.now, Actor: retentionActor(), Action: "job.purge", Subject: j.ID, Count: 1,
			Before: core.Describe(j), After: discardedBy(discards[j.Seq]),
		}
	}

	return step, p.audit.Log(t, entries...)
}

// oldTrash looks at the jobs that follow the previous step and were discarded before a time.
// It returns how far it came, and the numbers of those jobs that can be removed. It leaves a
// job that an operation under way will restore or replay, because a person asked for that, and
// one whose source has not yet carried out the discard: if it were removed, the next scan
// would bring the record back as a dead letter.
func oldTrash(t *db.Tx, before time.Time, previous purgeStep) (step purgeStep, old []int64, err error) {
	const query = `SELECT at, job_seq, EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
			WHERE i.job_seq = trash.job_seq AND i.state = 'pending' AND o.kind IN ('restore', 'replay')
				AND o.state IN ('running', 'paused')` + lookedUp + `)
			OR NOT ` + notAtSource + `
		FROM trash JOIN jobs ON jobs.seq = trash.job_seq WHERE at < $1 AND (at, job_seq) > ($2, $3) ORDER BY at, job_seq LIMIT $4 + 0`
	step = purgeStep{at: previous.at, seq: previous.seq}
	err = t.Query(query, func(rows *sql.Rows) error {
		var needed bool
		err := rows.Scan(&step.at, &step.seq, &needed)
		step.looked++

		if !needed {
			old = append(old, step.seq)
		}

		return err
	}, db.Micros(before), previous.at, previous.seq, pruneChunk)

	return step, old, err
}

// discardedBy says in words who discarded a job, and when.
func discardedBy(discard history.Trashed) string {
	words := "discarded by " + audit.Name(discard.By)
	if discard.Bulk != 0 {
		words += fmt.Sprintf(" with operation %d", discard.Bulk)
	}

	return words + " at " + discard.At.Format("2006-01-02 15:04:05 UTC")
}
