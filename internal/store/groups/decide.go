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

	return p.act(ctx, fingerprint, func(t *db.Tx, g *failures.Group) (audit.Entry, error) {
		e := audit.Entry{At: now, Actor: by, Action: action(to.State), Before: string(g.State), After: to.Words()}

		// "For n more failures" is stored as the count at which the group opens.
		patience := failures.Patience{}
		if to.State == failures.Ignored {
			patience = to.Patience
			if to.More > 0 {
				patience.Count = g.Failures + to.More
			}
		}

		at := db.Micros(now)
		until := db.Micros(patience.Until)
		g.State, g.StateAt, g.StateBy = to.State, db.FromMicros(at), db.Clean(by.Name)
		g.ReopenedAt, g.ReopenedBy = time.Time{}, ""
		g.Patience = patience
		g.Until = db.FromMicros(until)

		p.gathered.In(t).decided[g.Number] = to.State != failures.Open

		return e, t.ExecExactly(1, update, g.Number, string(to.State), at, by.Name, until, patience.Count, patience.Rate)
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

	return p.act(ctx, fingerprint, func(t *db.Tx, g *failures.Group) (audit.Entry, error) {
		e := audit.Entry{At: now, Actor: by, Action: "group.note", Before: g.Note, After: note}
		g.Note = db.Clean(note)

		return e, t.ExecExactly(1, update, g.Number, note)
	})
}

// act runs change, the act of a person on a group, in a transaction of its own, so that failures
// which came earlier are before the act. change gets the group as it is, makes of it what it
// becomes, and returns the entry for the audit log; act sets the subject and the count of the
// entry, and returns the group.
func (p *Projection) act(
	ctx context.Context, fingerprint string, change func(*db.Tx, *failures.Group) (audit.Entry, error),
) (failures.Group, error) {
	return db.WriteLarge(ctx, p.writer, db.Size{Rows: 1, Alone: true}, func(t *db.Tx) (failures.Group, error) {
		known, ok := p.group(p.gathered.In(t), fingerprint)
		if !ok {
			return failures.Group{}, fmt.Errorf("error group %s: %w", clip.Text(fingerprint, 64), job.ErrNotFound)
		}

		g, err := One(t, `id = $1`, known.id)
		if err != nil {
			return failures.Group{}, err
		}

		e, err := change(t, &g)
		if err != nil {
			return failures.Group{}, fmt.Errorf("change error group %s: %w", fingerprint, err)
		}

		t.Touch()

		// Write the audit log.
		e.Subject, e.Count = fingerprint, 1

		return g, p.log.Log(t, e)
	})
}

// ReopenDue opens the groups that are ignored until a time that has come, and returns how many
// these were. A group that is ignored until a number or a rate of failures opens with the
// failure that reaches it (see reopen).
func (p *Projection) ReopenDue(ctx context.Context, now time.Time) (int, error) {
	const due = `SELECT id FROM groups WHERE state = 'ignored' AND until > 0 AND until <= $1`
	const open = `UPDATE groups SET state = 'open', reopened_at = until, reopened_by = $2
		WHERE id IN (SELECT value FROM json_each($1))`

	return db.WriteLarge(ctx, p.writer, db.Size{Rows: 1, Alone: true}, func(t *db.Tx) (int, error) {
		opened, err := db.All(t, due, func(id *int64) []any { return []any{id} }, db.Micros(now))
		if err == nil && len(opened) > 0 {
			err = t.ExecExactly(len(opened), open, db.Numbers(opened), string(failures.ByDate))
		}

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
