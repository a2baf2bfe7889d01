package view

import (
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

// OperationAndScope is an operation with the filter that made its scope, which is
// the zero one when the jobs were named.
func (v *View) OperationAndScope(ctx context.Context, id int64) (o operation.Operation, scope filter.Filter, err error) {
	if o, err = v.store.Operations.Get(ctx, id); err != nil {
		return o, scope, err
	}
	if o.Filter != "" {
		if scope, err = filter.Parse(o.Filter, o.Until); err != nil {
			err = fmt.Errorf("read the filter of operation %d: %w", id, err)
		}
	}
	return v.operation(o), v.parts(scope), err
}

// Operations is a page of the list of operations, the newest first.
func (v *View) Operations(ctx context.Context, before int64, limit int) (operation.List, error) {
	list, err := v.store.Operations.List(ctx, before, limit)
	each(list.Operations, v.operation)
	return list, err
}

// OpenOperations lists the operations that have not ended.
func (v *View) OpenOperations(ctx context.Context) ([]operation.Operation, error) {
	all, err := v.store.Operations.Unfinished(ctx)
	return each(all, v.operation), err
}

// GroupOperations lists the operations on the jobs of an error group.
func (v *View) GroupOperations(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	all, err := v.store.Operations.OfGroup(ctx, fingerprint)
	return each(all, v.operation), err
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
	return b, err
}

// OperationLog is what the audit log says about an operation.
func (v *View) OperationLog(ctx context.Context, id int64) ([]audit.Entry, error) {
	entries, err := v.store.Operations.Log(ctx, id)
	return each(entries, v.entry), err
}

// Progress is how far an operation is.
func (v *View) Progress(ctx context.Context, now time.Time, o operation.Operation) (operation.Progress, error) {
	return v.store.Operations.Progress(ctx, now, o)
}

// QuickProgress is Progress without what takes longer the more items there are.
func (v *View) QuickProgress(ctx context.Context, o operation.Operation) (operation.Progress, error) {
	return v.store.Operations.CheapProgress(ctx, o)
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

// AbortOperation ends an operation for good.
func (v *View) AbortOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return v.changed(v.store.Operations.Abort(ctx, now, id, by))
}
