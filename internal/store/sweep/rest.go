package sweep

import (
	"context"

	"redrive/internal/audit"
	"redrive/internal/retention"
	"redrive/internal/store/db"
)

// operationItems removes the items of operations that ended long ago.
func (p *pass) operationItems(ctx context.Context) (err error) {
	if age := p.limits.Ages[retention.DeadLetters]; age > 0 {
		p.done.Items, err = p.repeatedly(ctx, func(t *db.Tx) (int, error) {
			return p.operations.PruneItems(t, p.now.Add(-age), pruneChunk)
		})
	}

	return err
}

// emptyGroups removes error groups to which no job belongs. It comes after the jobs.
func (p *pass) emptyGroups(ctx context.Context) (err error) {
	if age := p.limits.Ages[retention.DeadLetters]; age > 0 {
		p.done.Groups, err = p.repeatedly(ctx, func(t *db.Tx) (int, error) { return p.groups.Prune(t, p.now.Add(-age), pruneChunk) })
	}

	if err != nil {
		return err
	}

	// Where there is hardly room for new groups, others go sooner.
	full, err := p.repeatedly(ctx, func(t *db.Tx) (int, error) { return p.groups.MakeRoom(t, p.now, pruneChunk) })
	p.done.Groups += full

	return err
}

// tombstones forgets jobs that were removed long ago.
func (p *pass) tombstones(ctx context.Context) error {
	const forget = `DELETE FROM removed_jobs WHERE id IN (SELECT id FROM removed_jobs WHERE until < $1 ORDER BY until LIMIT $2 + 0)`
	_, err := p.repeatedly(ctx, func(t *db.Tx) (int, error) {
		n, err := t.Exec(forget, db.Micros(p.now), pruneChunk)
		return int(n), err
	})

	return err
}

// writeAudit writes what was removed since the last entry into the audit log: this
// sweep, and an earlier one that was cut short.
func (p *pass) writeAudit(ctx context.Context) error {
	const query = `SELECT kind, queue, n - audited FROM removals WHERE n > audited`
	const update = `UPDATE removals SET audited = n WHERE n > audited`
	type row struct {
		retention.Part
		n int64
	}

	read := func(src db.Source) (retention.Pruned, error) {
		all, err := db.All(src, query, func(r *row) []any { return []any{(*string)(&r.Kind), &r.Queue, &r.n} })
		removed := retention.Pruned{Jobs: parts{}}
		for _, r := range all {
			removed.Jobs[r.Part] = r.n
		}

		return removed, err
	}

	// A sweep with nothing to tell does not write.
	if removed, err := read(p.reader.In(ctx)); err != nil || removed.Total() == 0 {
		return err
	}

	return p.writer.Do(ctx, 2, func(t *db.Tx) error {
		// Read again: the entry has to tell of just what the update marks as audited.
		removed, err := read(t)
		if err != nil {
			return err
		}

		entry := audit.Entry{At: p.now, Actor: retentionActor(), Action: "retention.sweep", Count: removed.Total(), After: removed.String()}

		return db.Steps(t, db.Any(update), func(t *db.Tx) error { return p.audit.Log(t, entry) })
	})
}

// retentionActor is who removes what is kept for its time only: no user has a
// name of two words.
func retentionActor() audit.Actor { return audit.Actor{Name: "the retention"} }

// Removals tells what retention removed since the beginning, by kind and queue.
func (s *Sweeper) Removals(ctx context.Context) ([]retention.Removal, error) {
	const query = `SELECT kind, queue, n, last_at FROM removals ORDER BY kind, queue`
	return db.All(s.reader.In(ctx), query, func(r *retention.Removal) []any {
		return []any{(*string)(&r.Kind), &r.Queue, &r.Jobs, db.Time(&r.Last)}
	})
}
