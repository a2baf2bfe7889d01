package view

import (
	"context"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
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
	each(list.DeadLetters, v.deadLetterRow)
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
