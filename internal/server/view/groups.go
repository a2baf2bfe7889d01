package view

import (
	"context"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
)

// Groups returns a page of the error groups that a filter selects, beginning after a cursor.
func (v *View) Groups(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
	list, err := v.store.Groups.List(ctx, now, f, after, limit)
	each(list.Groups, v.group)
	return list, err
}

// RollUp sums up the groups that a filter selects by error class, and lists at most limit of the
// classes. A secret in the name of a class is hidden, so a filter by that name finds nothing.
func (v *View) RollUp(ctx context.Context, now time.Time, f failures.Filter, limit int) (failures.Classes, error) {
	all, err := v.store.Groups.RollUp(ctx, now, f, limit)
	for i := range all.Listed {
		all.Listed[i].Name = v.Text(all.Listed[i].Name)
	}

	return all, err
}

// TopGroups lists the open groups that failed most in the last day.
func (v *View) TopGroups(ctx context.Context, now time.Time, limit int) ([]failures.Group, error) {
	all, err := v.store.Groups.Top(ctx, now, limit)
	return each(all, v.group), err
}

// GroupsOf returns the groups of dead letters, by the numbers of the groups. Only the number,
// the fingerprint and the count of failures of each group are set.
func (v *View) GroupsOf(ctx context.Context, rows []filter.DeadLetterRow) (map[int64]failures.Group, error) {
	all, err := v.store.Groups.Of(ctx, rows)
	return eachOf(all, v.group), err
}

// GroupTallies counts the groups and their jobs by the state of the group.
func (v *View) GroupTallies(ctx context.Context) ([]failures.Tally, error) {
	return v.store.Groups.Tallies(ctx)
}

// Group returns everything about the group with a fingerprint, or job.ErrNotFound.
func (v *View) Group(ctx context.Context, now time.Time, fingerprint string) (failures.Detail, error) {
	d, err := v.store.Groups.Get(ctx, now, fingerprint)
	d.Group, d.Jobs = v.group(d.Group), each(d.Jobs, v.HideJob)
	d.Sample = failures.Sample{Job: v.HideJob(d.Sample.Job), Attempt: v.attempt(d.Sample.Attempt)}
	return d, err
}

// SetGroup resolves, ignores or opens a group, and returns it as it is then, without its queues
// and hours; or job.ErrNotFound.
func (v *View) SetGroup(
	ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor,
) (failures.Group, error) {
	g, err := v.store.Groups.Decide(ctx, now, fingerprint, to, by)
	return v.group(g), err
}

// NoteGroup writes the note of a group, and returns the group like SetGroup. An empty note
// removes it.
func (v *View) NoteGroup(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	g, err := v.store.Groups.Note(ctx, now, fingerprint, note, by)
	return v.group(g), err
}
