// Package store keeps jobs and their history in a database: it enqueues and claims jobs,
// settles and extends executions, replays, discards and restores, and reads jobs and dead
// letters. It is the front of several rooms:
//
//	core        the verbs of a transaction, through which every change of a job goes
//	mirror      takes over the dead letters of other queues
//	sweep       forecasts what retention removes, and removes it
//
// What else is known of jobs is kept by projections, each in a folder of its own:
//
//	counters    how many jobs have which status, and what became of executions
//	groups      error groups
//	operations  acts on many jobs
//	search      the index of texts
//	accounts    users, sessions, tokens and the audit log
//	sources     the records of other queues, and what those are asked to do
//
// The core tells them what happens (package projection). What they gather of it belongs
// to the transaction (see [db.Slot]), in which they write it at the end. A new projection is
// registered in register, and nothing else changes.
//
// The database is behind a seam (package db): sqlite is the one of the program, and postgres
// passes the same contract.
//
// # Fencing
//
// Every write that ends or extends an execution names (id, run, execution), and
// is looked up among the active executions, which are kept in memory: the
// database has no other writer (see local.go). One that is not there was fenced off
// by a newer claim, a cancellation or a replay: it is reported as stale, and
// nothing of it is written. The statements name the execution all the same. When
// they then meet another number of rows than memory promised, another program has
// written to the database, and the store stops permanently.
//
// The store never reads a clock: times are passed in.
package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/internal/store/accounts"
	"redrive/internal/store/bookmark"
	"redrive/internal/store/core"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/groups"
	"redrive/internal/store/health"
	"redrive/internal/store/mirror"
	"redrive/internal/store/operations"
	"redrive/internal/store/rows"
	"redrive/internal/store/search"
	"redrive/internal/store/sources"
	"redrive/internal/store/sweep"
)

// Options say where and how a store keeps its data.
type Options struct {
	Database db.Database
	// OnCommit is called by the writer after each commit that moved jobs, and
	// with none when a queue was resumed or a count changed. It must not block.
	OnCommit func([]job.Change)
	Log      *slog.Logger     // nil: nothing is logged
	MaxBytes int              // of new jobs that wait to be written; zero: 128 MiB
	Redact   search.Redaction // what no user is shown is not found by a search either
	Limits   counters.Limits  // of the names of queues and types
	Groups   int              // error groups that there may be; 0: [failures.DefaultGroups]

	// CheckSource says why a source does not do what a caller asks for; empty when it does.
	// nil: every source does everything.
	CheckSource func(source string, w source.Request) string

	// Attached reports whether a source is attached. A discard of the dead letter of one
	// that is not is Redrive's alone. nil: every source is attached.
	Attached func(source string) bool

	Statements int           // texts of queries that are kept prepared for readers; default 256
	CheckEvery time.Duration // how often an idle store checks its files; zero: each second
}

// Store is an open database. Its methods can be used by many goroutines.
type Store struct {
	Counters   *counters.Projection
	Groups     *groups.Projection
	Operations *operations.Projection
	Search     *search.Projection
	Accounts   *accounts.Projection
	Sources    *sources.Projection

	Mirror *mirror.Mirror
	Sweep  *sweep.Sweeper

	engine   db.Engine
	health   *health.Health
	writer   *db.Writer
	reader   *db.Reader
	policies *rows.Policies
	core     *core.Core

	// What this process knows of transactions without reading the database.
	local   *local
	leases  leases
	pauses  pauses
	depths  depths
	numbers core.Numbers

	// Where claims begin, and where the search for leases that have ended does.
	bookmarks *bookmark.Bookmarks
	running   *bookmark.Running

	// What one transaction gathers on its way.
	settled  *db.Slot[settlements]
	named    *db.Slot[named]
	switched *db.Slot[switched]

	dispatch    *commitDispatch
	updates     updates
	checkSource func(string, source.Request) string
	attached    func(string) bool
	close       func() error
	abandon     func() error
}

// Open opens the database, makes it when there is none, and brings its schema up
// to date. A full disk or a database that can only be read is no reason to
// refuse: what is there can be looked at, and Problem says what is wrong.
func Open(ctx context.Context, o Options) (*Store, error) {
	s := &Store{
		health: health.New(cmp.Or(o.Log, slog.New(slog.DiscardHandler))), policies: rows.NewPolicies(),
		settled: db.NewReusedSlot(newSettlements, (*settlements).clear), named: db.NewSlot(newNamed),
		switched: db.NewSlot(func() *switched { return new(switched) }), checkSource: o.CheckSource, attached: o.Attached,
		updates: updates{onCommit: o.OnCommit, snapshot: stats.Snapshot{Depths: stats.Depths{}}},
	}

	var err error

	s.engine, err = o.Database.Open(ctx, s.health)
	if err != nil {
		return nil, err
	}

	s.writer, err = db.NewWriter(ctx, s.engine, s.health, db.Options{
		Refused: refused, Probe: probe, MaxBytes: o.MaxBytes, CheckEvery: o.CheckEvery,
	})
	if err != nil {
		return nil, errors.Join(s.engine.Fault(err), s.engine.Close())
	}

	s.reader = db.NewReader(s.engine, s.health, cmp.Or(o.Statements, 256))

	// The writer ends before the engine through which it writes.
	s.close = sync.OnceValue(func() error { return errors.Join(s.writer.Close(), s.engine.Close()) })
	s.abandon = sync.OnceValue(func() error { return errors.Join(s.writer.Close(), s.engine.Abandon()) })
	s.register(o)

	// What is kept in memory is read before the first write, from which on it follows the
	// commits.
	err = s.load(ctx)
	if err == nil {
		err = s.writer.Start()
	}

	if err != nil {
		return nil, errors.Join(s.engine.Fault(err), s.Abandon())
	}

	return s, nil
}

