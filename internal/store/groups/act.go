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

// Decide writes down what a person decides about an error group: that it is
// resolved, ignored or open. It returns the group as it is then, without its
// queues and hours, or job.ErrNotFound. What was decided before is forgotten.
func (b *Book) Decide(ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor) (failures.Group, error) {
	const update = `UPDATE groups SET state = $2, state_at = $3, state_by = $4, reopened_at = 0, reopened_by = '',
		until = $5, until_count = $6, until_rate = $7 WHERE id = $1`
	return db.Write(ctx, b.writer, 1, func(t *db.Tx) (failures.Group, error) {
		g, before, err := b.look(t, fingerprint)
		if err != nil {
			return failures.Group{}, err
		}
		patience := failures.Patience{}
		if to.State == failures.Ignored {
			patience = to.Patience
			if to.More > 0 {
				patience.Count = g.failures + to.More
			}
		}
		err = t.ExecExactly(1, update, g.id, string(to.State), db.Micros(now), by.Name, db.Micros(patience.Until), patience.Count, patience.Rate)
		if err != nil {
			return failures.Group{}, fmt.Errorf("set error group %s: %w", fingerprint, err)
		}
		t.Touch()
		g.state, g.patience = to.State, patience
		b.sums.of(g.id).opened = "" // an earlier failure in this transaction
		err = b.log.Log(t, audit.Entry{
			At: now, Actor: by, Action: action(to.State), Subject: fingerprint, Count: 1,
			Before: string(before.State), After: to.Words(),
		})
		if err != nil {
			return failures.Group{}, err
		}
		return One(t, `id = $1`, g.id)
	})
}

// action is what the audit log calls a decision.
func action(to failures.State) string {
	switch to {
	case failures.Resolved:
		return "group.resolve"
	case failures.Ignored:
		return "group.ignore"
	}
	return "group.reopen"
}

// Note writes a note on an error group, or removes it with an empty one.
func (b *Book) Note(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	const update = `UPDATE groups SET note = $2 WHERE id = $1`
	return db.Write(ctx, b.writer, 1, func(t *db.Tx) (failures.Group, error) {
		g, before, err := b.look(t, fingerprint)
		if err != nil {
			return failures.Group{}, err
		}
		if err := t.ExecExactly(1, update, g.id, note); err != nil {
			return failures.Group{}, fmt.Errorf("note on error group %s: %w", fingerprint, err)
		}
		t.Touch()
		err = b.log.Log(t, audit.Entry{
			At: now, Actor: by, Action: "group.note", Subject: fingerprint, Count: 1, Before: before.Note, After: note,
		})
		if err != nil {
			return failures.Group{}, err
		}
		return One(t, `id = $1`, g.id)
	})
}

// look returns a group to be changed, and as it is written before that.
func (b *Book) look(t *db.Tx, fingerprint string) (*group, failures.Group, error) {
	g := b.group(fingerprint)
	if g == nil {
		return nil, failures.Group{}, fmt.Errorf("error group %s: %w", clip.Text(fingerprint, 64), job.ErrNotFound)
	}
	before, err := One(t, `id = $1`, g.id)
	return g, before, err
}

// ReopenDue opens the groups that were ignored until now or earlier, and returns
// how many. Those that are ignored until something else open with the failure
// that makes it true.
func (b *Book) ReopenDue(ctx context.Context, now time.Time) (int, error) {
	return db.Write(ctx, b.writer, 1, func(t *db.Tx) (int, error) {
		opened := 0
		for fingerprint, g := range b.snapshot() {
			if g == nil { // removed
				continue
			}
			until := g.patience.Until
			if g.state != failures.Ignored || until.IsZero() || until.After(now) {
				continue
			}
			b.group(fingerprint).state = failures.Open
			b.sums.reopen(g.id, failures.ByDate, db.Micros(until))
			opened++
		}
		if opened > 0 {
			t.Touch()
		}
		return opened, nil
	})
}
