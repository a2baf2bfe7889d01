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
	"fmt"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/redact"
	"redrive/internal/store"
	"redrive/internal/store/health"
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

// Ping reports whether the database can be written.
func (v *View) Ping(ctx context.Context) error { return v.store.Ping(ctx) }

// Problem says why nothing can be written, and since when; or nothing.
func (v *View) Problem() (text string, since time.Time) {
	if problem := v.store.Problem(); problem != nil {
		return problem.Words, problem.Since
	}
	return "", time.Time{}
}

// Failed says why nothing will be written any more, or nothing.
func (v *View) Failed() string {
	select {
	case <-v.store.Failed():
		return v.store.Problem().Words
	default:
		return ""
	}
}

// Hindrances are what keeps the server of the database from cleaning up, the oldest first.
func (v *View) Hindrances() []health.Hindrance { return v.store.Hindrances() }
