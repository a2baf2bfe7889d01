package view

import (
	"errors"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
)

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

func (v *View) deadLetter(l job.DeadLetter) job.DeadLetter {
	l.Error, l.Exception, l.Problem = v.Text(l.Error), v.Text(l.Exception), v.Text(l.Problem)
	l.ForwardedTo = v.Text(l.ForwardedTo)
	return l
}

// deadLetterRow redacts a dead letter and its job. The error that they usually share is
// redacted once, because that is what takes the time.
func (v *View) deadLetterRow(row filter.DeadLetterRow) filter.DeadLetterRow {
	hidden := filter.DeadLetterRow{Job: v.HideJob(row.Job)}
	alike := row.Error == row.Job.Error.Message && row.Exception == row.Job.Error.Type
	if alike {
		row.Error, row.Exception = "", ""
	}

	hidden.DeadLetter = v.deadLetter(row.DeadLetter)
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

	d.DeadLetters = each(slices.Clone(d.DeadLetters), v.deadLetter)
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
