package poll_test

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// world is a system that others use, too: workers run what is replayed, people replay and
// remove records there, and it is away or cannot tell for a while.
type world struct {
	mu      sync.Mutex
	crash   *crash
	tells   bool // what is under way
	away    bool
	hidden  bool           // all records are with a connection that broke
	at      map[string]at  // where each record is
	deaths  map[string]int // of each record; the last one is its version
	left    map[string]int // how often each record left the dead ones to run
	touched map[string]bool
	effects map[int64]int // what each act has changed
}

// at is where a record is.
type at string

const (
	dead    at = "dead"
	working at = "working"
	done    at = "done"
	removed at = "removed"
)

func newWorld(tells bool) *world {
	return &world{
		tells: tells, at: map[string]at{}, deaths: map[string]int{}, left: map[string]int{}, touched: map[string]bool{}, effects: map[int64]int{},
	}
}

// change lets something happen there.
func (w *world) change(do func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	do()
}

// keys are those of the records that are somewhere.
func (w *world) keys(where at) (keys []string) {
	for _, key := range slices.Sorted(maps.Keys(w.at)) {
		if w.at[key] == where {
			keys = append(keys, key)
		}
	}
	return keys
}

func (w *world) die(key string) {
	w.deaths[key]++
	w.at[key] = dead
}

func (w *world) version(key string) string { return strconv.Itoa(w.deaths[key]) }

// open is a connection, which is refused while the system is away.
func (w *world) open(context.Context) (source.Origin, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return nil, errAway
	}
	return w, nil
}

func (w *world) Check(context.Context) (source.Report, error) { return source.Report{}, nil }
func (w *world) Close() error                                 { return nil }

// Scan reads pages of three records.
func (w *world) Scan(_ context.Context, after string, _ int) (page source.Page, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.away:
		return page, errAway
	case w.hidden:
		return page, nil
	}
	for _, key := range w.keys(dead) {
		if key <= after {
			continue
		}
		if len(page.Records) == 3 {
			page.Next = page.Records[2].Key
			break
		}
		page.Records = append(page.Records, record(key, w.version(key)))
	}
	return page, nil
}

func (w *world) Act(_ context.Context, acts []source.Act) (results []source.Result, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.away:
		return source.NotAttempted(acts), errAway
	case w.hidden:
		return source.NotAttempted(acts), nil
	}
	for _, a := range acts {
		if err := w.crash.do(func() error { results = append(results, w.act(a)); return nil }); err != nil {
			return nil, err
		}
	}
	return results, nil
}

func (w *world) act(a source.Act) source.Result {
	r := source.Result{ID: a.ID, State: source.Done}
	switch {
	case w.at[a.Key] != dead:
		r.State = source.Gone
	case w.version(a.Key) != a.VersionToken:
		r.State = source.Changed
	case a.Kind == source.Discard:
		w.effects[a.ID]++
		w.at[a.Key] = removed
	default:
		w.effects[a.ID]++
		w.left[a.Key]++
		w.at[a.Key] = working
	}
	return r
}

func (w *world) Find(_ context.Context, acts []source.Act) (results []source.Result, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.away:
		return nil, errAway
	case w.hidden:
		return nil, nil
	}
	for _, a := range acts {
		where := w.at[a.Key]
		results = append(results, found(a, where == dead, w.version(a.Key), w.tells && (where == working || where == done)))
	}
	return results, nil
}

func (*world) Succeeded(context.Context, []source.ReplayedJob) ([]source.Success, error) {
	return nil, nil
}

// play is a random life of a source and of the processes that work on it.
type play struct {
	*life
	*world
	random *rand.Rand
	now    *poll.Sources
	met    map[string]int // how acts ended, and processes
}

// some is one of the keys of the records somewhere, or none.
func (p *play) some(where at) (key string, ok bool) {
	p.world.mu.Lock()
	defer p.world.mu.Unlock()
	keys := p.keys(where)
	if len(keys) == 0 {
		return "", false
	}
	return keys[p.random.IntN(len(keys))], true
}

// restart begins another process, which ends at a step unless that is 0.
func (p *play) restart(step int) {
	if p.now.Close(); p.world.crash.happened() {
		p.met["crashed"]++
	}
	c := &crash{at: step}
	p.world.change(func() { p.world.crash = c })
	p.now = p.process(c)
}

// event lets one thing happen.
func (p *play) event(n int) {
	p.Helper()
	w := p.world
	switch p.random.IntN(12) {
	case 0, 1:
		w.change(func() { w.die(fmt.Sprintf("k%02d", n)) })
	case 2: // a worker runs what it has, with success or not
		if key, ok := p.some(working); ok {
			w.change(func() { w.at[key] = done })
		}
	case 3, 4:
		if key, ok := p.some(working); ok {
			w.change(func() { w.die(key) })
		}
	case 5: // another program replays it there, and it may have died again before the next look
		if key, ok := p.some(dead); ok {
			w.change(func() {
				w.left[key]++
				w.touched[key] = true
				if w.at[key] = working; p.random.IntN(2) == 0 {
					w.die(key)
				}
			})
		}
	case 6:
		if key, ok := p.some(dead); ok {
			w.change(func() { w.at[key], w.touched[key] = removed, true })
		}
	case 7, 8, 9: // a person clicks here, on what the page shows
		p.click()
	case 10:
		w.change(func() { w.away, w.hidden = p.random.IntN(3) == 0, p.random.IntN(3) == 0 })
	case 11:
		p.restart(1 + p.random.IntN(24))
	}
	time.Sleep(time.Duration(p.random.Int64N(int64(3 * time.Second))))
}

