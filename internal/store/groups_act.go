package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/job"
)

// SetGroup writes down what a person decides about an error group: that it is
// resolved, ignored or open. It returns the group as it is then, without its
// queues and hours, or job.ErrNotFound. What was decided before is forgotten.
func (s *Store) SetGroup(ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor) (failures.Group, error) {
	const update = `UPDATE groups SET state = $2, state_at = $3, state_by = $4, reopened_at = 0, reopened_by = '',
		until = $5, until_count = $6, until_rate = $7 WHERE id = $1`
	return write(ctx, s.writer, 1, func(t *tx) (failures.Group, error) {
		g, before, err := t.look(fingerprint)
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
		n, err := t.exec(update, g.id, string(to.State), micros(now), by.Name, micros(patience.Until), patience.Count, patience.Rate)
		if err := expect(1, n, err); err != nil {
			return failures.Group{}, fmt.Errorf("set error group %s: %w", fingerprint, err)
		}
		t.touched = true
		g.state, g.patience = to.State, patience
		t.delta.group(g.id).opened = "" // an earlier failure in this transaction
		err = t.audit(audit.Entry{
			At: now, Actor: by, Action: standingAct(to.State), Subject: fingerprint, Count: 1,
			Before: string(before.State), After: to.Words(),
		})
		if err != nil {
			return failures.Group{}, err
		}
		return oneGroup(t, `id = $1`, g.id)
	})
}

// standingAct is the action of who decides so.
func standingAct(to failures.State) string {
	switch to {
	case failures.Resolved:
		return "group.resolve"
	case failures.Ignored:
		return "group.ignore"
	}
	return "group.reopen"
}

// NoteGroup writes a note on an error group, or removes it with an empty one.
func (s *Store) NoteGroup(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	const update = `UPDATE groups SET note = $2 WHERE id = $1`
	return write(ctx, s.writer, 1, func(t *tx) (failures.Group, error) {
		g, before, err := t.look(fingerprint)
		if err != nil {
			return failures.Group{}, err
		}
		n, err := t.exec(update, g.id, note)
		if err := expect(1, n, err); err != nil {
			return failures.Group{}, fmt.Errorf("note on error group %s: %w", fingerprint, err)
		}
		t.touched = true
		err = t.audit(audit.Entry{
			At: now, Actor: by, Action: "group.note", Subject: fingerprint, Count: 1, Before: before.Note, After: note,
		})
		if err != nil {
			return failures.Group{}, err
		}
		return oneGroup(t, `id = $1`, g.id)
	})
}

// look returns a group to be changed, and as it is written before that.
func (t *tx) look(fingerprint string) (*group, failures.Group, error) {
	g := t.group(fingerprint)
	if g == nil {
		return nil, failures.Group{}, fmt.Errorf("error group %s: %w", clip.Text(fingerprint, 64), job.ErrNotFound)
	}
	before, err := oneGroup(t, `id = $1`, g.id)
	return g, before, err
}

// WakeGroups opens the groups that were ignored until now or earlier, and
// returns how many. Those that are ignored until something else open with the
// failure that makes it true.
func (s *Store) WakeGroups(ctx context.Context, now time.Time) (int, error) {
	return write(ctx, s.writer, 1, func(t *tx) (int, error) {
		woken := 0
		for fingerprint, g := range t.rollup.groups {
			if mine, changed := t.groups[fingerprint]; changed {
				g = mine
			}
			if g == nil { // removed
				continue
			}
			until := g.patience.Until
			if g.state != failures.Ignored || until.IsZero() || until.After(now) {
				continue
			}
			mine := t.group(fingerprint)
			mine.state = failures.Open
			d := t.delta.group(mine.id)
			d.opened, d.openedAt = failures.ByDate, micros(until)
			woken++
		}
		t.touched = t.touched || woken > 0
		return woken, nil
	})
}
