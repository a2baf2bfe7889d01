// Package projection declares the events that the core of the store reports, and delivers each
// of them to the projections that want it. A projection keeps one account of what happens to
// jobs: their counters, for example, or their error groups.
//
// There is an interface for each event, with one method. A projection implements those of the
// events that it wants to be told of, and is registered once for all of them. It is told
// within the transaction of the event: it either writes at once, or gathers what it has to
// write and does so in its Flush, just before the commit (see db.Participant).
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

// Move is a change of a job that the counts of jobs depend on: of its status, its queue, its
// type or its error group.
type Move struct {
	From   *job.Job     // nil: the job is new
	To     *job.Job     // nil: the job was removed
	Totals stats.Totals // what the move adds to the counters of the job's queue and type
}

// MoveListener is told of each job that moves, after the move was written.
type MoveListener interface{ Moved(t *db.Tx, m Move) }

// Failure is an attempt that failed, or a job that came from a source as a dead letter.
type Failure struct {
	Cause     fingerprint.Cause
	Job       *job.Job // as it will be after the failure; the projection of the groups sets its Group
	Execution int      // of the attempt; 0: the job never ran here
	Final     bool     // no retry follows
}

// FailureListener is told of each failure, before the job moves because of it.
type FailureListener interface {
	Failed(t *db.Tx, f Failure) error
}

// EndedRun is a run that was started by a replay and has ended.
type EndedRun struct {
	Seq       int64 // the number of the job
	Run       int   // at least 2: no replay started run 1
	At        int64 // when it ended, in microseconds
	Outcome   operation.RunOutcome
	Group     int64 // the error group of the job when the run ended
	Origin    int64 // the error group of the failure that was replayed; 0: it had none
	Operation int64 // the operation that replayed the job; 0: a person replayed this job alone
}

// RunsEndedListener is told which replayed runs ended in a transaction, and how: once, just
// before the commit.
type RunsEndedListener interface {
	RunsEnded(t *db.Tx, runs []EndedRun) error
}

// RunsResumedListener is told of runs that had ended because their job was discarded, and that
// go on because it was restored. The runs are a JSON array of pairs [number of the job, run],
// such as [[17,2],[23,4]], as a query takes them with json_each. All of them are from replays.
type RunsResumedListener interface {
	RunsResumed(t *db.Tx, runs string) error
}

// RemovalListener is told of jobs that were removed. Their rows are deleted already.
type RemovalListener interface {
	Removed(t *db.Tx, jobs []job.Job) error
}

// Ask is a request of a person or an operation to the sources of some jobs: to run the jobs
// again there, or to delete their records.
type Ask struct {
	Kind       source.Kind
	Mode       source.Mode // only for a replay: how it is done
	Due        time.Time   // only for a replay: when the job should run; zero: at once
	Payload    []byte      // only for a replay: the new payload; nil: the one that the record has
	Jobs       []job.Job   // jobs of sources, as they are after the request
	At         time.Time   // when the request was made
	By         audit.Actor // who made it
	Operation  int64       // the operation that made it; 0: a person asked for a single job
	Unattached bool        // the sources are not attached, so the request is recorded and never sent
}

// AskListener is told of each request to sources.
type AskListener interface {
	Asked(t *db.Tx, ask Ask) error
}

// Log is the audit log. It is not an event: a projection that changes something at a person's
// request gets it when it is built, and writes an entry in the transaction of the change.
type Log interface {
	Log(t *db.Tx, entries ...audit.Entry) error
}

// Projections are the registered projections, in a list for each event. The zero value has
// none. An event is delivered in the order of registration.
type Projections struct {
	onMove        []MoveListener
	onFailure     []FailureListener
	onRunsEnded   []RunsEndedListener
	onRunsResumed []RunsResumedListener
	onRemoval     []RemovalListener
	onAsk         []AskListener
}

// Register adds a projection to the list of each event whose interface it implements. A
// projection that implements none of them is told of nothing.
func (p *Projections) Register(projection any) {
	p.onMove = appendIf(p.onMove, projection)
	p.onFailure = appendIf(p.onFailure, projection)
	p.onRunsEnded = appendIf(p.onRunsEnded, projection)
	p.onRunsResumed = appendIf(p.onRunsResumed, projection)
	p.onRemoval = appendIf(p.onRemoval, projection)
	p.onAsk = appendIf(p.onAsk, projection)
}

// appendIf adds the projection to the listeners of an event if it is one of them.
func appendIf[Listener any](listeners []Listener, projection any) []Listener {
	if l, ok := projection.(Listener); ok {
		return append(listeners, l)
	}
	return listeners
}

// Moved tells the projections that a job has moved.
func (p *Projections) Moved(t *db.Tx, m Move) {
	for _, l := range p.onMove {
		l.Moved(t, m)
	}
}

// Failed tells the projections of a failure. Like the methods below, it returns the first
// error of a projection, with which the transaction has to be rolled back.
func (p *Projections) Failed(t *db.Tx, f Failure) error {
	return tellEach(p.onFailure, func(l FailureListener) error { return l.Failed(t, f) })
}

// RunsEnded tells the projections which replayed runs ended, and how.
func (p *Projections) RunsEnded(t *db.Tx, runs []EndedRun) error {
	return tellEach(p.onRunsEnded, func(l RunsEndedListener) error { return l.RunsEnded(t, runs) })
}

// RunsResumed tells the projections which runs go on after all: see RunsResumedListener.
func (p *Projections) RunsResumed(t *db.Tx, runs string) error {
	return tellEach(p.onRunsResumed, func(l RunsResumedListener) error { return l.RunsResumed(t, runs) })
}

// Removed tells the projections which jobs are removed.
func (p *Projections) Removed(t *db.Tx, jobs []job.Job) error {
	return tellEach(p.onRemoval, func(l RemovalListener) error { return l.Removed(t, jobs) })
}

// Asked tells the projections what sources are asked to do.
func (p *Projections) Asked(t *db.Tx, ask Ask) error {
	return tellEach(p.onAsk, func(l AskListener) error { return l.Asked(t, ask) })
}

// tellEach tells the listeners of an event, one after another, until one of them returns an
// error.
func tellEach[Listener any](listeners []Listener, tell func(Listener) error) error {
	for _, l := range listeners {
		if err := tell(l); err != nil {
			return err
		}
	}

	return nil
}
