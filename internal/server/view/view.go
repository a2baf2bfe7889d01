// Package view is the only way from the store to what the server shows.
//
// The configuration says what is to be hidden: values of payloads, and secrets
// in texts. A [View] has a method for each thing that may be read or done, and
// whatever its methods return is redacted. It does not embed the store: a new
// method of the store shows nothing until a programmer lists it here, and a test
// calls every method that returns jobs or texts and looks for what must not be
// in them.
//
// Two methods return a job as it is: [View.Original], for what is written or
// sent to a webhook, and [View.Reveal], which first writes into the audit log
// who wants to see it.
package view

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/queues"
	"redrive/internal/redact"
	"redrive/internal/retention"
	"redrive/internal/store"
	"redrive/internal/store/db"
)

// View reads from the store and acts on it, and redacts what it returns.
type View struct {
	store    *store.Store
	redactor *redact.Redactor
}

// New returns a view of a store.
func New(s *store.Store, r *redact.Redactor) *View { return &View{s, r} }

// Original is everything about a job as it is, for what is written. It is never
// shown.
func (v *View) Original(ctx context.Context, id string) (history.Detail, error) {
	return v.store.Job(ctx, id)
}

// Reveal is everything about a job as it is. The audit log is written first:
// without an entry nothing is shown.
func (v *View) Reveal(ctx context.Context, now time.Time, id string, by audit.Actor) (history.Detail, error) {
	d, err := v.store.Job(ctx, id)
	if err != nil {
		return history.Detail{}, err
	}

	return d, v.store.Accounts.Record(ctx, audit.Entry{
		At: now, Actor: by, Action: audit.Reveal, Subject: id, Count: 1, After: fmt.Sprintf("%s, run %d", d.Job.Status(), d.Job.Run),
	})
}

// Text redacts a text.
func (v *View) Text(s string) string { return v.redactor.Text(s) }

// HideJob redacts a job that was read by Original.
func (v *View) HideJob(j job.Job) job.Job {
	b := v.HideBody(j.Type, j.Body())
	j.Payload, j.Meta, j.Envelope = b.Payload, b.Meta, b.Envelope
	j.TraceID, j.MessageID, j.Key = b.TraceID, b.MessageID, v.Text(j.Key)
	j.Error, j.Note = v.failure(j.Error), v.Text(j.Note)

	return j
}

// HideBody redacts what a job of a type brought along.
func (v *View) HideBody(typ string, b job.Body) job.Body {
	of := v.redactor.For(typ)

	b.Payload, b.Meta = of.Payload(b.Payload), v.redactor.ByKey().Payload(b.Meta)
	b.TraceID, b.MessageID = v.Text(b.TraceID), v.Text(b.MessageID)
	if len(b.Envelope) > 0 {
		b.Envelope = of.Around().Payload(b.Envelope)
	}

	return b
}

// HideConflict redacts the job in the error of an act that came too late.
func (v *View) HideConflict(err error) error {
	first := new(job.Conflict)
	if !errors.As(err, &first) {
		return err
	}

	return &job.Conflict{Job: v.HideJob(first.Job), Problem: first.Problem, ReplayedBy: first.ReplayedBy, ReplayedAt: first.ReplayedAt}
}

func (v *View) failure(e job.ErrorInfo) job.ErrorInfo {
	return job.ErrorInfo{Type: v.Text(e.Type), Message: v.Text(e.Message)}
}

func (v *View) letter(l job.DeadLetter) job.DeadLetter {
	l.Error, l.Exception, l.Problem = v.Text(l.Error), v.Text(l.Exception), v.Text(l.Problem)
	l.ForwardedTo = v.Text(l.ForwardedTo)
	return l
}

// letterRow redacts a letter and its job. The error that they usually share is
// redacted once, because that is what takes the time.
func (v *View) letterRow(row filter.DeadLetterRow) filter.DeadLetterRow {
	hidden := filter.DeadLetterRow{Job: v.HideJob(row.Job)}
	alike := row.Error == row.Job.Error.Message && row.Exception == row.Job.Error.Type
	if alike {
		row.Error, row.Exception = "", ""
	}

	hidden.DeadLetter = v.letter(row.DeadLetter)
	if alike {
		hidden.Error, hidden.Exception = hidden.Job.Error.Message, hidden.Job.Error.Type
	}

	return hidden
}

func (v *View) attempt(a job.Attempt) job.Attempt {
	a.Error, a.Trace, a.Note = v.failure(a.Error), v.Text(a.Trace), v.Text(a.Note)
	return a
}

