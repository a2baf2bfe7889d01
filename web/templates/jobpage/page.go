package jobpage

import (
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/web/templates"
)

// View is the page /jobs/{id}.
type View struct {
	templates.Frame
	history.Detail
	DeadLetters bool          // the job's queue has a dead-letter queue
	ForwardedTo string        // the host to which that queue forwards its dead letters, or empty
	Waits       bool          // it is claimed, but has not begun: it waits for its previous execution to return, then for a worker
	StuckSince  time.Time     // since when that execution should have returned; zero when it is waited for no more
	StuckUntil  time.Time     // until when it is waited for
	NoHandler   bool          // no handler knows the job's type
	PausedAt    time.Time     // since when the job's queue is paused; zero when it runs
	PausedBy    string        // who paused it, or empty when nobody said
	Recent      []job.Job     // the newest jobs of the type, the newest first
	RecentSlow  bool          // they took too long to find
	Preview     int           // bytes of the payload that are shown; all of it is one link away
	Trail       []audit.Entry // of the audit log, about this job, newest first
	Revealed    bool          // nothing is redacted, this once
}
