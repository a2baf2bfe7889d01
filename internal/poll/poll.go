// Package poll keeps the mirror of each source up to date, and carries out at the source what
// people ask for.
//
// Each source has a goroutine of its own, so that a slow source, or one that does not answer,
// delays no other. The goroutine works in rounds. A round has these steps (see attached.round):
//
//   - It compares the address of the source with the one that its stored jobs came from. If the
//     URL names another place, the round ends here: the records there could have the same keys as
//     the old ones.
//   - It connects, if there is no connection, and checks every ten minutes whether the source is
//     what its preset describes, and what it allows.
//   - It looks up the outcome of requests that were being carried out when an earlier process
//     ended, and carries out new ones (requests.go).
//   - It reads the dead records: first the newest ones, as long as some of them are unseen, and then
//     a slice of a scan through all of them, beginning where the last round ended (scan.go).
//     Records that cannot be kept go into quarantine (quarantine.go). When the scan has reached the
//     end, the source is asked for each record that the scan has not met, and a record is gone only
//     if the source says so. A source that cannot tell yet is asked again a few seconds later.
//   - It asks which replayed jobs have succeeded, if the system of the source keeps that.
//
// After a round that failed, the next one comes after a pause that grows. The mirror stays as it
// is meanwhile, and the page of the source says since when it has not answered.
//
// The list of sources can change while they work: see [Sources.Replace].
package poll

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// Store keeps the mirror. A source is given by its name.
type Store interface {
	// Update takes over dead records, as new jobs or as the next runs of known ones. It returns how
	// many jobs were added or changed.
	Update(ctx context.Context, now time.Time, name string, records []source.Record) (int, error)

	// Vanished ends the jobs with these numbers, whose records have left the source.
	Vanished(ctx context.Context, now time.Time, name string, seqs []int64) (int, error)

	// SettleActs writes how requests ended.
	SettleActs(ctx context.Context, now time.Time, results []source.Result) error

	// Succeeded completes replayed jobs that have succeeded at the source, and returns how many.
	Succeeded(ctx context.Context, now time.Time, name string, all []source.Success) (int, error)
}

// Records reads what the mirror has of the records of a source. A record is present if it was
// still at the source when the source was last asked.
type Records interface {
	// Unseen returns the given records without those that are mirrored in the same version.
	Unseen(ctx context.Context, name string, records []source.Record) ([]source.Record, error)

	// Duplicates returns the present records that have the lineage of one of the given ones, and
	// another key.
	Duplicates(ctx context.Context, name string, records []source.Record) ([]source.Present, error)

	// PresentKeys returns the keys of at most limit present records that were read before a time:
	// those whose jobs have a number higher than after, in the order of these numbers.
	PresentKeys(ctx context.Context, name string, before time.Time, after int64, limit int) ([]source.PresentKey, error)

	// Present returns the records of the jobs with these numbers, as far as they are present.
	Present(ctx context.Context, seqs []int64) ([]source.Present, error)

	// Locate compares the address of a source with the one that its stored jobs came from. It
	// returns the latter if they differ and movedFrom does not say that both are the same place, and
	// "" otherwise.
	Locate(ctx context.Context, name, address, movedFrom string) (earlier string, err error)
}

// Requests are what people ask sources to do. A request waits until it is taken, has begun from
// then on, and ends when it is settled (see Store.SettleActs).
type Requests interface {
	// Waiting reports whether a request to the source waits.
	Waiting(ctx context.Context, name string) (bool, error)

	// Take returns at most limit requests that waited, and writes that they have begun.
	Take(ctx context.Context, name string, limit int) ([]source.Act, error)

	// Begun returns at most limit requests that have begun and have not ended.
	Begun(ctx context.Context, name string, limit int) ([]source.Act, error)

	// Reopen makes requests that had begun wait again.
	Reopen(ctx context.Context, ids []int64) error

	// Returned returns at most limit replayed jobs that the source has back, the newest first:
	// those that are older than before, or the newest of all for a zero before.
	Returned(ctx context.Context, name string, before source.ReplayedJob, limit int) ([]source.ReplayedJob, error)
}

// How much is done at once.
const (
	pageSize   = 500       // records in one answer of the source
	firstSlice = 5000      // records that one round scans until the first scan has ended
	sliceSize  = 1000      // records that one round scans after that
	stepBytes  = 4_000_000 // bytes of records in one transaction of the store
	keysAtOnce = 5000      // keys of present records in one answer of the store
	actsAtOnce = 100       // requests that are sent to the source together
)

// How long a source is waited for, and how often it is asked.
const (
	patience   = 30 * time.Second // how long one answer of a source may take
	lateAnswer = 5 * time.Second  // the same for the answer to a request when the program ends
	checkEvery = 10 * time.Minute // the time from one check of the source to the next
	askAgain   = 5 * time.Second  // the pause if the source could not tell something yet

	// The pause after a round that failed is doubled each time, between these bounds.
	retryLeast = time.Second
	retryMost  = time.Minute
)

