package store

import (
	"context"
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/store/core"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Discard gives a job up: it ends, its dead letter is no longer open, and it
// is in the trash until it is purged. run is the one that the caller looked
// at; another run, a job that runs or one that is over is a *job.Conflict.
func (s *Store) Discard(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.discard", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if from.Run != run {
			return job.Job{}, s.missed(t, from, run)
		}

		if !from.Discardable() {
			return refuse(from, "the job is %s; only waiting jobs and open dead letters can be discarded", from.Status())
		}

		if why := s.CheckAct(from, operation.Discard); why != "" {
			return refuse(from, "%s", why)
		}

		if err := s.DiscardAll(t, []job.Job{from}, now, by, 0); err != nil {
			return job.Job{}, fmt.Errorf("discard job %s: %w", id, err)
		}

		return s.policies.ByID(t, id)
	})
}

// DiscardAll puts jobs that can be discarded into the trash, each as it is in
// this transaction; bulk is the operation that did so, or 0. The sources of jobs are asked to
// discard their records.
func (s *Store) DiscardAll(t *db.Tx, from []job.Job, now time.Time, by audit.Actor, bulk int64) error {
	err := s.core.Discard(t, from, now, by, bulk)
	if err != nil {
		return err
	}

	return s.ask(t, projection.Ask{Kind: source.Discard, At: now, By: by, Operation: bulk}, from)
}

// Restore takes a job out of the trash and puts it back where it was: its dead
// letter is open again, and what waited waits for its old time. A job that was
// held for want of a handler is available, and held again where none is known.
// run is the one that the caller looked at; a job that is not in the trash in
// this run is a *job.Conflict.
func (s *Store) Restore(ctx context.Context, now time.Time, id string, run int, by audit.Actor) (job.Job, error) {
	return s.act(ctx, about(id, "job.restore", now, by), func(t *db.Tx, from job.Job, _ *audit.Entry) (job.Job, error) {
		if name := from.Source; name != "" && from.Status() == job.StatusTrashed {
			return refuse(from, "a job of a source cannot be restored; if %s still has it, the dead letter comes back", name)
		}

		if from.Run != run || !from.Restorable() {
			return refuse(from, "run %d is not in the trash; the job is %s in run %d", run, from.Status(), from.Run)
		}

		if err := s.RestoreAll(t, []job.Job{from}); err != nil {
			return job.Job{}, fmt.Errorf("restore job %s: %w", id, err)
		}

		return s.policies.ByID(t, id)
	})
}

// RestoreAll puts jobs back that can be restored.
func (s *Store) RestoreAll(t *db.Tx, from []job.Job) error { return s.core.Restore(t, from) }

// Trashed says of jobs in the trash when they came there and where they were,
// by the job's own number.
func (s *Store) Trashed(ctx context.Context, jobs []job.Job) (map[int64]history.Trashed, error) {
	return core.Trashed(s.reader.In(ctx), jobs)
}