// click asks for a replay or a discard of some job that is shown as dead.
func (p *play) click() {
	p.Helper()
	list, err := p.store.DeadLetters(p.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, 100)
	check(p.T, err)
	if len(list.DeadLetters) == 0 {
		return
	}
	j := list.DeadLetters[p.random.IntN(len(list.DeadLetters))].Job
	do := p.store.Replay
	if p.random.IntN(4) == 0 {
		do = p.store.Discard
	}
	if _, err := do(p.Context(), time.Now(), j.ID, j.Run, ana); err != nil {
		p.Logf("a click on %s in run %d: %v", j.Type, j.Run, err) // the page was too old
	}
}

// settled fails unless the ledger and the jobs say what has happened at the source.
func (p *play) settled() {
	p.Helper()
	w, jobs := p.world, p.all()
	idle := map[string]int{} // acts that changed nothing and that no run elsewhere explains, by record
	acts, err := p.store.Sources.Acts(p.Context(), "shop", 1000)
	check(p.T, err)
	unknown := map[string]bool{}
	for _, a := range acts {
		n := w.effects[a.ID]
		if n == 0 && a.State != source.Changed {
			idle[a.Key]++
		}
		unknown[a.Key] = unknown[a.Key] || a.State == source.Unknown
		p.met[string(a.Kind)+" "+string(a.State)]++
		right := false
		switch a.State {
		case source.Done:
			right = n == 1 || n == 0 && w.touched[a.Key] // another program did it
		case source.Gone, source.Changed:
			right = n == 0 && w.touched[a.Key]
		case source.Unknown:
			right = n <= 1 && (!w.tells && a.Kind == source.Replay || w.touched[a.Key])
		}
		if !right {
			p.Errorf("the %s of %s is %s (%s) and changed %d records", a.Kind, a.Key, a.State, a.Why, n)
		}
	}
	for key, where := range w.at {
		j, known := jobs["charge "+key]
		if shown := known && j.Status() == job.StatusDeadLetter; shown != (where == dead) {
			p.Errorf("%s is %s, and its job is %s in run %d", key, where, j.Status(), j.Run)
		}
		if most := 1 + w.left[key] + idle[key]; j.Run > most {
			p.Errorf("%s ran %d times, and its job is in run %d", key, w.left[key], j.Run)
		}
		if (j.State == job.Returning || j.State == job.Returned) && where != working && where != done && !w.touched[key] && !unknown[key] {
			p.Errorf("%s is %s, and its job is %s", key, where, j.State)
		}
	}
}

// lives plays a life for each of so many seeds, and returns what they met.
func lives(t *testing.T, many int) (met map[string]int) {
	t.Helper()
	met = map[string]int{}
	first := uint64(time.Now().UnixNano())
	if text := os.Getenv("REDRIVE_SOURCES_SEED"); text != "" {
		var err error
		first, err = strconv.ParseUint(text, 10, 64)
		check(t, err)
	}
	for seed := first; seed < first+uint64(many) && !t.Failed(); seed++ {
		t.Run(fmt.Sprintf("REDRIVE_SOURCES_SEED=%d", seed), func(t *testing.T) {
			bubble(t, func(t *testing.T, database db.Database) {
				p := &play{life: newLife(t, database, true), world: newWorld(seed%3 > 0), random: rand.New(rand.NewPCG(seed, 0)), met: met}
				defer func() { check(t, p.store.Close()) }()
				p.world.crash, p.life.open = &crash{}, p.world.open
				p.now = p.process(p.world.crash)
				for n := range 40 {
					p.event(n)
				}
				p.world.change(func() { p.away, p.hidden = false, false })
				p.restart(0)
				time.Sleep(3 * time.Minute)
				p.now.Close()
				p.settled()
			})
		})
	}
	return met
}

// Whatever happens at a source and to the processes that work on it, in any order: nothing
// is done twice, and in the end the ledger and the jobs say what happened.
func TestSources_AnyLifeLosesAndDoublesNothing(t *testing.T) { lives(t, 6) }

func TestLong_SourcesAnyLifeLosesAndDoublesNothing(t *testing.T) {
	met := lives(t, 300)
	for _, end := range []string{
		"replay done", "replay gone", "replay changed", "replay unknown", "discard done", "discard gone", "discard changed", "crashed",
	} {
		if met[end] == 0 && !t.Failed() {
			t.Errorf("no life met %q: %v", end, met)
		}
	}
	t.Logf("met %v", met)
}
