package view

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// JobBefore is everything about a job, with the newest attempts before an execution.
func (v *View) JobBefore(ctx context.Context, id string, execution int) (history.Detail, error) {
	d, err := v.store.JobBefore(ctx, id, execution)
	return v.detail(d), err
}

// Jobs is a page of a list of jobs, without their payloads.
func (v *View) Jobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	list, err := v.store.Jobs(ctx, f, after, limit)
	each(list.Jobs, v.HideJob)
	return list, err
}

// WholeJobs is a page of a list of jobs with their payloads.
func (v *View) WholeJobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	list, err := v.store.WholeJobs(ctx, f, after, limit)
	each(list.Jobs, v.HideJob)
	return list, err
}

// Recent lists the newest jobs of a type.
func (v *View) Recent(ctx context.Context, typ string, limit int) ([]job.Job, error) {
	jobs, err := v.store.Recent(ctx, typ, limit)
	return each(jobs, v.HideJob), err
}

// DeadLetters is a page of the list of open dead letters.
func (v *View) DeadLetters(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.DeadLetterList, error) {
	list, err := v.store.DeadLetters(ctx, f, after, limit)
	each(list.DeadLetters, v.letterRow)
	return list, err
}

// Problems says of jobs why their dead letters were refused, by their numbers.
func (v *View) Problems(ctx context.Context, jobs []job.Job) (map[int64]string, error) {
	all, err := v.store.Problems(ctx, jobs)
	return eachOf(all, v.Text), err
}

// Trashed says of jobs in the trash when they came there and where they were.
func (v *View) Trashed(ctx context.Context, jobs []job.Job) (map[int64]history.Trashed, error) {
	return v.store.Trashed(ctx, jobs)
}

// Changes says in which state jobs are now.
func (v *View) Changes(ctx context.Context, ids []string) ([]job.Change, error) {
	return v.store.Changes(ctx, ids)
}

// Count counts the jobs of a filter up to a limit.
func (v *View) Count(ctx context.Context, f filter.Filter, limit int) (n int, more bool, err error) {
	return v.store.Count(ctx, f, limit)
}

// Hits says of jobs of a list where they have what the filter looks for, by the
// numbers of the jobs; nothing of a filter that looks for no text.
func (v *View) Hits(ctx context.Context, f filter.Filter, jobs []job.Job) (map[int64]filter.Hit, error) {
	if !f.Searches() || len(jobs) == 0 {
		return nil, nil
	}

	for _, text := range []*string{&f.Error, &f.Payload, &f.Meta, &f.Text} {
		*text = db.Unescape(*text)
	}

	found, err := v.store.Searched(ctx, jobs)
	hits := make(map[int64]filter.Hit, len(found))
	for _, j := range found {
		j = v.HideJob(j)
		hits[j.Seq] = filter.Hit{Error: j.Error, Excerpts: f.Excerpts(filter.Texts(db.DocumentOf(j)))}
	}

	return hits, err
}

// Known is the tally of a filter as far as it is counted in advance; complete when it
// has a total.
func (v *View) Known(ctx context.Context, f filter.Filter) (t filter.Tally, complete bool, err error) {
	return v.store.Counters.Known(ctx, f)
}

// Tally counts the jobs of a filter by their kinds, up to a limit.
func (v *View) Tally(ctx context.Context, f filter.Filter, limit int) (filter.Tally, error) {
	return v.store.Tally(ctx, f, limit)
}

// Facets is what a list can be narrowed to.
func (v *View) Facets(ctx context.Context, f filter.Filter) (filter.Facets, error) {
	return v.store.Counters.Facets(ctx, f)
}

// SearchLag counts the jobs whose newest failure cannot be searched yet.
func (v *View) SearchLag(ctx context.Context) (int, error) { return v.store.Search.Lag(ctx) }

// Reindexing reports whether the index of texts is being rebuilt.
func (v *View) Reindexing() bool { return v.store.Search.Reindexing() }

// Enqueue writes new jobs.
func (v *View) Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error) {
	done, err := v.store.Enqueue(ctx, now, jobs)
	for i := range done {
		done[i].Job = v.HideJob(done[i].Job)
	}

	return done, err
}

// acted redacts what an act returns, and the job in its error when another caller
// acted first.
func (v *View) acted(j job.Job, err error) (job.Job, error) { return v.HideJob(j), v.HideConflict(err) }

// Replay starts the next run of a job.
func (v *View) Replay(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.Replay(ctx, now, id, run, by))
}