// Attached is a source as redrive.yaml configures it.
type Attached struct {
	Name    string
	Preset  *preset.Preset
	Profile source.Profile                                   // the profile of the preset, changed as redrive.yaml says
	Allow   []source.Kind                                    // what may be asked of the source
	Every   time.Duration                                    // the pause between two rounds
	Open    func(ctx context.Context) (source.Origin, error) // connects to the source

	// Address is where the dead letters of the source are. MovedFrom is an earlier address of the
	// same dead letters. A source without an address is never compared with where its jobs came
	// from.
	Address, MovedFrom string

	// Fingerprint changes when redrive.yaml changes what it says about the source. It must not be
	// logged.
	Fingerprint string
}

// Sources are all attached sources. The methods are safe for concurrent use.
type Sources struct {
	hide func(string) string // hides the secrets in a text
	log  *slog.Logger

	// The sources, for pages and commits, which must not wait for a mutex.
	list atomic.Pointer[list]

	// Start, Replace and Close hold the mutex changing while they change the fields below.
	changing sync.Mutex
	working  bool // between Start and Close
	store    Store
	records  Records
	requests Requests
	last     map[string]<-chan struct{} // by name; closed when the newest goroutine of the source has ended

	running sync.WaitGroup // the goroutines of all sources
}

// list has the sources as of one version of redrive.yaml. It never changes.
type list struct {
	all   map[string]*attached
	names []string
}

// attached is an attached source with the state of its goroutine.
type attached struct {
	Attached
	store    Store
	records  Records
	requests Requests
	hide     func(string) string // hides the secrets in a text
	log      *slog.Logger
	wake     chan struct{}      // has an element if a request may wait
	quit     context.CancelFunc // ends the goroutine
	tally    *tally

	mu     sync.Mutex
	health source.Health // without the counts of the tally

	// Only the goroutine uses the fields below. The connection to the source:
	origin  *guarded  // nil: there is none
	located bool      // the address was compared, and is the right one (see locate)
	checked time.Time // when the source was last checked
	settled bool      // no request has begun whose outcome is unknown

	// How far the source was read:
	scan       scan
	page       int                // how many pages were read
	polled     source.ReplayedJob // the last job that was asked for successes, apart from the newest jobs
	soon       bool               // ask again soon: the source could not tell something yet, or has a newer record
	tookBefore time.Duration      // how long the round before the last one took

	// The records that could not be taken over:
	quarantine quarantine
	beyond     map[int64]overflow // those of the last whole scan for which the quarantine had no room
}

// New returns sources that do nothing until Start. hide hides the secrets in a text.
func New(all []Attached, hide func(string) string, log *slog.Logger) *Sources {
	s := &Sources{hide: hide, log: log, last: map[string]<-chan struct{}{}}
	s.list.Store(&list{})
	s.Replace(all)
	return s
}

// Start starts the goroutines of all sources. They work until Close.
func (s *Sources) Start(store Store, records Records, requests Requests) {
	s.changing.Lock()
	defer s.changing.Unlock()

	s.store, s.records, s.requests = store, records, requests
	s.working = true
	for _, a := range s.list.Load().all {
		s.start(a)
	}
}

// Close stops all sources, and waits for their goroutines. A request that is being carried out is
// settled first if the source answers within seconds. Otherwise its outcome is looked up at the
// next start.
func (s *Sources) Close() {
	s.changing.Lock()

	s.working = false
	for _, a := range s.list.Load().all {
		a.quit()
	}
	s.changing.Unlock()

	s.running.Wait()
}

// Health returns the health of all sources, in the order of their names.
func (s *Sources) Health() []source.Health {
	var all []source.Health

	attached := s.list.Load()
	for _, name := range attached.names {
		a := attached.all[name]

		a.mu.Lock()
		h := a.health
		a.mu.Unlock()

		h.Acts, h.Succeeded = a.tally.read()
		all = append(all, h)
	}

	return all
}

// Attached reports whether a source is attached.
func (s *Sources) Attached(name string) bool { return s.list.Load().all[name] != nil }

// Check returns why a source cannot do what a user asks for, or "". Jobs of a source that is not
// attached can be discarded all the same: the source is not told, and only Redrive ends the job.
func (s *Sources) Check(name string, r source.Request) string {
	a := s.list.Load().all[name]
	kind := r.Kind

	switch {
	case a == nil && kind == source.Discard:
		return ""
	case a == nil:
		return fmt.Sprintf("the source %s is not attached: name it under sources in redrive.yaml", name)
	case !slices.Contains(a.Allow, kind):
		return fmt.Sprintf("the source %s does not allow a %s: add %s to its field allow in redrive.yaml", name, kind, kind)
	}

	if a.moved() {
		return fmt.Sprintf("the URL of the source %s names another place than the one that its jobs are from: see its page", name)
	}

	if why := a.Profile.Unsupported(r); why != "" {
		return fmt.Sprintf("the source %s cannot do this: %s", name, why)
	}

	return ""
}

// Changed is told which jobs a commit changed, and wakes the sources that are asked to do
// something for them. It never waits.
func (s *Sources) Changed(changes []job.Change) {
	attached := s.list.Load()
	for _, c := range changes {
		a := attached.all[c.Source] // nil for a job of Redrive's own
		if a != nil && (c.State == job.Returning || c.DeadLetter == job.DeadLetterTrashed) {
			a.notify()
		}
	}
}

// notify wakes the goroutine while it rests.
func (a *attached) notify() {
	select {
	case a.wake <- struct{}{}:
	default: // it has not reacted to an earlier notify yet
	}
}
