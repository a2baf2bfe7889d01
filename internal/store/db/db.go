// Package db is what the store knows of a database: a transaction, the one
// writer, the pool that reads, and the seam to a database engine.
// But for the texts by which a job can be found ([Document]), nothing in it knows what a
// job is.
//
// # One writer
//
// All writes go through one connection, one transaction after the other. Callers
// queue an operation ([Write]) and wait; the writer's goroutine runs whatever has
// queued in one transaction and answers all callers after its commit: one fsync serves
// many callers. A caller that finds the writer idle commits in its own goroutine. An
// operation that fails makes the writer roll back and run each of the batch alone,
// so it must give the same result when it is run again. An operation that merely
// refuses (see [Options]) has written nothing and disturbs no other caller.
//
// A caller's context bounds its waiting in the queue: a transaction is never
// cancelled. What the writer's participants gather of a transaction belongs to it ([Slot]).
//
// What a statement changes is often known before it runs. Such statements are sent
// ([Conn.Send]), and an engine on another machine may let them wait for the next trip.
// Only a few need to know how many rows they changed ([Tx.Exec]).
//
// # Faults
//
// A database that another process keeps busy is tried again by its engine
// (fault.ErrBusy). While the disk is full (fault.ErrStorageFull), or the database can
// only be read, or its files are not where they were when it was opened
// (fault.ErrUnsafe), [health.Health.Problem] says so, and the writer tries every second to
// write something that changes nothing. After an I/O error (fault.ErrBroken), and
// when the database turns out to be damaged (fault.ErrCorrupt), the writer stops
// permanently: it is unknown what the disk holds, and each write could do more harm.
package db
