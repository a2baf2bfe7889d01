// Package attach keeps the mirror of each source current and carries out what people
// ask of it.
//
// Every source has a goroutine of its own, so that one that is slow or away disturbs no
// other. In each round it looks up what had begun when an earlier process ended, carries
// out what the ledger asks for, and reads what lies dead: the newest records first, as
// long as they bring news, and then a slice of all others, from where the last round
// ended. A record that was not met between the beginning and the end of a whole pass is
// asked for once more by its name, and is gone only if the source says so. A source that
// cannot tell that yet is asked again a few seconds later. At last the
// source is asked, where its system keeps that, which of the jobs that it took have
// succeeded: nothing when there are none.
//
// A source is checked when it is connected, and every ten minutes after that: whether it is
// what its preset describes, and what it allows. A round that fails is tried again after a
// pause that grows. Nothing of a source is forgotten meanwhile: its page says since when it
// has not answered.
package attach

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/store/sources"
)

// Store is what the mirror is kept in.
type Store interface {
	Mirror(ctx context.Context, now time.Time, name string, records []source.Record) (int, error)
	Vanished(ctx context.Context, now time.Time, name string, seqs []int64) (int, error)
	SettleActs(ctx context.Context, now time.Time, results []source.Result) error
	Succeeded(ctx context.Context, now time.Time, name string, all []source.Success) (int, error)
}

// Ledger is what people ask of sources, and what is known to lie there.
type Ledger interface {
	News(ctx context.Context, name string, records []source.Record) ([]source.Record, error)
	Twins(ctx context.Context, name string, records []source.Record) ([]sources.Lying, error)
	Lies(ctx context.Context, name string, before time.Time, after int64, limit int) ([]sources.Named, error)
	Lying(ctx context.Context, seqs []int64) ([]sources.Lying, error)
	Take(ctx context.Context, name string, most int) ([]source.Act, error)
	Waiting(ctx context.Context, name string) (bool, error)
	Begun(ctx context.Context, name string, most int) ([]source.Act, error)
	Reopen(ctx context.Context, ids []int64) error
	Handed(ctx context.Context, name string, before source.Handed, limit int) ([]source.Handed, error)
}

// The rhythm of a source.
const (
	pageSize   = 500  // records that are read at once
	firstSlice = 5000 // records of a round, before a whole pass was made
	sliceSize  = 1000 // records of a round, afterwards
	namesOnce  = 5000 // keys of what lies there that the store is asked for at once
	actsAtOnce = 100
	checkEvery = 10 * time.Minute
	askAgain   = 5 * time.Second // when something is to be learned soon
	retryLeast = time.Second
	retryMost  = time.Minute
	patience   = 30 * time.Second // for one answer of a source
)

// Attached is a source as redrive.yaml names it.
type Attached struct {
	Name    string
	Preset  *preset.Preset
	Profile source.Profile // of the preset, with what redrive.yaml says
	Allow   []source.Kind
	Every   time.Duration
	Open    func(ctx context.Context) (source.Origin, error)
}

// Sources are all attached sources. The methods are safe for concurrent use.
type Sources struct {
	all   map[string]*attached
	names []string
	quit  context.CancelFunc
	ended sync.WaitGroup
}

// attached is a source at work.
type attached struct {
	Attached
	store  Store
	ledger Ledger
	hide   func(string) string // takes secrets out of texts
	log    *slog.Logger
	wake   chan struct{}

	mu     sync.Mutex
	health source.Health

	// Owned by the goroutine.
	origin  source.Origin
	checked time.Time // when the source was checked last
	settled bool      // what had begun before was looked up
	soon    bool      // the source is asked again soon: it could not tell something yet, or has a newer record
	pass    pass
	asked   source.Handed // up to which the source was asked for successes; the newest are asked for each time
}

// pass is one reading of all that lies at a source.
type pass struct {
	began time.Time
	next  string          // where it goes on; empty at its beginning
	seen  map[int64]int64 // marks of records by those of their keys
	fresh bool            // all records of the last page were new
}

// New returns sources that do nothing yet.
func New(all []Attached, hide func(string) string, log *slog.Logger) *Sources {
	s := &Sources{all: map[string]*attached{}, quit: func() {}}
	for _, a := range all {
		s.all[a.Name] = &attached{
			Attached: a, hide: hide, log: log.With("source", a.Name), wake: make(chan struct{}, 1),
			health: source.Health{Name: a.Name, Preset: a.Preset.Name, Profile: a.Profile, Allow: a.Allow, Every: a.Every,
				Acts: map[source.End]int64{}},
		}
	}
	s.names = slices.Sorted(maps.Keys(s.all))
	return s
}

// Start begins to keep the mirrors current, until Close.
func (s *Sources) Start(store Store, ledger Ledger) {
	ctx, quit := context.WithCancel(context.Background())
	s.quit = quit
	for _, a := range s.all {
		a.store, a.ledger = store, ledger
		s.ended.Go(func() { a.run(ctx) })
	}
}

