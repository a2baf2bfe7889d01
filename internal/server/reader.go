package server

import (
	"context"
	"errors"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/redact"
	"redrive/internal/store"
)

// reader is the one way from the store to pages, answers and exports: what the
// configuration hides is hidden in everything that it returns. It has the
// store's methods, those that return jobs, or texts that came with them,
// redacted; a test holds it to that. Server.Store is one, so that no handler
// can come past it by mistake.
type reader struct {
	*store.Store
	redactor *redact.Redactor
}

// original is everything about a job as it is, for what is written and for
// those who were allowed to see it. It is never shown otherwise.
func (r reader) original(ctx context.Context, id string) (history.Detail, error) {
	return r.Store.Job(ctx, id)
}

// body hides what a job brings along.
func (r reader) body(typ string, b job.Body) job.Body {
	of := r.redactor.For(typ)
	b.Payload, b.Meta = of.Payload(b.Payload), r.redactor.ByKey().Payload(b.Meta)
	b.TraceID, b.MessageID = r.redactor.Text(b.TraceID), r.redactor.Text(b.MessageID)
	if len(b.Envelope) > 0 {
		b.Envelope = of.Around().Payload(b.Envelope)
	}
	return b
}

func (r reader) job(j job.Job) job.Job {
	b := r.body(j.Type, j.Body())
	j.Payload, j.Meta, j.Envelope = b.Payload, b.Meta, b.Envelope
	j.TraceID, j.MessageID, j.Key = b.TraceID, b.MessageID, r.redactor.Text(j.Key)
	j.Error, j.Note = r.failure(j.Error), r.redactor.Text(j.Note)
	return j
}

func (r reader) failure(e job.ErrorInfo) job.ErrorInfo {
	return job.ErrorInfo{Type: r.redactor.Text(e.Type), Message: r.redactor.Text(e.Message)}
}

func (r reader) all(jobs []job.Job) []job.Job {
	for i, j := range jobs {
		jobs[i] = r.job(j)
	}
	return jobs
}

func (r reader) letter(l job.DeadLetter) job.DeadLetter {
	l.Error, l.Exception, l.Problem = r.redactor.Text(l.Error), r.redactor.Text(l.Exception), r.redactor.Text(l.Problem)
	l.ForwardedTo = r.redactor.Text(l.ForwardedTo)
	return l
}

func (r reader) detail(d history.Detail) history.Detail {
	d.Job, d.Group = r.job(d.Job), r.group(d.Group)
	d.Attempts, d.Letters, d.Replays = slices.Clone(d.Attempts), slices.Clone(d.Letters), slices.Clone(d.Replays)
	for i := range d.Attempts {
		d.Attempts[i] = r.attempt(d.Attempts[i])
	}
	for i, l := range d.Letters {
		d.Letters[i] = r.letter(l)
	}
	for i := range d.Replays {
		if e := d.Replays[i].Earlier; e != nil && e.Body != nil {
			earlier, b := *e, r.body(e.Type, *e.Body)
			earlier.Body = &b
			d.Replays[i].Earlier = &earlier
		}
	}
	return d
}

// acted hides what an act returns, also where somebody else was first.
func (r reader) acted(j job.Job, err error) (job.Job, error) {
	if first := new(job.Conflict); errors.As(err, &first) {
		redacted := *first
		redacted.Job = r.job(first.Job)
		err = &redacted
	}
	return r.job(j), err
}

// Job is Store.Job, redacted, as are the others.
func (r reader) Job(ctx context.Context, id string) (history.Detail, error) {
	d, err := r.Store.Job(ctx, id)
	return r.detail(d), err
}

// Jobs is Store.Jobs.
func (r reader) Jobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	list, err := r.Store.Jobs(ctx, f, after, limit)
	list.Jobs = r.all(list.Jobs)
	return list, err
}

// WholeJobs is Store.WholeJobs.
func (r reader) WholeJobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	list, err := r.Store.WholeJobs(ctx, f, after, limit)
	list.Jobs = r.all(list.Jobs)
	return list, err
}

// Recent is Store.Recent.
func (r reader) Recent(ctx context.Context, typ string, limit int) ([]job.Job, error) {
	jobs, err := r.Store.Recent(ctx, typ, limit)
	return r.all(jobs), err
}

// Leases is Store.Leases.
func (r reader) Leases(ctx context.Context, endedBy time.Time) ([]job.Job, error) {
	jobs, err := r.Store.Leases(ctx, endedBy)
	return r.all(jobs), err
}

// Letters is Store.Letters.
func (r reader) Letters(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.LetterList, error) {
	list, err := r.Store.Letters(ctx, f, after, limit)
	for i, row := range list.Letters {
		list.Letters[i] = r.letterRow(row)
	}
	return list, err
}

// letterRow hides an error once that the letter and its job have in common.
func (r reader) letterRow(row filter.LetterRow) filter.LetterRow {
	hidden := filter.LetterRow{Job: r.job(row.Job)}
	alike := row.Error == row.Job.Error.Message && row.Exception == row.Job.Error.Type
	if alike {
		row.Error, row.Exception = "", ""
	}
	hidden.DeadLetter = r.letter(row.DeadLetter)
	if alike {
		hidden.Error, hidden.Exception = hidden.Job.Error.Message, hidden.Job.Error.Type
	}
	return hidden
}