// ReplayEdited starts the next run of a job with changes.
func (v *View) ReplayEdited(ctx context.Context, now time.Time, id string, run int, edit job.Edit, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.ReplayWith(ctx, now, id, run, edit, by))
}

// Discard moves a job into the trash.
func (v *View) Discard(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.Discard(ctx, now, id, run, by))
}

// Restore takes a job out of the trash.
func (v *View) Restore(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.Restore(ctx, now, id, run, by))
}

// Cancel ends a job that has not run yet.
func (v *View) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.Cancel(ctx, now, id, run, by))
}

// Reschedule moves a job that waits to another time.
func (v *View) Reschedule(ctx context.Context, now time.Time, id string, run int, at time.Time, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.Reschedule(ctx, now, id, run, at, by))
}

// Resent writes down what became of a dead letter that was sent once more.
func (v *View) Resent(ctx context.Context, now time.Time, id string, run int, d job.Delivery, by audit.Actor) (job.Job, error) {
	return v.acted(v.store.Forwarded(ctx, now, id, run, d, by))
}

// Groups is a page of the list of error groups.
func (v *View) Groups(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
	list, err := v.store.Groups.List(ctx, now, f, after, limit)
	each(list.Groups, v.group)
	return list, err
}

// RollUp sums up groups by their error classes. The name of a class that holds a secret is as
// it may be shown: no filter finds the class by it.
func (v *View) RollUp(ctx context.Context, now time.Time, f failures.Filter, limit int) (failures.Classes, error) {
	all, err := v.store.Groups.RollUp(ctx, now, f, limit)
	for i := range all.Listed {
		all.Listed[i].Name = v.Text(all.Listed[i].Name)
	}

	return all, err
}

// TopGroups lists the open groups that fail most.
func (v *View) TopGroups(ctx context.Context, now time.Time, limit int) ([]failures.Group, error) {
	all, err := v.store.Groups.Top(ctx, now, limit)
	return each(all, v.group), err
}

// GroupsOf finds the groups of dead letters, by the numbers of their jobs.
func (v *View) GroupsOf(ctx context.Context, letters []filter.DeadLetterRow) (map[int64]failures.Group, error) {
	all, err := v.store.Groups.Of(ctx, letters)
	return eachOf(all, v.group), err
}

// GroupTallies counts the groups by state.
func (v *View) GroupTallies(ctx context.Context) ([]failures.Tally, error) {
	return v.store.Groups.Tallies(ctx)
}

// Group is everything about a group.
func (v *View) Group(ctx context.Context, now time.Time, fingerprint string) (failures.Detail, error) {
	d, err := v.store.Groups.Get(ctx, now, fingerprint)
	d.Group, d.Jobs = v.group(d.Group), each(d.Jobs, v.HideJob)
	d.Sample = failures.Sample{Job: v.HideJob(d.Sample.Job), Attempt: v.attempt(d.Sample.Attempt)}
	return d, err
}

// SetGroup resolves, ignores or opens a group.
func (v *View) SetGroup(
	ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor,
) (failures.Group, error) {
	g, err := v.store.Groups.Decide(ctx, now, fingerprint, to, by)
	return v.group(g), err
}

// NoteGroup writes the note of a group.
func (v *View) NoteGroup(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	g, err := v.store.Groups.Note(ctx, now, fingerprint, note, by)
	return v.group(g), err
}

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
	if o, err = v.store.Operations.Get(ctx, id); err != nil {
		return o, scope, err
	}

	if o.Filter != "" {
		if scope, err = filter.Parse(o.Filter, o.Until); err != nil {
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

// OpenActs counts the acts of each source that have not ended.
func (v *View) OpenActs(ctx context.Context) (map[string]int64, error) {
	return v.store.Sources.Open(ctx)
}

// SourceActs are rows of a source's ledger: first the acts whose result is unknown, then
// the newest.
func (v *View) SourceActs(ctx context.Context, name string, most int) ([]source.Act, error) {
	acts, err := v.store.Sources.Acts(ctx, name, most)
	return each(acts, func(a source.Act) source.Act { a.Why, a.Raw = v.Text(a.Why), nil; return a }), err
}

// Audit is a page of the audit log, the newest first. Who sees only their own of some
// entries sees no addresses.
func (v *View) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	list, err := v.store.Accounts.Audit(ctx, f, before, limit)
	each(list.Entries, v.entry)

	if f.Own != "" {
		each(list.Entries, audit.Entry.WithoutAddresses)
	}

	return list, err
}

// Record writes an entry about what changes nothing in the database.
func (v *View) Record(ctx context.Context, e audit.Entry) error {
	return v.store.Accounts.Record(ctx, e)
}