// Close ends all sources. An act that is under way is settled first, or looked up at the
// next start.
func (s *Sources) Close() {
	s.quit()
	s.ended.Wait()
}

// Health tells how the sources fare, by their names.
func (s *Sources) Health() []source.Health {
	var all []source.Health
	for _, name := range s.names {
		a := s.all[name]
		a.mu.Lock()
		h := a.health
		h.Acts = maps.Clone(h.Acts)
		a.mu.Unlock()
		all = append(all, h)
	}
	return all
}

// Refuses says why a source does not do what somebody asks for; empty when it does.
func (s *Sources) Refuses(name string, w source.Wish) string {
	a, kind := s.all[name], w.Kind
	switch {
	case a == nil:
		return fmt.Sprintf("the source %s is not attached: name it under sources in redrive.yaml", name)
	case !slices.Contains(a.Allow, kind):
		return fmt.Sprintf("the source %s does not allow a %s: add %s to its field allow in redrive.yaml", name, kind, kind)
	}
	if lacks := a.Profile.Lacks(w); lacks != "" {
		return fmt.Sprintf("the source %s cannot do this: %s", name, lacks)
	}
	return ""
}

// Changed is told what a commit did, and wakes the sources that are asked for
// something. It never waits.
func (s *Sources) Changed(changes []job.Change) {
	for _, c := range changes {
		name := source.Of(c.Queue)
		if name == "" {
			continue
		}
		if a := s.all[name]; a != nil && (c.State == job.Pending || c.Letter == job.LetterTrashed) {
			a.notify()
		}
	}
}

func (a *attached) notify() {
	select {
	case a.wake <- struct{}{}:
	default: // it looks anyhow
	}
}

// run works in rounds until the end of ctx.
func (a *attached) run(ctx context.Context) {
	defer a.drop()
	for wait := time.Duration(0); ctx.Err() == nil; {
		began := time.Now()
		err := a.round(ctx)
		if ctx.Err() != nil {
			return
		}
		a.note(began, err)
		if err == nil {
			wait = 0
			a.rest(ctx, a.pause())
			continue
		}
		a.drop()
		wait = min(max(2*wait, retryLeast), retryMost)
		sleep(ctx, wait)
	}
}

// pause is how long the source is left alone: not at all before the first whole pass.
func (a *attached) pause() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	d := max(a.Every, 10*a.health.Took) // a source that is slow is asked less often
	switch {
	case a.soon:
		return min(d, askAgain)
	case !a.health.Ready:
		return 0
	}
	return d
}

// rest waits, and carries out meanwhile what people ask for.
func (a *attached) rest(ctx context.Context, d time.Duration) {
	for end := time.Now().Add(d); ; {
		select {
		case <-ctx.Done():
			return
		case <-time.After(time.Until(end)):
			return
		case <-a.wake:
			if err := a.act(ctx); err != nil {
				a.note(time.Now(), err)
				return
			}
			if again := time.Now().Add(askAgain); a.soon && again.Before(end) {
				end = again // and no later for what is asked meanwhile
			}
		}
	}
}

// drop closes the connection; the next round opens another.
func (a *attached) drop() {
	if a.origin == nil {
		return
	}
	if err := a.origin.Close(); err != nil {
		a.log.Debug("The connection to a source did not close.", "error", err)
	}
	a.origin = nil
}

// note remembers how a round ended, and logs when that changes.
func (a *attached) note(began time.Time, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	h := &a.health
	if err == nil {
		if h.Problem != "" {
			a.log.Info("A source answers again.", "after", time.Since(h.Since).Round(time.Second))
		}
		h.Problem, h.Since, h.Polled, h.Took = "", time.Time{}, time.Now(), time.Since(began)
		return
	}
	if h.Problem == "" {
		h.Since = time.Now()
		a.log.Warn("A source does not answer. Redrive will try again.", "error", err)
	}
	h.Problem = err.Error()
}

