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

// purged is how far a purge has come in the trash, the oldest first.
type purged struct {
	at, seq int64 // of the job that was looked at last
	looked  int
	jobs    parts // that were removed
}

// purgeTrash removes the jobs in the trash that came there too long ago. Each
// transaction looks at a few.
func (p *pass) purgeTrash(ctx context.Context) error {
	var last purged
	for p.limits.Trash > 0 {
		from := last // the write may still run when its caller no longer waits for it
		var err error

		last, err = db.Write(ctx, p.writer, pruneChunk, func(t *db.Tx) (purged, error) { return p.purge(t, from) })
		if err != nil {
			return fmt.Errorf("purge the trash: %w", err)
		}

		if p.count(last.jobs); last.looked < pruneChunk {
			break
		}
	}

	return nil
}

// purge removes the next jobs, but for those that an operation is about to bring
// back or to replay: what a person asked for comes first. Each has an entry in the
// audit log that says so, and who had discarded it: what a person did to a job
// stays known when the job is gone.
func (p *pass) purge(t *db.Tx, last purged) (purged, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE seq IN (SELECT value FROM json_each($1))`

	// next is how far the search came, old are those of the jobs it passed that are removed.
	next, old, err := oldTrash(t, p.now.Add(-p.limits.Trash), last)
	if err != nil || len(old) == 0 {
		return next, err
	}

	jobs, err := p.policies.Jobs(t, query, db.Numbers(old))
	if err != nil {
		return next, err
	}

	// Who discarded a job is deleted with the job, and read before.
	was, err := core.Trashed(t, jobs)
	if err != nil {
		return next, err
	}

	next.jobs, err = p.remove(t, retention.Trash, jobs)
	if err != nil {
		return next, err
	}

	entries := make([]audit.Entry, len(jobs))
	for i, j := range jobs {
		entries[i] = audit.Entry{
			At: p.now, Actor: retentionActor(), Action: "job.purge", Subject: j.ID, Count: 1,
			Before: core.Describe(j), After: discardedBy(was[j.Seq]),
		}
	}

	return next, p.audit.Log(t, entries...)
}

// oldTrash looks at the jobs that came into the trash before a time, after the last ones
// it looked at, and names those that are no longer needed. A discard that its source has
// not answered is still needed: without it, the record would come back as a dead letter.
func oldTrash(t *db.Tx, before time.Time, last purged) (next purged, old []int64, err error) {
	const query = `SELECT at, job_seq, EXISTS (SELECT 1 FROM operation_items AS i JOIN operations AS o ON o.id = i.operation_id
			WHERE i.job_seq = trash.job_seq AND i.state = 'pending' AND o.kind IN ('restore', 'replay') AND o.state IN ('running', 'paused'))
			OR NOT ` + notAtSource + `
		FROM trash JOIN jobs ON jobs.seq = trash.job_seq WHERE at < $1 AND (at, job_seq) > ($2, $3) ORDER BY at, job_seq LIMIT $4 + 0`
	next = purged{at: last.at, seq: last.seq}
	err = t.Query(query, func(rows *sql.Rows) error {
		var held bool
		err := rows.Scan(&next.at, &next.seq, &held)
		if next.looked++; !held {
			old = append(old, next.seq)
		}

		return err
	}, db.Micros(before), last.at, last.seq, pruneChunk)

	return next, old, err
}

// discardedBy says who put a job into the trash, and when.
func discardedBy(was history.Trashed) string {
	words := "discarded by " + audit.Name(was.By)
	if was.Bulk != 0 {
		words += fmt.Sprintf(" with operation %d", was.Bulk)
	}

	return words + " at " + was.At.Format("2006-01-02 15:04:05 UTC")
}
