package server

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/operation"
)

// filter hides what stands in the texts of a filter, as people wrote it: of one of
// jobs in each of its parts, so that the rest can be read.
func (r reader) filter(text string) string {
	f, err := filter.Parse(text, time.Time{})
	if err != nil || f.String() != text {
		return r.redactor.Text(text)
	}
	return r.parts(f).String()
}

// parts hides what stands in the texts of a filter of jobs. They may get longer
// than a filter can be, so the result is to be shown and not to be parsed.
func (r reader) parts(f filter.Filter) filter.Filter {
	for _, part := range []*string{&f.Error, &f.Payload, &f.Meta, &f.Text} {
		*part = r.redactor.Text(*part)
	}
	return f
}

// scoped is Operation, with the filter that made its scope; the zero one when the
// jobs were named.
func (r reader) scoped(ctx context.Context, id int64) (o operation.Operation, scope filter.Filter, err error) {
	if o, err = r.Store.Operation(ctx, id); err != nil {
		return o, scope, err
	}
	if o.Filter != "" {
		if scope, err = filter.Parse(o.Filter, o.Until); err != nil {
			err = fmt.Errorf("read the filter of operation %d: %w", id, err)
		}
	}
	o, err = r.operation(o, err)
	return o, r.parts(scope), err
}

func (r reader) operations(all []operation.Operation) {
	for i := range all {
		all[i].Filter, all[i].Why = r.filter(all[i].Filter), r.redactor.Text(all[i].Why)
	}
}

func (r reader) operation(o operation.Operation, err error) (operation.Operation, error) {
	one := []operation.Operation{o}
	r.operations(one)
	return one[0], err
}

// Operation is Store.Operation.
func (r reader) Operation(ctx context.Context, id int64) (operation.Operation, error) {
	return r.operation(r.Store.Operation(ctx, id))
}

// Operations is Store.Operations.
func (r reader) Operations(ctx context.Context, before int64, limit int) (operation.List, error) {
	list, err := r.Store.Operations(ctx, before, limit)
	r.operations(list.Operations)
	return list, err
}

// OpenOperations is Store.OpenOperations.
func (r reader) OpenOperations(ctx context.Context) ([]operation.Operation, error) {
	all, err := r.Store.OpenOperations(ctx)
	r.operations(all)
	return all, err
}

// GroupOperations is Store.GroupOperations.
func (r reader) GroupOperations(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	all, err := r.Store.GroupOperations(ctx, fingerprint)
	r.operations(all)
	return all, err
}

// NewOperation is Store.NewOperation.
func (r reader) NewOperation(ctx context.Context, now time.Time, n operation.Request, by audit.Actor) (operation.Operation, error) {
	return r.operation(r.Store.NewOperation(ctx, now, n, by))
}

// StartOperation is Store.StartOperation.
func (r reader) StartOperation(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	return r.operation(r.Store.StartOperation(ctx, now, id, pace, by))
}

// PauseOperation is Store.PauseOperation.
func (r reader) PauseOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return r.operation(r.Store.PauseOperation(ctx, now, id, by))
}

// ResumeOperation is Store.ResumeOperation.
func (r reader) ResumeOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return r.operation(r.Store.ResumeOperation(ctx, now, id, by))
}

// AbortOperation is Store.AbortOperation.
func (r reader) AbortOperation(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error) {
	return r.operation(r.Store.AbortOperation(ctx, now, id, by))
}

// SetRate is Store.SetRate.
func (r reader) SetRate(ctx context.Context, now time.Time, id int64, pace operation.Pace, by audit.Actor) (operation.Operation, error) {
	return r.operation(r.Store.SetRate(ctx, now, id, pace, by))
}