// round does everything once.
func (a *attached) round(ctx context.Context) error {
	a.soon = false
	for _, step := range []func(context.Context) error{a.open, a.lookUp, a.act, a.newest, a.sweep, a.hear} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// open connects with the source and checks it. It is checked again now and then, because
// rights, versions and limits change while a source is attached.
func (a *attached) open(ctx context.Context) error {
	if a.origin != nil && time.Since(a.checked) < checkEvery {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if a.origin == nil {
		origin, err := a.Open(ctx)
		if err != nil {
			return err
		}
		a.origin = origin
	}
	report, err := a.origin.Check(ctx)
	if err != nil {
		return err
	}
	a.checked = time.Now()
	a.mu.Lock()
	a.health.Report = report
	a.mu.Unlock()
	return nil
}

// lookUp settles what had begun when an earlier process ended, or when the connection
// broke: the source is asked where the records are.
func (a *attached) lookUp(ctx context.Context) error {
	for !a.settled {
		acts, err := a.ledger.Begun(ctx, a.Name, actsAtOnce)
		if err != nil {
			return err
		}
		if len(acts) == 0 {
			a.settled = true
			return nil
		}
		found, err := a.find(ctx, acts)
		if err != nil {
			return err
		}
		again, ended := outcomes(acts, found)
		if err := a.settle(ctx, acts, ended); err != nil {
			return err
		}
		if err := a.ledger.Reopen(ctx, again); err != nil {
			return err
		}
		if len(found) < len(acts) {
			a.soon = true
			return nil
		}
	}
	return nil
}

// outcomes says of acts that had begun, by where their records were found, which of them
// have not happened and how the others ended.
func outcomes(acts []source.Act, found []source.Result) (again []int64, ended []source.Result) {
	for _, r := range found {
		i := slices.IndexFunc(acts, func(a source.Act) bool { return a.ID == r.ID })
		discards := acts[i].Kind == source.Discard
		switch {
		case r.State == source.Asked: // it lies there as it was: nothing has happened
			again = append(again, r.ID)
			continue
		case discards && r.State == source.Done: // the job is under way, so it was not removed
			r.State, r.Why = source.Gone, "It was replayed elsewhere and is under way again."
		case discards && r.State == source.Gone: // the record was removed
			r.State = source.Done
		case !discards && r.State == source.Changed: // the job ran, and died again
			r.State, r.Why = source.Done, ""
		case r.State == source.Gone:
			r.State, r.Why = source.Unknown, "the process ended while the source was told, and the record lies there no more"
		}
		ended = append(ended, r)
	}
	return again, ended
}

func (a *attached) find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return a.origin.Find(ctx, acts)
}

// act carries out what the ledger asks for. Once the source was told, the answer is
// written down also when the program is about to end.
func (a *attached) act(ctx context.Context) error {
	for ctx.Err() == nil {
		if waits, err := a.ledger.Waiting(ctx, a.Name); !waits || err != nil {
			return err
		}
		acts, err := a.ledger.Take(ctx, a.Name, actsAtOnce)
		if err != nil || len(acts) == 0 {
			return err
		}
		telling, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
		results, err := a.origin.Act(telling, acts)
		cancel()
		results, untold := sorted(results)
		if len(untold) > 0 {
			err = errors.Join(err, a.ledger.Reopen(context.WithoutCancel(ctx), untold))
		}
		if settled := a.settle(context.WithoutCancel(ctx), acts, results); settled != nil || err != nil {
			a.settled = false // the others have begun, and nobody knows more
			if err == nil {
				err = settled
			}
			return err
		}
		if len(untold) > 0 {
			a.soon = true
			return nil
		}
	}
	return nil
}

// sorted are the results of acts that have ended, and those of which the source was not
// told: they are asked for as before.
func sorted(results []source.Result) (ended []source.Result, untold []int64) {
	for _, r := range results {
		if r.State == source.Asked {
			untold = append(untold, r.ID)
		} else {
			ended = append(ended, r)
		}
	}
	return ended, untold
}

// settle writes down how acts ended, and counts them.
func (a *attached) settle(ctx context.Context, acts []source.Act, results []source.Result) error {
	if len(results) == 0 {
		return nil
	}
	if err := a.store.SettleActs(ctx, time.Now(), results); err != nil {
		return err
	}
	kinds := map[int64]source.Kind{}
	for _, act := range acts {
		kinds[act.ID] = act.Kind
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, r := range results {
		a.health.Acts[source.End{Kind: kinds[r.ID], State: r.State}]++
		a.soon = a.soon || r.State == source.Changed
	}
	return nil
}

// hear asks the source which of the jobs that it took have succeeded: those that it took
// last, and a page of the others, from where the last round ended.
func (a *attached) hear(ctx context.Context) error {
	a.mu.Lock()
	tells := a.health.Report.Tells
	a.mu.Unlock()
	if !tells {
		return nil
	}
	last, more, err := a.hearOf(ctx, source.Handed{})
	if err != nil || !more {
		a.asked = source.Handed{}
		return err
	}
	if a.asked.Seq == 0 {
		a.asked = last
	}
	if a.asked, more, err = a.hearOf(ctx, a.asked); !more {
		a.asked = source.Handed{}
	}
	return err
}

// hearOf asks for the jobs of a page, and returns the last of them and whether there are
// more.
func (a *attached) hearOf(ctx context.Context, before source.Handed) (last source.Handed, more bool, err error) {
	handed, err := a.ledger.Handed(ctx, a.Name, before, pageSize)
	if err != nil || len(handed) == 0 {
		return last, false, err
	}
	asking, cancel := context.WithTimeout(ctx, patience)
	succeeded, err := a.origin.Succeeded(asking, handed)
	cancel()
	if err == nil && len(succeeded) > 0 {
		var n int
		n, err = a.store.Succeeded(ctx, time.Now(), a.Name, succeeded)
		a.mu.Lock()
		a.health.Succeeded += int64(n)
		a.mu.Unlock()
	}
	return handed[len(handed)-1], len(handed) == pageSize, err
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
