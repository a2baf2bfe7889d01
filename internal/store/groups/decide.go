package groups

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/store/db"
)

// Decide makes an error group resolved, ignored or open, as a person decided, in place of what
// was decided before. It writes the audit log, and returns the group as it is then, without its
// queues and hours. If there is no such group, the error is job.ErrNotFound.
func (p *Projection) Decide(
	ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor,
) (failures.Group, error) {
	const update = `UPDATE groups SET state = $2, state_at = $3, state_by = $4, reopened_at = 0, reopened_by = '',
		until = $5, until_count = $6, until_rate = $7 WHERE id = $1`

	return p.act(ctx, fingerprint, func(t *db.Tx, before failures.Group) (audit.Entry, error) {
		// "For n more failures" is stored as the count at which the group opens.
		patience := failures.Patience{}
		if to.State == failures.Ignored {
			patience = to.Patience
			if to.More > 0 {
				patience.Count = before.Failures + to.More
			}
		}

		p.gathered.In(t).decided[before.Number] = to.State != failures.Open
		e := audit.Entry{At: now, Actor: by, Action: action(to.State), Before: string(before.State), After: to.Words()}

		return e, t.ExecExactly(1, update, before.Number, string(to.State), db.Micros(now), by.Name,
			db.Micros(patience.Until), patience.Count, patience.Rate)
	})
}

// action returns the name that a decision has in the audit log. The names must not change,
// because entries are stored with them and filters of the log use them.
func action(to failures.State) string {
	switch to {
	case failures.Resolved:
		return "group.resolve"
	case failures.Ignored:
		return "group.ignore"
	}

	return "group.reopen"
}

// Note writes the note of an error group in place of the one that it had. An empty note removes
// it. Like Decide, it writes the audit log, and returns the group or job.ErrNotFound.
func (p *Projection) Note(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	const update = `UPDATE groups SET note = $2 WHERE id = $1`

	return p.act(ctx, fingerprint, func(t *db.Tx, before failures.Group) (audit.Entry, error) {
		e := audit.Entry{At: now, Actor: by, Action: "group.note", Before: before.Note, After: note}
		return e, t.ExecExactly(1, update, before.Number, note)
	})
}

// act runs change, the act of a person on a group, in a transaction, and returns the group as it
// is then. change gets the group as it was before, and returns the entry for the audit log; act
// sets the subject and the count of the entry.
func (p *Projection) act(
	ctx context.Context, fingerprint string, change func(*db.Tx, failures.Group) (audit.Entry, error),
) (failures.Group, error) {
	return db.Write(ctx, p.writer, 1, func(t *db.Tx) (failures.Group, error) {
		g, known := p.group(p.gathered.In(t), fingerprint)
		if !known {
			return failures.Group{}, fmt.Errorf("error group %s: %w", clip.Text(fingerprint, 64), job.ErrNotFound)
		}

		// Failures that came earlier in this transaction count as before the act.
		if err := p.Flush(t); err != nil {
			return failures.Group{}, err
		}

		before, err := One(t, `id = $1`, g.id)
		if err != nil {
			return failures.Group{}, err
		}

		e, err := change(t, before)
		if err != nil {
			return failures.Group{}, fmt.Errorf("change error group %s: %w", fingerprint, err)
		}

		t.Touch()

		// Write the audit log.
		e.Subject, e.Count = fingerprint, 1
		if err := p.log.Log(t, e); err != nil {
			return failures.Group{}, err
		}

		return One(t, `id = $1`, g.id)
	})
}

// ReopenDue opens the groups that are ignored until a time that has come, and returns how many
// these were. A group that is ignored until a number or a rate of failures opens with the
// failure that reaches it (see reopen).
func (p *Projection) ReopenDue(ctx context.Context, now time.Time) (int, error) {
	const open = `UPDATE groups SET state = 'open', reopened_at = until, reopened_by = $2
		WHERE state = 'ignored' AND until > 0 AND until <= $1 RETURNING id`

	return db.Write(ctx, p.writer, 1, func(t *db.Tx) (int, error) {
		opened, err := db.All(t, open, func(id *int64) []any { return []any{id} }, db.Micros(now), string(failures.ByDate))
		if err != nil {
			return 0, fmt.Errorf("open the error groups that were ignored until now: %w", err)
		}

		for _, id := range opened {
			p.gathered.In(t).decided[id] = false
		}

		if len(opened) > 0 {
			t.Touch()
		}

		return len(opened), nil
	})
}
