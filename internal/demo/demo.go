// Package demo is the world of the demo mode: a shop whose background jobs
// fail in eight ways, and its outlet, whose queue is another system's. It is also
// the fixture of the browser tests.
//
// A [World] plays three parts. [World.History] writes a day of jobs, failures
// and replays through the ordinary store, so that charts have something to
// say. [World.Feed] then enqueues a steady trickle, which the ordinary engine
// works off with the handlers of [World.Handler]. And [World.SetFault] is the
// Break / Fix switch: break the payment provider, watch the failures grow,
// read the trace, fix it, replay, and see the second run succeed.
//
// The [Outlet] is a program beside the product, which has it as a source: it has a
// database and a worker of its own, and only its switch is the world's.
//
// All chance comes from one seed and the job's own payload, so the same seed
// tells the same story, in whatever order the jobs are worked off.
package demo

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"redrive/internal/clip"
	"redrive/internal/engine"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

//go:embed redrive.yaml
var config []byte

// Config is the demo's configuration file, with the outlet's database.
func Config(outlet string) []byte {
	address := url.URL{Scheme: "sqlite", Path: outlet}
	return bytes.Replace(config, []byte("sqlite:///outlet.db"), strconv.AppendQuote(nil, address.String()), 1)
}

// Fault is one way in which the world can be broken.
type Fault struct {
	Name   string // as in URLs
	Title  string
	About  string
	Broken bool
}

// Rules complete a job that shall be enqueued with its policy and its time
// limit, as the demo's configuration says.
type Rules interface {
	Admit(j *job.Job, patch retry.Patch) error
	DeadLetters(queue string) bool
}

// World is the state of the demo. Its methods may be called concurrently.
type World struct {
	seed  uint64
	rules Rules
	kinds []kind

	mu     sync.Mutex
	faults []Fault
	used   bool
	jobs   int // of the history
}

// New returns a world in which everything is broken that can be.
func New(seed uint64, rules Rules) *World {
	return &World{seed: seed, rules: rules, kinds: kinds(), faults: faults()}
}

// Faults lists the switches in the order in which pages show them.
func (w *World) Faults() []Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.faults)
}

// SetFault breaks or fixes one thing. An unknown name is a *invalid.Error.
func (w *World) SetFault(name string, broken bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()

	for i := range w.faults {
		if w.faults[i].Name == name {
			w.faults[i].Broken, w.used = broken, true
			return nil
		}
	}

	return &invalid.Error{Field: "name", Problem: fmt.Sprintf("the demo has no fault %q", clip.Text(name, 64))}
}

// Used reports whether a user has broken or fixed anything.
func (w *World) Used() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.used
}

// written is the number of jobs of the history.
func (w *World) written() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.jobs
}

// broken reports whether a fault is on; the empty name, of kinds that nothing
// breaks, never is.
func (w *World) broken(name string) bool {
	return slices.ContainsFunc(w.Faults(), func(f Fault) bool { return f.Name == name && f.Broken })
}

// Handler returns what runs a job of this type. Types that the world does not
// know wait for a worker, as they do outside of the demo.
func (w *World) Handler(typ string) (engine.Handler, bool) {
	k, ok := w.kindOf(typ)
	return func(ctx context.Context, j job.Job) error { return w.run(ctx, k, j) }, ok
}

// archive is where the ledger's dead letters are forwarded to. There is no
// network in this world: it answers here.
const archive = "https://archive.example"

// Kept is the delivery of every dead letter of a queue that sends none.
func (w *World) Kept(queue string) (d job.Delivery, ok bool) {
	if queue == "ledger" {
		return job.Delivery{}, false
	}
	return job.InDeadLetters(queue, w.rules.DeadLetters(queue)), true
}

// Deliver sends a dead letter on its way.
func (w *World) Deliver(_ context.Context, j job.Job, _ job.DeadLetter) job.Delivery {
	return w.delivered(j, w.broken("ledger"))
}

// delivered is what becomes of a dead letter, when the archive is full and when
// it is not.
func (w *World) delivered(j job.Job, full bool) job.Delivery {
	if d, ok := w.Kept(j.Queue); ok {
		return d
	}

	if full {
		return job.Delivery{Problem: archive + " answered 507 Insufficient Storage"}
	}

	return job.Delivery{ForwardedTo: archive, ForwardedAt: time.Now().UTC()}
}

// run works for a moment, then fails if the world is broken and chance says so.
func (w *World) run(ctx context.Context, k kind, j job.Job) error {
	random := w.chance(j)
	took := k.took(random)

	// What will happen is known at once, and happens after a while.
	var end ending
	if w.broken(k.fault) && random.Float64() < k.live {
		end = k.fail(random, j)
	}

	if end.outcome == job.TimedOut {
		<-ctx.Done()
		return ctx.Err()
	}

	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(took):
	}

	// A real panic has a real trace.
	if end.outcome == job.Panicked {
		return new(document).thumbnail(j)
	}

	if end.failure == nil {
		return nil
	}

	return end.failure
}

// chance is the randomness of one attempt: it depends on the seed, the job's
// payload and the attempt, and on nothing else.
func (w *World) chance(j job.Job) *rand.Rand {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d %d", j.Payload, j.Run, j.Attempts)
	return rand.New(rand.NewPCG(w.seed, h.Sum64()))
}