func (v *View) replay(r history.Replay) history.Replay {
	if r.Earlier != nil && r.Earlier.Body != nil {
		earlier, b := *r.Earlier, v.HideBody(r.Earlier.Type, *r.Earlier.Body)
		earlier.Body, r.Earlier = &b, &earlier
	}

	return r
}

func (v *View) detail(d history.Detail) history.Detail {
	d.Job, d.Group = v.HideJob(d.Job), v.group(d.Group)
	d.Attempts = each(slices.Clone(d.Attempts), v.attempt)
	if d.Following != nil {
		following := v.attempt(*d.Following)
		d.Following = &following
	}

	d.DeadLetters = each(slices.Clone(d.DeadLetters), v.letter)
	d.Replays = each(slices.Clone(d.Replays), v.replay)

	return d
}

func (v *View) group(g failures.Group) failures.Group {
	g.Class, g.Message, g.Note = v.Text(g.Class), v.Text(g.Message), v.Text(g.Note)
	g.Frames = each(slices.Clone(g.Frames), v.Text)
	return g
}

func (v *View) item(i operation.Item) operation.Item {
	i.Job, i.Why = v.HideJob(i.Job), v.Text(i.Why)
	return i
}

func (v *View) operation(o operation.Operation) operation.Operation {
	o.Filter, o.Why = v.filter(o.Filter), v.Text(o.Why)
	return o
}

// entry redacts what people typed, which is in the log as they typed it.
func (v *View) entry(e audit.Entry) audit.Entry {
	e.Filter, e.Before, e.After = v.filter(e.Filter), v.Text(e.Before), v.Text(e.After)
	return e
}

// filter redacts the texts in a filter that people typed. A filter of jobs is
// redacted part by part, so that the rest stays readable.
func (v *View) filter(text string) string {
	f, err := filter.Parse(text, time.Time{})
	if err != nil || f.String() != text {
		return v.Text(text)
	}

	return v.parts(f).String()
}

// parts redacts the texts of a filter of jobs. The result can be longer than a
// filter may be, so it is for showing and not for parsing.
func (v *View) parts(f filter.Filter) filter.Filter {
	for _, part := range []*string{&f.Error, &f.Payload, &f.Meta, &f.Text} {
		*part = v.Text(*part)
	}
	return f
}

// each redacts every element of a list, in place.
func each[T any](all []T, hide func(T) T) []T {
	for i, x := range all {
		all[i] = hide(x)
	}
	return all
}

// eachOf redacts every value of a map, in place.
func eachOf[K comparable, T any](all map[K]T, hide func(T) T) map[K]T {
	for key, x := range all {
		all[key] = hide(x)
	}
	return all
}

// Nothing of what these methods return came with a job, so they hide nothing.

// Snapshot is the newest totals, without a look at the database.
func (v *View) Snapshot() job.Snapshot { return v.store.Snapshot() }

// QueueNames lists the queues that are known, sorted. They must not be changed.
func (v *View) QueueNames() []string { return v.store.Counters.QueueNames() }

// CountedTypes is how many types of jobs are told apart where they are counted.
func (v *View) CountedTypes() int { return v.store.Counters.CountedTypes() }

// GroupCount is how many error groups there are.
func (v *View) GroupCount() int { return v.store.Groups.Size() }

// HasQueue reports whether a queue is known.
func (v *View) HasQueue(name string) bool { return v.store.Counters.HasQueue(name) }

// Queues describes some of the queues that are known.
func (v *View) Queues(ctx context.Context, now time.Time, names []string) ([]queues.Info, error) {
	return v.store.Counters.Queues(ctx, now, names)
}

// PausedQueues names the queues that were paused last.
func (v *View) PausedQueues(ctx context.Context, limit int) ([]string, error) {
	return v.store.Counters.PausedQueues(ctx, limit)
}

// Fullest names the queues with the most jobs of some statuses.
func (v *View) Fullest(n int, orders ...[]job.Status) []string {
	return v.store.Counters.Fullest(n, orders...)
}

// DepthsByLabel counts the jobs by what metrics call their queues.
func (v *View) DepthsByLabel() map[string]job.Depths { return v.store.Counters.DepthsByLabel() }

// Label is what metrics call a queue.
func (v *View) Label(queue string) string { return v.store.Counters.Label(queue) }

// Held counts the jobs that wait for a handler, by queue and type.
func (v *View) Held(ctx context.Context, queue string, limit int) ([]queues.Held, error) {
	return v.store.Counters.Held(ctx, queue, limit)
}