// Problems is Store.Problems.
func (r reader) Problems(ctx context.Context, jobs []job.Job) (map[int64]string, error) {
	all, err := r.Store.Problems(ctx, jobs)
	for seq, problem := range all {
		all[seq] = r.redactor.Text(problem)
	}
	return all, err
}

// Items is Store.Items.
func (r reader) Items(ctx context.Context, id int64, f operation.ItemFilter, after int64, limit int) (operation.ItemList, error) {
	list, err := r.Store.Items(ctx, id, f, after, limit)
	r.items(list.Items)
	return list, err
}

func (r reader) items(items []operation.Item) {
	for i := range items {
		items[i].Job, items[i].Why = r.job(items[i].Job), r.redactor.Text(items[i].Why)
	}
}

// Breakdown is Store.Breakdown.
func (r reader) Breakdown(ctx context.Context, id int64) (operation.Breakdown, error) {
	b, err := r.Store.Breakdown(ctx, id)
	r.items(b.Skipped)
	return b, err
}

// Enqueue is Store.Enqueue.
func (r reader) Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error) {
	done, err := r.Store.Enqueue(ctx, now, jobs)
	for i := range done {
		done[i].Job = r.job(done[i].Job)
	}
	return done, err
}

// Replay is Store.Replay.
func (r reader) Replay(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return r.acted(r.Store.Replay(ctx, now, id, run, by))
}

// ReplayWith is Store.ReplayWith.
func (r reader) ReplayWith(ctx context.Context, now time.Time, id string, run int, redo job.Edit, by audit.Actor) (job.Job, error) {
	return r.acted(r.Store.ReplayWith(ctx, now, id, run, redo, by))
}

// Discard is Store.Discard.
func (r reader) Discard(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return r.acted(r.Store.Discard(ctx, now, id, run, by))
}

// Restore is Store.Restore.
func (r reader) Restore(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return r.acted(r.Store.Restore(ctx, now, id, run, by))
}

// Cancel is Store.Cancel.
func (r reader) Cancel(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return r.acted(r.Store.Cancel(ctx, now, id, run, by))
}

// Forwarded is Store.Forwarded.
func (r reader) Forwarded(ctx context.Context, now time.Time, id string, run int, d job.Delivery, by audit.Actor) (job.Job, error) {
	return r.acted(r.Store.Forwarded(ctx, now, id, run, d, by))
}

func (r reader) attempt(a job.Attempt) job.Attempt {
	a.Error, a.Trace, a.Note = r.failure(a.Error), r.redactor.Text(a.Trace), r.redactor.Text(a.Note)
	return a
}

func (r reader) group(g failures.Group) failures.Group {
	g.Class, g.Message, g.Note = r.redactor.Text(g.Class), r.redactor.Text(g.Message), r.redactor.Text(g.Note)
	g.Frames = slices.Clone(g.Frames)
	for i, frame := range g.Frames {
		g.Frames[i] = r.redactor.Text(frame)
	}
	return g
}

// Groups is Store.Groups.
func (r reader) Groups(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
	list, err := r.Store.Groups(ctx, now, f, after, limit)
	for i, g := range list.Groups {
		list.Groups[i] = r.group(g)
	}
	return list, err
}

// TopGroups is Store.TopGroups.
func (r reader) TopGroups(ctx context.Context, now time.Time, limit int) ([]failures.Group, error) {
	all, err := r.Store.TopGroups(ctx, now, limit)
	for i, g := range all {
		all[i] = r.group(g)
	}
	return all, err
}

// GroupsOf is Store.GroupsOf.
func (r reader) GroupsOf(ctx context.Context, letters []filter.LetterRow) (map[int64]failures.Group, error) {
	all, err := r.Store.GroupsOf(ctx, letters)
	for number, g := range all {
		all[number] = r.group(g)
	}
	return all, err
}

// Group is Store.Group.
func (r reader) Group(ctx context.Context, now time.Time, fingerprint string) (failures.Detail, error) {
	d, err := r.Store.Group(ctx, now, fingerprint)
	d.Group, d.Jobs = r.group(d.Group), r.all(d.Jobs)
	d.Sample = failures.Sample{Job: r.job(d.Sample.Job), Attempt: r.attempt(d.Sample.Attempt)}
	return d, err
}

// SetGroup is Store.SetGroup.
func (r reader) SetGroup(ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor) (failures.Group, error) {
	g, err := r.Store.SetGroup(ctx, now, fingerprint, to, by)
	return r.group(g), err
}

// NoteGroup is Store.NoteGroup.
func (r reader) NoteGroup(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error) {
	g, err := r.Store.NoteGroup(ctx, now, fingerprint, note, by)
	return r.group(g), err
}

// Audit is Store.Audit: what people wrote stands in it as they wrote it.
func (r reader) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	list, err := r.Store.Audit(ctx, f, before, limit)
	r.entries(list.Entries)
	return list, err
}

func (r reader) entries(entries []audit.Entry) {
	for i := range entries {
		e := &entries[i]
		e.Filter, e.Before, e.After = r.filter(e.Filter), r.redactor.Text(e.Before), r.redactor.Text(e.After)
	}
}

// OperationLog is Store.OperationLog.
func (r reader) OperationLog(ctx context.Context, id int64) ([]audit.Entry, error) {
	entries, err := r.Store.OperationLog(ctx, id)
	r.entries(entries)
	return entries, err
}