// register makes the projections and registers them. Participants of a transaction
// write in this order; what shares rows with every transaction comes last.
func (s *Store) register(o Options) {
	redact := o.Redact.Complete()
	s.bookmarks = bookmark.New(s.engine.KeepsDeadRows())
	s.running = bookmark.NewRunning(s.engine.KeepsDeadRows())
	s.Accounts = accounts.New(s.writer, s.reader)
	s.Counters = counters.New(s.reader, fronts{s.bookmarks}, o.Limits)
	s.Groups = groups.New(s.writer, s.reader, s.policies, s.Accounts, redact.Text, o.Groups)
	s.Search = search.New(s.writer, s.reader, s.engine.Search(), redact, s.health.Log())
	s.Operations = operations.New(s.writer, s.reader, s.policies, s.Accounts, s, s.Search)
	s.Sources = sources.New(s.writer, s.reader)
	s.local = newLocal(s.Counters)
	s.leases, s.pauses = s.local, s.local
	s.depths, s.numbers = s.local, s.local
	s.core = core.New(s.policies, s.numbers)
	s.dispatch = newCommitDispatch(s)
	s.Mirror = mirror.New(s.core, s.writer, s.policies, s.Counters)
	s.Sweep = sweep.New(sweep.Options{
		Core: s.core, Writer: s.writer, Reader: s.reader, Policies: s.policies,
		Counters: s.Counters, Groups: s.Groups, Operations: s.Operations, Accounts: s.Accounts,
		Depths: func() stats.Depths { return s.Snapshot().Depths },
	})

	// Each part takes part in the writer's commits, and hears from the core what happens to
	// jobs.
	for _, part := range []db.Participant{
		s.policies, s.dispatch, s.core, s.local, s.bookmarks, s.running,
		s.Search, s.Operations, s.Accounts, s.Sources, s.Groups, s.Counters, s.Sweep, &publisher{s},
	} {
		s.writer.Register(part)
		s.core.Register(part)
	}
}

// load reads what is kept in memory.
func (s *Store) load(ctx context.Context) error {
	src := s.reader.In(ctx)

	active, err := s.active(src)
	if err != nil {
		return err
	}

	err = db.Steps(src, s.Counters.Load, s.Groups.Load, s.Operations.Load, s.Search.Load, s.Accounts.Load,
		func(src db.Source) error { return s.local.load(src, active) }, s.loadRevision)
	if err == nil {
		s.publish()
		s.publishPauses()
	}

	return err
}

// Made reports whether there was no database before the store was opened.
func (s *Store) Made() bool { return s.engine.Made() }

// Hasten bounds all waits for the database, because the process is about to stop. What is under
// way is still finished, on another connection where one is dead, unless one of its statements takes
// longer than that bound.
func (s *Store) Hasten() { s.engine.Hasten() }

// Close finishes what has queued, stops the writer and closes the database.
// Closing again does nothing.
func (s *Store) Close() error { return s.close() }

// Abandon closes a store that was never written to, in place of Close: a database that
// was made for it is removed.
func (s *Store) Abandon() error { return s.abandon() }

// Problem says why nothing can be written, as far as the last attempt showed,
// or nil. It costs nothing.
func (s *Store) Problem() *health.Fault { return s.health.Problem() }

// Hindrances are what keeps the server of the database from removing old versions of rows for a
// while, the oldest first. It costs nothing, and a file has none.
func (s *Store) Hindrances() []health.Hindrance { return s.health.Hindrances() }

// Failed is closed after an I/O failure, or when the database was found damaged;
// Problem says which. The store writes nothing any more: stop claiming and exit.
func (s *Store) Failed() <-chan struct{} { return s.health.Failed() }

// Ping returns nil when the writer can write: it has committed a transaction
// that takes the database's lock and room on the disk, and changes nothing.
func (s *Store) Ping(ctx context.Context) error { return s.writer.Probe(ctx) }

