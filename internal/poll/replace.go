package poll

import (
	"context"
	"maps"
	"slices"
	"sync"

	"redrive/internal/source"
)

// Replace makes these the attached sources. Those whose fingerprint is the same go on
// undisturbed; those that are no longer named end as in Close; all others start, a changed
// one with its new settings as soon as the one of its name before it has ended.
//
// Replace does not wait for sources that end. What Health and Check say follows at once.
func (s *Sources) Replace(all []Attached) {
	s.changing.Lock()
	defer s.changing.Unlock()

	before := s.list.Load()
	now := &list{all: map[string]*attached{}}
	for _, a := range all {
		old := before.all[a.Name]
		if old != nil && old.Fingerprint == a.Fingerprint {
			now.all[a.Name] = old
			continue
		}

		now.all[a.Name] = s.attach(a, old)
	}

	now.names = slices.Sorted(maps.Keys(now.all))

	// From here on pages and commits see the new list. A commit that saw the old one is
	// found by the new source in its first round.
	s.list.Store(now)

	if !s.working { // Start starts them
		return
	}

	for name, a := range before.all {
		if now.all[name] != a {
			a.quit()
		}
	}

	for name, a := range now.all {
		if before.all[name] != a {
			s.start(a)
		}
	}
}

// attach makes a source that does nothing yet. It goes on counting where the one of its
// name before it has come to.
func (s *Sources) attach(a Attached, before *attached) *attached {
	counted := &tally{acts: map[source.End]int64{}}
	if before != nil {
		counted = before.tally
	}

	return &attached{
		Attached: a, hide: s.hide, log: s.log.With("source", a.Name), wake: make(chan struct{}, 1), quit: func() {}, tally: counted,
		health:     source.Health{Name: a.Name, Preset: a.Preset.Name, Profile: a.Profile, Allow: a.Allow, Every: a.Every},
		quarantine: quarantine{},
	}
}

// start lets a source work. No two sources of one name work at the same time: this one
// waits until the goroutine of the one before it, which was told to quit, has ended.
func (s *Sources) start(a *attached) {
	ctx, quit := context.WithCancel(context.Background())
	a.quit = quit
	a.store, a.records, a.requests = s.store, s.records, s.requests

	before, ended := s.last[a.Name], make(chan struct{})
	s.last[a.Name] = ended
	s.running.Go(func() {
		defer close(ended)

		if before != nil {
			<-before
		}

		a.run(ctx)
	})
}

// tally counts what came of the acts on a source since it was attached. It stays when the
// settings of the source change: what the source did with the old ones as it ended counts.
type tally struct {
	mu        sync.Mutex
	acts      map[source.End]int64
	succeeded int64
}

func (t *tally) read() (acts map[source.End]int64, succeeded int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return maps.Clone(t.acts), t.succeeded
}

// end counts acts by how they ended.
func (t *tally) end(kinds map[int64]source.Kind, results []source.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()

	for _, r := range results {
		t.acts[source.End{Kind: kinds[r.ID], State: r.State}]++
	}
}

// succeed counts replayed jobs that have succeeded.
func (t *tally) succeed(n int) {
	t.mu.Lock()
	defer t.mu.Unlock()

	t.succeeded += int64(n)
}
