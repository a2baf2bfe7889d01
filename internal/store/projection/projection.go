// Package projection is what the store tells its projections, each of which keeps one account
// of what happens to jobs. A projection is told of an event when it has the event's
// method, and writes what it gathers as a participant of the transaction.
package projection

import (
	"time"

	"redrive/internal/audit"
	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/db"
)

// Move is a step of a job from one status to another.
type Move struct {
	From   *job.Job // nil: the job is new
	To     *job.Job // nil: the job was removed
	Totals stats.Totals
}

// Mover is told of every job that moves.
type Mover interface{ Moved(t *db.Tx, m Move) }

// Failure is a failed attempt, or a job that came as a dead letter.
type Failure struct {
	Cause     fingerprint.Cause
	Job       *job.Job // as it is afterwards; a projection fills in its error group
	Execution int      // 0: it never ran
	Final     bool     // no retry follows
}

// Failer is told of every failure, before the job moves for it.
type Failer interface {
	Failed(t *db.Tx, f Failure) error
}

// EndedRun is a run that a replay had started, and that is over.
type EndedRun struct {
	Seq       int64 // of the job
	Run       int
	At        int64 // when it ended, in microseconds
	Outcome   operation.RunOutcome
	Group     int64 // of the failure that ended it
	Origin    int64 // the group of the failure that was replayed, 0 when none
	Operation int64 // that replayed it, 0 when a person did so alone
}

// RunEnder is told how the replayed runs of a transaction ended, just before its
// commit.
type RunEnder interface {
	RunsEnded(t *db.Tx, runs []EndedRun) error
}

// RunResumer is told that runs, a JSON array of [job_seq, run], go on after all.
type RunResumer interface {
	RunsResumed(t *db.Tx, runs string) error
}

// Remover is told that jobs are removed.
type Remover interface {
	Removed(t *db.Tx, jobs []job.Job) error
}

// Ask is what a person, or an operation, wants done to dead letters at their sources.
type Ask struct {
	Kind       source.Kind
	Mode       source.Mode // of a replay
	Due        time.Time   // likewise; zero: at once
	Payload    []byte      // likewise; nil: as it is
	Jobs       []job.Job   // of sources, as they are afterwards
	At         time.Time
	By         audit.Actor
	Operation  int64 // 0: a person asked
	Unattached bool  // their sources are not attached, and are never told
}

// Asker is told what sources are asked to do.
type Asker interface {
	Asked(t *db.Tx, ask Ask) error
}

// Log is the audit log, to which an act is written in its own transaction.
type Log interface {
	Log(t *db.Tx, entries ...audit.Entry) error
}

// Projections are all that are registered, by what they are told.
type Projections struct {
	movers   []Mover
	failers  []Failer
	enders   []RunEnder
	resumers []RunResumer
	removers []Remover
	askers   []Asker
}

// Register adds a projection.
func (p *Projections) Register(projection any) {
	p.movers = add(p.movers, projection)
	p.failers = add(p.failers, projection)
	p.enders = add(p.enders, projection)
	p.resumers = add(p.resumers, projection)
	p.removers = add(p.removers, projection)
	p.askers = add(p.askers, projection)
}

func add[T any](all []T, projection any) []T {
	if b, ok := projection.(T); ok {
		return append(all, b)
	}
	return all
}

// Moved tells the projections that a job moved.
func (p *Projections) Moved(t *db.Tx, m Move) {
	for _, mover := range p.movers {
		mover.Moved(t, m)
	}
}

// Failed tells the projections of a failure.
func (p *Projections) Failed(t *db.Tx, f Failure) error {
	return each(p.failers, func(projection Failer) error { return projection.Failed(t, f) })
}

// RunsEnded tells the projections how replayed runs ended.
func (p *Projections) RunsEnded(t *db.Tx, runs []EndedRun) error {
	return each(p.enders, func(projection RunEnder) error { return projection.RunsEnded(t, runs) })
}

// RunsResumed tells the projections that runs go on.
func (p *Projections) RunsResumed(t *db.Tx, runs string) error {
	return each(p.resumers, func(projection RunResumer) error { return projection.RunsResumed(t, runs) })
}

// Removed tells the projections that jobs are removed.
func (p *Projections) Removed(t *db.Tx, jobs []job.Job) error {
	return each(p.removers, func(projection Remover) error { return projection.Removed(t, jobs) })
}

// Asked tells the projections what sources are asked to do.
func (p *Projections) Asked(t *db.Tx, ask Ask) error {
	return each(p.askers, func(projection Asker) error { return projection.Asked(t, ask) })
}

func each[T any](all []T, tell func(T) error) error {
	for _, projection := range all {
		if err := tell(projection); err != nil {
			return err
		}
	}

	return nil
}
