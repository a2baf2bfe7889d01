// Package templates draws the pages. Each page is a templ component that takes
// one typed view; a view holds nouns of package job as they are, and the
// component does the wording. Nothing here reads a database or a clock: Frame
// carries the time at which the view was taken.
//
// Data reaches a page as text only: links are built by the functions in
// links.go, geometry lives in SVG attributes computed here, and there is no
// style attribute, no inline script and no raw HTML.
//
// Links are written as from the root. Where the product lives below a path,
// the server puts that path before them after the page is drawn: in href, src,
// action and formaction, and in data-live, data-on, data-off and every data-…
// whose name ends in -url. This is safe because each quote that comes from data
// is escaped: no data can look like an attribute.
package templates

import (
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/retry"
)

// Frame is what surrounds every page.
type Frame struct {
	Title      string
	Section    string // which entry of the navigation is current: "overview", "jobs", "dead-letters", "queues"
	Now        time.Time
	Snapshot   job.Snapshot
	QueueCount int         // for the navigation
	Search     string      // what the search field shows
	Demo       *Demo       // nil outside demo mode
	Insecure   bool        // reachable from the network without a login: said on every page
	Problem    string      // why the database cannot be written, or empty
	Acted      *job.Change // where the job stands that a form without scripts just acted on, or nil
	Here       string      // the address of this page, to which the undoing of Acted comes back
	Quiet      *Quiet      // since when the worker claims nothing, or nil
	User       string      // who is logged in, or empty
	Role       access.Role // what they may do; empty where there is no login: everything
	LogOut     bool        // they can log out here
	Stranger   bool        // nobody knows who looks: nothing of the product is shown
}

// Demo is the state of the demo's banner.
type Demo struct {
	Faults []Fault
	Until  string // what happens to the database at the end
}

// Fault is one named fault of the demo and its Break / Fix switch.
type Fault struct {
	Name, Title, About string
	Broken             bool
}

// Overview is the page /.
type Overview struct {
	Frame
	LastHour   []job.Totals // 60 minutes, oldest first
	Queues     []queues.Info
	Failing    []job.Job // newest failed jobs
	Refused    []Refused // newest first
	Reasons    []filter.ReasonCount
	Groups     []failures.Group // open ones with the most failures in the last day
	Letters    LetterRoom
	Operations []operation.Operation // under way, or paused; the oldest first
	FirstRun   bool                  // nothing was ever enqueued
	Slow       bool                  // a query ran into its deadline: Groups, Failing or Refused is incomplete
}

// Jobs is the page /jobs.
type Jobs struct {
	Frame
	Filter filter.Filter
	List   filter.List
	After  string            // the cursor of this page, empty for the first
	Slow   bool              // the query ran into its deadline: List is incomplete
	Errors map[string]string // field of the filter: what is wrong with it
	Query  Query
	Chart  *Chart // of the queue and the type that the filter names, or nil
}

// JobPage is the page /jobs/{id}.
type JobPage struct {
	Frame
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

// DeadLetters is the page /dead-letters.
type DeadLetters struct {
	Frame
	Filter  filter.Filter // Queue, Type, Reason, Error
	List    filter.LetterList
	After   string
	Refused []Refused
	Query   Query
	Letters LetterRoom
	Configs map[string]QueueConfig
	Groups  map[int64]failures.Group // to which the letters' jobs belong, by number
	Slow    bool
	Errors  map[string]string
}

// Refused is a job whose dead letter was not accepted, and why.
type Refused struct {
	job.Job
	Problem string
}

// LetterRoom is how full the dead-letter queue is, and what bounds it.
type LetterRoom struct {
	retention.Usage
	retention.Limits
}

// Queues is the page /queues.
type Queues struct {
	Frame
	Queues  []queues.Info
	Configs map[string]QueueConfig
	Held    []queues.Held
}

// QueueConfig is what the configuration says about a queue.
type QueueConfig struct {
	Workers     int
	Running     int // executions at this moment
	Policy      retry.Policy
	DeadLetters bool
	ForwardedTo string // the host to which dead letters are forwarded, or empty
}

// Login is the page /login.
type Login struct {
	Frame
	Next    string // the page here to which it leads
	Name    string // as it was typed before
	Problem string // why it was not accepted
	NoUsers bool   // nobody can log in yet
}

// Problem is any page that could not be shown.
type Problem struct {
	Frame
	Status    int
	Title     string // what happened
	Text      string // to what, and what to do
	RequestID string
}

// Conflict is what a form without scripts gets when the job had moved on
// before it arrived: somebody else was first, or the job is in another state.
type Conflict struct {
	Frame
	Action string // "replay", "discard", "cancel", "forward"
	Err    *job.Conflict
}
