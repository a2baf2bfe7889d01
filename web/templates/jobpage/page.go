// Package jobpage draws one job: the page /jobs/{id}, and the page
// /jobs/{id}/replay, which edits a job and replays it.
//
// The page of a job first says, in words, when the job runs again and why
// at that time, or what became of it (headline.templ). A timeline draws every
// attempt of every run on one scale, and the attempts to come as package retry
// computes them, which is what the engine will do (forecast.go). The evidence
// follows: each attempt with who decided about it and how its delay was
// computed (decisions.go), and what came of it (runs.templ). At the side are
// the facts, the policy with the origin of each field, the payload and the
// history (facts.go).
//
// A payload is shown to the byte: tree.go points into it and decodes no value.
// What a replay changed is compared line by line (changes.go).
//
// Words are in the templates, next to the branch that chooses them. What has to
// be computed first, a place on the timeline, a forecast or a difference, is in
// the Go files and is tested there.
package jobpage

import (
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/web/templates"
)

// View is the page /jobs/{id}.
type View struct {
	templates.Frame
	history.Detail
	KeepsDeadLetters bool           // the job's queue has a dead-letter queue
	ForwardedTo      string         // the host to which that queue forwards its dead letters, or empty
	Waits            bool           // it is claimed, but has not begun: it waits for its previous execution to return, then for a worker
	StuckSince       time.Time      // since when that execution should have returned; zero when it is waited for no more
	StuckUntil       time.Time      // until when it is waited for
	NoHandler        bool           // no handler knows the job's type
	PausedAt         time.Time      // since when the job's queue is paused; zero when it runs
	PausedBy         string         // who paused it, or empty when that is unknown
	Recent           []job.Job      // the newest jobs of the type, the newest first
	RecentSlow       bool           // they took too long to find
	Preview          int            // bytes of the payload that are shown; all of it is one link away
	More             bool           // this page can show more of it
	Trail            []audit.Entry  // of the audit log, about this job, newest first
	Origin           *source.Health // the attached source of the job; nil: it has none, or none is attached
	Revealed         bool           // nothing is redacted, this once
}
