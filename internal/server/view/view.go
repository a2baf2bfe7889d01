// Package view is the only way from the store to what the server shows.
//
// The configuration says what is to be hidden: values of payloads, and secrets
// in texts. A [View] has a method for each thing that may be read or done, and
// whatever its methods return is redacted. It does not embed the store: a new
// method of the store shows nothing until somebody lists it here, and a test
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

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/redact"
	"redrive/internal/store"
)

// View reads from the store and acts on it, and hides what is to be hidden.
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

// Reveal is everything about a job as it is, after it was written down who wants
// to see it.
func (v *View) Reveal(ctx context.Context, now time.Time, id string, by audit.Actor) (history.Detail, error) {
	d, err := v.store.Job(ctx, id)
	if err != nil {
		return history.Detail{}, err
	}
	return d, v.store.Accounts.Record(ctx, audit.Entry{
		At: now, Actor: by, Action: audit.Reveal, Subject: id, Count: 1, After: fmt.Sprintf("%s, run %d", d.Job.Status(), d.Job.Run),
	})
}

// Text hides what stands in a text.
func (v *View) Text(s string) string { return v.redactor.Text(s) }

// HideJob hides what a job holds that was read by Original.
func (v *View) HideJob(j job.Job) job.Job {
	b := v.HideBody(j.Type, j.Body())
	j.Payload, j.Meta, j.Envelope = b.Payload, b.Meta, b.Envelope
	j.TraceID, j.MessageID, j.Key = b.TraceID, b.MessageID, v.Text(j.Key)
	j.Error, j.Note = v.failure(j.Error), v.Text(j.Note)
	return j
}

// HideBody hides what a job of a type brings along.
func (v *View) HideBody(typ string, b job.Body) job.Body {
	of := v.redactor.For(typ)
	b.Payload, b.Meta = of.Payload(b.Payload), v.redactor.ByKey().Payload(b.Meta)
	b.TraceID, b.MessageID = v.Text(b.TraceID), v.Text(b.MessageID)
	if len(b.Envelope) > 0 {
		b.Envelope = of.Around().Payload(b.Envelope)
	}
	return b
}

// HideConflict hides the job of an act that came too late.
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

// letterRow redacts an error once that the letter and its job have in common.
func (v *View) letterRow(row filter.LetterRow) filter.LetterRow {
	hidden := filter.LetterRow{Job: v.HideJob(row.Job)}
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
	d.Letters = each(slices.Clone(d.Letters), v.letter)
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

// entry hides what people wrote, which stands in the log as they wrote it.
func (v *View) entry(e audit.Entry) audit.Entry {
	e.Filter, e.Before, e.After = v.filter(e.Filter), v.Text(e.Before), v.Text(e.After)
	return e
}

// filter hides what stands in the texts of a filter as people wrote it: of a
// filter of jobs in each of its parts, so that the rest can be read.
func (v *View) filter(text string) string {
	f, err := filter.Parse(text, time.Time{})
	if err != nil || f.String() != text {
		return v.Text(text)
	}
	return v.parts(f).String()
}

// parts hides what stands in the texts of a filter of jobs. They may get longer
// than a filter can be, so the result is to be shown and not to be parsed.
func (v *View) parts(f filter.Filter) filter.Filter {
	for _, part := range []*string{&f.Error, &f.Payload, &f.Meta, &f.Text} {
		*part = v.Text(*part)
	}
	return f
}

// each hides what is in each element of a list, in place.
func each[T any](all []T, hide func(T) T) []T {
	for i, x := range all {
		all[i] = hide(x)
	}
	return all
}

// eachOf does so for a map.
func eachOf[K comparable, T any](all map[K]T, hide func(T) T) map[K]T {
	for key, x := range all {
		all[key] = hide(x)
	}
	return all
}
