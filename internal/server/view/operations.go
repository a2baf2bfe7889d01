package view

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/operation"
)

// Operation is one operation on many jobs.
func (v *View) Operation(ctx context.Context, id int64) (operation.Operation, error) {
	return v.changed(v.store.Operations.Get(ctx, id))
}

// causes names the operations whose scope is an error group by its class.
func (v *View) causes(ctx context.Context, all []operation.Operation) error {
	groups, fingerprints := make([]string, len(all)), []string{}
	for i, o := range all {
		if f, err := filter.Parse(o.Filter, o.Until); err == nil && f.Group != "" {
			groups[i], fingerprints = f.Group, append(fingerprints, f.Group)
		}
	}

	if len(fingerprints) == 0 {
		return nil
	}

	classes, err := v.store.Groups.Classes(ctx, fingerprints)
	for i, fingerprint := range groups {
		all[i].Cause = v.Text(classes[fingerprint])
	}

	return err
}

// operations is what may be shown of operations.
func (v *View) operations(ctx context.Context, all []operation.Operation, err error) ([]operation.Operation, error) {
	if err != nil {
		return nil, err
	}

	err = v.causes(ctx, all)

	return each(all, v.operation), err
}

// OperationAndScope is an operation with the filter that made its scope, which is
// the zero one when the jobs were named.
func (v *View) OperationAndScope(ctx context.Context, id int64) (o operation.Operation, scope filter.Filter, err error) {
	o, err = v.store.Operations.Get(ctx, id)
	if err != nil {
		return o, scope, err
	}

	if o.Filter != "" {
		scope, err = filter.Parse(o.Filter, o.Until)
		if err != nil {
			err = fmt.Errorf("read the filter of operation %d: %w", id, err)
		}
	}

	one := []operation.Operation{o}
	err = cmp.Or(err, v.causes(ctx, one))

	return v.operation(one[0]), v.parts(scope), err
}

// Operations is a page of the list of operations, the newest first.
func (v *View) Operations(ctx context.Context, before int64, limit int) (operation.List, error) {
	list, err := v.store.Operations.List(ctx, before, limit)
	list.Operations, err = v.operations(ctx, list.Operations, err)
	return list, err
}

// OpenOperations lists the operations that have not ended.
func (v *View) OpenOperations(ctx context.Context) ([]operation.Operation, error) {
	all, err := v.store.Operations.Unfinished(ctx)
	return v.operations(ctx, all, err)
}

// GroupOperations lists the operations on the jobs of an error group.
func (v *View) GroupOperations(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	all, err := v.store.Operations.OfGroup(ctx, fingerprint)
	return v.operations(ctx, all, err)
}

// Items is a page of the items of an operation.
func (v *View) Items(ctx context.Context, id int64, f operation.ItemFilter, after int64, limit int) (operation.ItemList, error) {
	list, err := v.store.Operations.Items(ctx, id, f, after, limit)
	each(list.Items, v.item)
	return list, err
}

// Breakdown is what the scope of an operation is made of.
func (v *View) Breakdown(ctx context.Context, id int64) (operation.Breakdown, error) {
	b, err := v.store.Operations.Breakdown(ctx, id)
	each(b.Skipped, v.item)

	for i := range b.Causes {
		b.Causes[i].Class = v.Text(b.Causes[i].Class)
	}

	return b, err
}

// OperationLog is what the audit log says about an operation. Those who may not manage see
// no addresses, as in [View.Audit].
func (v *View) OperationLog(ctx context.Context, id int64, manages bool) ([]audit.Entry, error) {
	entries, err := v.store.Operations.Log(ctx, id)
	each(entries, v.entry)

	if !manages {
		each(entries, audit.Entry.WithoutAddresses)
	}

	return entries, err
}

// Progress is how far an operation is.
func (v *View) Progress(ctx context.Context, now time.Time, o operation.Operation) (operation.Progress, error) {
	return v.progress(v.store.Operations.Progress(ctx, now, o))
}

// progress is what may be shown of how an operation went.
func (v *View) progress(p operation.Progress, err error) (operation.Progress, error) {
	p.Back.Class = v.Text(p.Back.Class)
	p.Canary.Causes, err = v.canaryCauses(p.Canary.Causes, err)
	return p, err
}

// CanaryCauses tells by cause what became of the canary of an operation.
func (v *View) CanaryCauses(ctx context.Context, o operation.Operation) ([]operation.CauseCanary, error) {
	return v.canaryCauses(v.store.Operations.CanaryCauses(ctx, o))
}

func (v *View) canaryCauses(all []operation.CauseCanary, err error) ([]operation.CauseCanary, error) {
	for i := range all {
		all[i].Class = v.Text(all[i].Class)
	}
	return all, err
}

// SourceRuns counts the replayed runs of an operation that sources have.
func (v *View) SourceRuns(ctx context.Context, now time.Time, o operation.Operation) (operation.SourceRuns, error) {
	return v.store.Operations.SourceRuns(ctx, now, o)
}

// QuickProgress is Progress without what takes longer the more items there are.
func (v *View) QuickProgress(ctx context.Context, now time.Time, o operation.Operation) (operation.Progress, error) {
	return v.progress(v.store.Operations.CheapProgress(ctx, now, o))
}

func (v *View) changed(o operation.Operation, err error) (operation.Operation, error) {
	return v.operation(o), err
}

// NewOperation begins to collect the jobs of an operation.
func (v *View) NewOperation(ctx context.Context, now time.Time, r operation.Request, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.New(ctx, now, r, by))
}

// StartOperation lets an operation act on its jobs.
func (v *View) StartOperation(
	ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor,
) (operation.Operation, error) {
	return v.changed(v.store.Operations.Start(ctx, now, id, pace, by))
}

// SetRate gives an operation another pace.
func (v *View) SetRate(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.SetRate(ctx, now, id, pace, by))
}

// PauseOperation stops an operation until it is resumed.
func (v *View) PauseOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.Pause(ctx, now, id, by))
}

// ResumeOperation lets a paused operation go on.
func (v *View) ResumeOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.Resume(ctx, now, id, by))
}

// ResumePassed lets a paused operation go on with the causes that passed its canary.
func (v *View) ResumePassed(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.ResumePassed(ctx, now, id, by))
}

// AbortOperation ends an operation, which cannot be resumed.
func (v *View) AbortOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.Abort(ctx, now, id, by))
}
