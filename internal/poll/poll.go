// Package poll keeps the mirror of each source current and carries out what people
// ask of it.
//
// Every source has a goroutine of its own, so that one that is slow or away disturbs no
// other. In each round it
//
//   - looks up what had begun when an earlier process ended, and carries out what people ask
//     of the source (requests.go);
//   - reads the dead records: the newest first, as long as some of them are unseen, and then a
//     slice of a scan through all of them, from where the last round ended (scan.go). A record
//     that a whole scan has not met is asked for once more by its name, and is gone only if
//     the source says so. A source that cannot tell that yet is asked again a few seconds
//     later. Records that cannot be kept go into quarantine (quarantine.go);
//   - polls for successes where the system keeps what has succeeded, and only while the source
//     has jobs back.
//
// Before all that, its address is compared with the one that its jobs are from. A source
// whose URL names another place is neither read nor asked for anything: records there could
// have the keys of the old ones.
//
// A source is checked when it is connected, and every ten minutes after that: whether it is
// what its preset describes, and what it allows. A round that fails is tried again after a
// pause that grows. Nothing of a source is forgotten meanwhile: its page says since when it
// has not answered.
//
// The list of sources can change while they work, see [Sources.Replace].
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

// Store keeps the mirror.
type Store interface {
	Update(ctx context.Context, now time.Time, name string, records []source.Record) (int, error)
	Vanished(ctx context.Context, now time.Time, name string, seqs []int64) (int, error)
	SettleActs(ctx context.Context, now time.Time, results []source.Result) error
	Succeeded(ctx context.Context, now time.Time, name string, all []source.Success) (int, error)
}

// Records tells what the mirror knows of the records of a source.
type Records interface {
	// Unseen leaves out the records that are mirrored as they are.
	Unseen(ctx context.Context, name string, records []source.Record) ([]source.Record, error)

	// Duplicates are records that are still present and have the lineage of one of these.
	Duplicates(ctx context.Context, name string, records []source.Record) ([]source.Present, error)

	// PresentKeys pages through the keys of records that are present and that were read before
	// a time, in the order of the numbers of their jobs.
	PresentKeys(ctx context.Context, name string, before time.Time, after int64, limit int) ([]source.PresentKey, error)

	// Present returns those of the records of jobs that are present.
	Present(ctx context.Context, seqs []int64) ([]source.Present, error)

	// Locate compares the address of a source with the one that its jobs are from, and returns
	// that one if it is another.
	Locate(ctx context.Context, name, address, movedFrom string) (earlier string, err error)
}

// Requests are what people ask of sources.
type Requests interface {
	// Waiting reports whether something is asked that was not taken yet.
	Waiting(ctx context.Context, name string) (bool, error)

	// Take returns requests that are carried out now. They have begun.
	Take(ctx context.Context, name string, most int) ([]source.Act, error)

	// Begun returns requests that were taken and have not ended.
	Begun(ctx context.Context, name string, most int) ([]source.Act, error)

	// Reopen lets requests that had begun be taken again.
	Reopen(ctx context.Context, ids []int64) error

	// Returned pages through the jobs that a source has back, the newest first.
	Returned(ctx context.Context, name string, before source.ReplayedJob, limit int) ([]source.ReplayedJob, error)
}

// How much is done at once.
const (
	pageSize   = 500       // records that are read
	firstSlice = 5000      // records of a round, before the first whole scan has ended
	sliceSize  = 1000      // records of a round, afterwards
	stepBytes  = 4_000_000 // of records that go to the store
	keysAtOnce = 5000      // keys of present records that the store is asked for
	actsAtOnce = 100       // acts that the source is asked for
)

// The rhythm of a source.
const (
	patience   = 30 * time.Second // for one answer of a source
	lateAnswer = 5 * time.Second  // for the answer to an act at the end of the program
	checkEvery = 10 * time.Minute // from one check of the source to the next
	askAgain   = 5 * time.Second  // when something is to be learned soon

	// The pause after a round that failed, which grows.
	retryLeast = time.Second
	retryMost  = time.Minute
)

// Attached is a source as redrive.yaml names it.
type Attached struct {
	Name    string
	Preset  *preset.Preset
	Profile source.Profile // of the preset, with what redrive.yaml says
	Allow   []source.Kind
	Every   time.Duration
	Open    func(ctx context.Context) (source.Origin, error)

	// Address is where its dead letters are, and MovedFrom where they were before, if what is
	// at Address now is the same. Without an address, the source can be anywhere.
	Address, MovedFrom string

	// Fingerprint is the same as long as redrive.yaml says the same of the source. It must
	// not be logged.
	Fingerprint string
}

// Sources are all attached sources. The methods are safe for concurrent use.
type Sources struct {
	hide func(string) string // takes secrets out of texts
	log  *slog.Logger

	// What pages and commits read. They wait for no source.
	list atomic.Pointer[list]

	// Start, Replace and Close hold the mutex while they change what follows.
	changing sync.Mutex
	working  bool // between Start and Close
	store    Store
	records  Records
	requests Requests
	last     map[string]<-chan struct{} // by name: closed when the goroutine that was started last has ended

	running sync.WaitGroup // the goroutines
}

// list has the sources as redrive.yaml names them at one time. It never changes.
type list struct {
	all   map[string]*attached
	names []string
}

// attached is a source at work.
type attached struct {
	Attached
	store    Store
	records  Records
	requests Requests
	hide     func(string) string // takes secrets out of texts
	log      *slog.Logger
	wake     chan struct{}
	quit     context.CancelFunc // ends the goroutine
	tally    *tally

	mu     sync.Mutex
	health source.Health // without what the tally counts

	// What follows is owned by the goroutine: first what it knows of the source,
	origin  *guarded
	located bool      // its jobs are from where it is
	checked time.Time // when the source was checked last
	settled bool      // what had begun before was looked up

	// how it reads the source,
	scan   scan
	page   int                // counts the pages that were read
	polled source.ReplayedJob // up to which the source was asked for successes; the newest are asked for each time
	soon   bool               // the source is asked again soon: it could not tell something yet, or has a newer record
	before time.Duration      // how long the round before the last one took

	// and what it could not take over.
	quarantine quarantine
	beyond     map[int64]overflow // records that found no place in it in the last whole scan
}

// New returns sources that do nothing yet.
func New(all []Attached, hide func(string) string, log *slog.Logger) *Sources {
	s := &Sources{hide: hide, log: log, last: map[string]<-chan struct{}{}}
	s.list.Store(&list{})
	s.Replace(all)
	return s
}

// Start begins to keep the mirrors current, until Close.
func (s *Sources) Start(store Store, records Records, requests Requests) {
	s.changing.Lock()
	defer s.changing.Unlock()

	s.store, s.records, s.requests = store, records, requests
	s.working = true
	for _, a := range s.list.Load().all {
		s.start(a)
	}
}

// Close ends all sources. An act that is under way is settled first, or looked up at the
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

// Health tells how the sources fare, by their names.
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

// Check says why a source does not do what a user asks for; empty when it does. Jobs of
// a source that is not attached can be discarded: only Redrive gives them up.
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

// Changed is told what a commit did, and wakes the sources that are asked for
// something. It never waits.
func (s *Sources) Changed(changes []job.Change) {
	attached := s.list.Load()
	for _, c := range changes {
		a := attached.all[c.Source] // nil for a job of Redrive's own
		if a != nil && (c.State == job.Returning || c.DeadLetter == job.DeadLetterTrashed) {
			a.notify()
		}
	}
}

func (a *attached) notify() {
	select {
	case a.wake <- struct{}{}:
	default: // it was woken before, and has not looked yet
	}
}