// QueueNames returns the names of all known queues, sorted, from memory. They
// must not be changed.
func (s *Store) QueueNames() []string { return s.Counters.QueueNames() }

// Announce leaves word of where this process answers requests, for other
// programs of the same user on this machine that find the database in use. They
// send the key along.
func (s *Store) Announce(url, key string) error { return s.engine.Announce(url, key) }

// Identity is the same for every name of the database, and another one for a copy.
func (s *Store) Identity() (string, error) { return s.engine.Identity() }

// probe changes a row twice, because a database may not write what is equal.
func probe(t *db.Tx) error {
	return db.Steps(t, db.Exactly(1, "UPDATE revision SET n = n + 1"), db.Exactly(1, "UPDATE revision SET n = n - 1"))
}

// refused reports whether an operation looked and, having written nothing, said
// no: its answer, not a fault.
func refused(err error) bool {
	return errors.As(err, new(*job.Conflict)) || errors.As(err, new(*job.KeyReused)) || errors.As(err, new(*queues.Full)) ||
		errors.Is(err, job.ErrNotFound) || accounts.Refused(err)
}

// Examine looks at a database without writing to it, also while a program has
// it open. What it finds damaged it says, and goes on; it returns an error that
// is fault.ErrCorrupt when the database cannot be read as a whole.
func Examine(ctx context.Context, d db.Database) (found []db.Finding, err error) {
	err = d.Inspect(ctx, func(src db.Source, integrity []db.Finding) {
		found = integrity
		for _, i := range invariants() {
			found = append(found, i.Examine(src))
		}

		found = append(found, chain(src))
	})

	return found, err
}

// chain verifies the audit log.
func chain(src db.Source) db.Finding {
	n, err := accounts.Verify(src)
	if err != nil {
		return db.Finding{What: "the audit log is complete and unchanged", Problem: err.Error()}
	}

	return db.Finding{What: fmt.Sprintf("the audit log is complete and unchanged, %d entries", n)}
}

// invariants are those of the core, followed by those of the projections.
func invariants() []db.Invariant {
	core := []db.Invariant{
		{What: "every job is in the list of its state", Query: `SELECT id FROM jobs
			WHERE list_state <> CASE WHEN state IN ('available', 'active', 'completed') THEN '' ELSE state END`},
		{What: "every dead letter belongs to a discarded job", Query: `SELECT id FROM jobs WHERE letter <> '' AND state <> 'discarded'`},
		// A replay that a source refused brings its job back later than it failed, so the dead
		// letter of a job of a source has the time at which that job finished.
		{What: "every job that is dead or refused has a dead letter that matches it", Query: `SELECT j.id AS id FROM jobs AS j
			LEFT JOIN dead_letters AS l ON l.job_seq = j.seq AND l.run = j.run WHERE j.letter IN ('stored', 'refused') AND (l.run IS NULL
				OR (l.refused, l.reason, l.queue, l.attempts) <>
					(CASE j.letter WHEN 'refused' THEN 1 ELSE 0 END, j.reason, j.queue, j.attempts)
				OR l.failed_at <> CASE WHEN j.source <> '' THEN j.finished_at ELSE j.changed_at END)`},
		{What: "every job in the trash has a record of its discard, and no other job has one", Query: `SELECT id FROM jobs AS j
			WHERE (letter = 'trashed') <> EXISTS (SELECT 1 FROM trash WHERE job_seq = j.seq)`},
		// The row of a completed job records its last attempt, and a source counts attempts
		// that Redrive never saw.
		{What: "the number of attempts of every job matches its history", Query: `SELECT id FROM jobs AS j
			WHERE state <> 'completed' AND source = '' AND attempts <> (
				SELECT count(*) FROM attempts AS a WHERE a.job_seq = j.seq AND a.run = j.run AND a.number > 0)`},
		{What: "every run after the first began with a recorded replay", Query: `SELECT id FROM jobs AS j
			WHERE run - 1 <> (SELECT count(*) FROM replays WHERE job_seq = j.seq)`},
		{What: "the audit log counts no more jobs as removed than were removed", Query: `SELECT kind || ' in ' || queue AS id FROM removals
			WHERE audited > n OR audited < 0`},
		{What: "nothing is left of the jobs that were removed", Query: `SELECT job_seq AS id FROM (SELECT job_seq FROM bodies
			UNION SELECT job_seq FROM attempts UNION SELECT job_seq FROM dead_letters UNION SELECT job_seq FROM replays
			UNION SELECT job_seq FROM trash UNION SELECT job_seq FROM earlier_runs UNION SELECT job_seq FROM job_keys
			UNION SELECT job_seq FROM search_backlog WHERE execution <> -1) AS kept
			WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE seq = job_seq)`},
	}

	return slices.Concat(core,
		(*counters.Projection)(nil).Invariants(), (*groups.Projection)(nil).Invariants(), (*operations.Projection)(nil).Invariants(),
		(*sources.Projection)(nil).Invariants())
}
