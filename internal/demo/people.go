package demo

import (
	"context"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// Desk is where people act on many jobs and on error groups.
type Desk struct {
	Operations Operations
	Groups     Groups
	Hide       func(string) string // takes secrets out of a text, as the engine does with the errors of handlers
}

// Operations are acts on many jobs.
type Operations interface {
	New(ctx context.Context, now time.Time, n operation.Request, by audit.Actor) (operation.Operation, error)
	Collect(ctx context.Context, now time.Time, id int64) (more bool, err error)
	Work(ctx context.Context, clock func() time.Time, id int64, n int) (operation.Step, error)
	Abort(ctx context.Context, now time.Time, id int64, by audit.Actor) (operation.Operation, error)
}

// Groups are error groups.
type Groups interface {
	List(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error)
	Decide(ctx context.Context, now time.Time, fingerprint string, to failures.Decision, by audit.Actor) (failures.Group, error)
	Note(ctx context.Context, now time.Time, fingerprint, note string, by audit.Actor) (failures.Group, error)
}

// act is something that a person did on the day before the demo.
type act struct {
	ago time.Duration // before the demo begins; a whole minute of more than an hour
	do  deed
}

// deed is one act of a person at a moment of the history.
type deed func(h *history, ctx context.Context, t time.Time) error

// acts tell the day from the side of the people who watched it, so that there
// are operations, notes, a trash and an audit log to look at.
func acts() []act {
	ana, ben := audit.Actor{Name: "ana", Address: "192.0.2.17"}, audit.Actor{Name: "ben", Address: "192.0.2.44"}

	return []act{
		{9*time.Hour + 40*time.Minute, pause("reports", ben)},
		{9 * time.Hour, resume("reports", ben)},
		{5*time.Hour + 30*time.Minute, note("image.thumbnail",
			"Documents without pages. Fixed in 4.2.1; the thumbnails are not needed again.", ana)},
		{5*time.Hour + 25*time.Minute, bulk(operation.Discard, filter.Filter{Queue: "images"}, 500, ana)},
		{5 * time.Hour, decide("image.thumbnail", failures.Decision{State: failures.Resolved}, ana)},
		{3*time.Hour + 20*time.Minute, bulk(operation.Replay, filter.Filter{Queue: "sms"}, 3, ben)}, // too early, and taken back
		{3*time.Hour - 10*time.Minute, note("sms.send", "The gateway had lowered our limit; back to normal since 11:00.", ben)},
		{2*time.Hour + 30*time.Minute, bulk(operation.Replay, filter.Filter{Queue: "sms"}, 500, ana)},
		{2 * time.Hour, decide("email.receipt", failures.Decision{State: failures.Ignored, Patience: failures.Patience{Rate: 5000}}, ana)},
		{90 * time.Minute, note("order.import", "Northwind sends quantities as words. They know; replay once they send numbers.", ben)},
		{75 * time.Minute, bulk(operation.Replay, filter.Filter{Queue: "reports"}, 500, ben)},
	}
}

// people lets all people act who did so at this moment, on what has ended by then.
func (h *history) people(ctx context.Context, t time.Time) error {
	for _, a := range acts() {
		if h.now.Sub(t) != a.ago {
			continue
		}

		if err := h.work(ctx, t.Add(-longest)); err != nil {
			return err
		}

		if err := a.do(h, ctx, t); err != nil {
			return err
		}
	}

	return nil
}

func pause(queue string, by audit.Actor) deed {
	return func(h *history, ctx context.Context, t time.Time) error { return h.store.Pause(ctx, t, queue, by) }
}

func resume(queue string, by audit.Actor) deed {
	return func(h *history, ctx context.Context, t time.Time) error {
		h.resumed = t
		return h.store.Resume(ctx, t, queue, by)
	}
}

// bulk acts on the dead letters of a filter, up to so many of them: what is left
// then is left as it is.
func bulk(kind operation.Kind, f filter.Filter, most int, by audit.Actor) deed {
	return func(h *history, ctx context.Context, t time.Time) error {
		f.Status = job.StatusDeadLetter

		o, err := h.desk.Operations.New(ctx, t, operation.Request{Kind: kind, Filter: f, Start: true}, by)
		more := true
		for more && err == nil {
			more, err = h.desk.Operations.Collect(ctx, t, o.ID)
		}

		if err != nil {
			return err
		}

		// What is left after so many is not waited for.
		done, err := h.desk.Operations.Work(ctx, func() time.Time { return t }, o.ID, most)
		if err == nil && done.Operation.Open() {
			_, err = h.desk.Operations.Abort(ctx, t.Add(20*time.Second), o.ID, by)
		}

		return err
	}
}

// decide returns the deed of a person who decides about the largest group of a type.
func decide(typ string, to failures.Decision, by audit.Actor) deed {
	return onGroup(typ, func(h *history, ctx context.Context, t time.Time, fingerprint string) (failures.Group, error) {
		return h.desk.Groups.Decide(ctx, t, fingerprint, to, by)
	})
}

// note returns the deed of a person who writes a note beside the largest group of a type.
func note(typ, text string, by audit.Actor) deed {
	return onGroup(typ, func(h *history, ctx context.Context, t time.Time, fingerprint string) (failures.Group, error) {
		return h.desk.Groups.Note(ctx, t, fingerprint, text, by)
	})
}

// onGroup acts on the largest group of a type.
func onGroup(typ string, do func(*history, context.Context, time.Time, string) (failures.Group, error)) deed {
	return func(h *history, ctx context.Context, t time.Time) error {
		found, err := h.desk.Groups.List(ctx, t, failures.Filter{Type: typ}, failures.Cursor{}, 1)
		if err != nil {
			return err
		}

		fingerprint := ""
		if len(found.Groups) > 0 {
			fingerprint = found.Groups[0].Fingerprint
		}

		_, err = do(h, ctx, t, fingerprint)

		return err
	}
}
