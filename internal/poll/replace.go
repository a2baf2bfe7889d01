package poll

import (
	"context"
	"maps"
	"slices"
	"sync"

	"redrive/internal/source"
)

// Replace makes these the attached sources. A source whose fingerprint is the same goes on
// undisturbed. One that is no longer among them ends as in Close. All others start; a source that
// was changed starts with its new settings when the goroutine with the old ones has ended.
//
// Replace does not wait for sources that end. Health and Check know the new sources at once.
func (s *Sources) Replace(all []Attached) {
	s.changing.Lock()
	defer s.changing.Unlock()

	// Keep the sources that are unchanged, and make the others.
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

	// From here on pages and commits see the new list. A commit that saw the old list has woken
	// the old source only, but the new source finds the request in its first round.
	s.list.Store(now)

	if !s.working { // Start will start them
		return
	}

	// Stop the sources that were replaced or removed, and start those that are new.

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

// attach makes a source that does nothing until start. It shares the tally of the source with the
// same name before it, if there was one.
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

// start starts the goroutine of a source. No two goroutines work for one name at the same time:
// this one first waits until the one before it, which was told to quit, has ended.
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

// tally counts how requests to a source ended since it was attached. It is kept when the settings
// of the source change, because the goroutine with the old settings may still end a request.
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

// end counts requests by their kind and by how they ended. kinds has their kinds by their ids.
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