// RemoveQueue removes an empty queue with its finished jobs.
func (v *View) RemoveQueue(ctx context.Context, now time.Time, queue string, by audit.Actor) (jobs int64, err error) {
	return v.store.RemoveQueue(ctx, now, queue, by)
}

// Tallies is the counters by queue and type.
func (v *View) Tallies(ctx context.Context) ([]queues.Tally, error) {
	return v.store.Counters.Tallies(ctx)
}

// LastHour is the totals of the last hour by the minute.
func (v *View) LastHour(ctx context.Context, now time.Time) ([]job.Totals, error) {
	return v.store.Counters.LastHour(ctx, now)
}

// Series is the totals of a queue, a type or both over a time.
func (v *View) Series(ctx context.Context, now time.Time, queue, typ string, scale queues.Scale) ([]job.Totals, error) {
	return v.store.Counters.Series(ctx, now, queue, typ, scale)
}

// Reasons counts the open dead letters by reason.
func (v *View) Reasons(ctx context.Context) ([]filter.ReasonCount, error) {
	return v.store.Counters.Reasons(ctx)
}

// Usage is how full the dead-letter queue is.
func (v *View) Usage(ctx context.Context, now time.Time) (retention.Usage, error) {
	return v.store.DeadLetterUsage(ctx, now)
}

// Retention is the newest forecast of what retention will remove.
func (v *View) Retention() retention.Forecast { return v.store.Retention() }

// Removals is what retention removed since the beginning.
func (v *View) Removals(ctx context.Context) ([]retention.Removal, error) {
	return v.store.Removals(ctx)
}

// Paused says since when a queue is paused, and by whom.
func (v *View) Paused(ctx context.Context, queue string) (at time.Time, by string, err error) {
	return v.store.Paused(ctx, queue)
}

// Pause stops a queue.
func (v *View) Pause(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	return v.store.Pause(ctx, now, queue, by)
}

// Resume lets a queue run. One that is only configured runs already.
func (v *View) Resume(ctx context.Context, now time.Time, queue string, by audit.Actor) error {
	if err := v.store.Resume(ctx, now, queue, by); !errors.Is(err, job.ErrNotFound) {
		return err
	}
	return nil
}

// Ping reports whether the database can be written.
func (v *View) Ping(ctx context.Context) error { return v.store.Ping(ctx) }

// Problem says why nothing can be written, and since when; or nothing.
func (v *View) Problem() (text string, since time.Time) {
	if problem := v.store.Problem(); problem != nil {
		return problem.Advice, problem.Since
	}
	return "", time.Time{}
}

// Advice says what to do about a fault of the database; empty for any other error.
func Advice(err error) string {
	if found := new(db.Fault); errors.As(err, &found) {
		return found.Advice
	}
	return ""
}

// Accounts returns who may use the server, which never came with a job either.
func (v *View) Accounts() Accounts { return v.store.Accounts }

// Accounts lists what the server may read and change of the users, their sessions
// and the tokens. A user, a session or a token that is asked for and that there is
// not is an access.ErrUnknown.
type Accounts interface {
	Guarded() bool // whether callers have to log in

	Users(ctx context.Context) ([]access.User, error)
	User(ctx context.Context, name string) (access.User, error)
	AddUser(ctx context.Context, now time.Time, u access.User, by audit.Actor) error
	SetRole(ctx context.Context, now time.Time, name string, role access.Role, by audit.Actor) error
	SetPassword(ctx context.Context, now time.Time, name, hash string, by audit.Actor) error
	RemoveUser(ctx context.Context, now time.Time, name string, by audit.Actor) error

	Sessions(ctx context.Context, now time.Time) ([]access.Session, error)
	Session(ctx context.Context, now time.Time, hash []byte) (access.Session, error) // by the hash of its secret
	StartSession(ctx context.Context, now time.Time, n access.Session, checked access.User, by audit.Actor) error
	SeeSession(ctx context.Context, now time.Time, hash []byte) error // notes that it is in use
	EndSession(ctx context.Context, now time.Time, hash []byte, by audit.Actor) error
	LoginFailed(ctx context.Context, now time.Time, name string, by audit.Actor) error // for the audit log

	Tokens(ctx context.Context) ([]access.Token, error)
	Token(ctx context.Context, id string) (access.Token, error)
	UseToken(ctx context.Context, now time.Time, id string) error // notes that it is in use
	CreateToken(ctx context.Context, now time.Time, t access.Token, by audit.Actor) error
	RevokeToken(ctx context.Context, now time.Time, id string, by audit.Actor) error
}
