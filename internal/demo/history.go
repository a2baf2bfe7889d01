package demo

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Store is what the world needs of the product's store.
type Store interface {
	Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error)
	Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error)
	Pause(ctx context.Context, now time.Time, queue string, by audit.Actor) error
	Resume(ctx context.Context, now time.Time, queue string, by audit.Actor) error
}

// The day before the demo starts: 20,000 jobs, most of them in the last hour,
// where they come as fast as the live feed's.
const (
	historyJobs = 20_000
	lastHour    = 100 // jobs a minute
	day         = 24 * time.Hour
	workers     = 4
)

// History writes the day that ends at now, step by step, through the same
// calls as the engine and the people at the dashboard. progress is told how many
// of all jobs are written.
func (w *World) History(ctx context.Context, store Store, desk Desk, now time.Time, progress func(done, all int)) error {
	h := history{World: w, store: store, desk: desk, random: rand.New(rand.NewPCG(w.seed, 1)), now: now}
	const earlier = (historyJobs - 60*lastHour) / (23 * 60)
	for t := now.Add(-day); t.Before(now.Add(-longest)); t = t.Add(h.long) {
		count := earlier + h.random.IntN(3) - 1
		h.long = time.Minute
		if now.Sub(t) <= time.Hour {
			h.long, count = time.Minute/10, lastHour/10
		}
		if err := h.step(ctx, t, count); err != nil {
			return fmt.Errorf("write the demo's history: %w", err)
		}
		progress(h.written, historyJobs)
	}
	return h.finish(ctx)
}

// history is the state of one walk through the day.
type history struct {
	*World
	store   Store
	desk    Desk
	random  *rand.Rand
	now     time.Time
	long    time.Duration // of the current step
	written int
	ended   []job.Settlement // in the step before
}

// step enqueues the jobs of one step and runs what is due at its start.
func (h *history) step(ctx context.Context, t time.Time, count int) error {
	jobs := make([]job.Job, count)
	for i := range jobs {
		var err error
		if jobs[i], err = h.next(h.random, h.written+i, t); err != nil {
			return err
		}
	}
	if _, err := h.store.Enqueue(ctx, t, jobs); err != nil {
		return err
	}
	h.written += count
	if err := h.runDue(ctx, t); err != nil {
		return err
	}
	return h.people(ctx, t)
}

// runDue settles what ran before and runs what is due now.
func (h *history) runDue(ctx context.Context, t time.Time) error {
	claimed, _, err := h.store.Exchange(ctx, h.ended, h.claim(t))
	if err != nil {
		return err
	}
	h.ended = h.ended[:0]
	for _, j := range claimed {
		h.ended = append(h.ended, h.live(j, t))
	}
	return nil
}

// finish lets everything happen that ends before now. The rest is left for the
// engine.
func (h *history) finish(ctx context.Context) error {
	for len(h.ended) > 0 {
		if err := h.runDue(ctx, h.now.Add(-longest)); err != nil {
			return err
		}
	}
	return nil
}

// longest is the longest time limit in the demo's configuration.
const longest = 10 * time.Second

// claim takes everything that is due.
func (h *history) claim(t time.Time) job.Claim {
	free := map[string]int{}
	for _, k := range h.kinds {
		free[k.queue] = historyJobs
	}
	return job.Claim{Worker: "demo", Now: t, Lease: time.Minute, Free: free}
}

// live lets one claimed job happen: it starts when it was due, works, and ends.
func (h *history) live(j job.Job, t time.Time) job.Settlement {
	k, _ := h.kindOf(j.Type)
	random := h.chance(j)
	j.Worker = fmt.Sprintf("shop-%d", 1+random.IntN(workers))
	if j.Attempts == 0 && j.Run == 1 {
		j.StartedAt = t.Add(time.Duration(random.Int64N(int64(h.long))))
	} else {
		j.StartedAt = j.RunAt.Add(time.Duration(random.IntN(20)) * time.Millisecond)
	}
	end := job.Ending{Outcome: job.Succeeded, FinishedAt: j.StartedAt.Add(k.took(random))}
	if k.past != nil && random.Float64() < k.again(h.now.Sub(t), j.Run) {
		bad := k.fail(random, j)
		end.Outcome, end.Error, end.Trace, end.Answer = bad.outcome, bad.failure.ErrorInfo, bad.failure.Trace, bad.failure.Answer
		if end.Outcome == job.TimedOut {
			end.FinishedAt = j.StartedAt.Add(j.Timeout)
		}
	}
	return j.Settle(end, random.Float64).Delivered(h.delivered(j, true))
}

func (w *World) kindOf(typ string) (k kind, ok bool) {
	if i := slices.IndexFunc(w.kinds, func(k kind) bool { return k.typ == typ }); i >= 0 {
		return w.kinds[i], true
	}
	return kind{}, false
}

// next makes the n-th job of the shop.
func (w *World) next(random *rand.Rand, n int, at time.Time) (job.Job, error) {
	k := w.draw(random)
	id := newID(at, random)
	return w.admit(id, k.queue, k.typ, k.payload(40_000+n, random))
}

// admit makes a job as it is enqueued.
func (w *World) admit(id, queue, typ, payload string) (job.Job, error) {
	j := job.Job{Token: job.Token{ID: id}, Queue: queue, Type: typ, Payload: []byte(payload)}
	err := w.rules.Admit(&j, retry.Patch{})
	return j, err
}

// draw picks a kind by its share.
func (w *World) draw(random *rand.Rand) kind {
	at := random.Float64()
	for _, k := range w.kinds {
		if at -= k.share; at < 0 {
			return k
		}
	}
	return w.kinds[0]
}

// newID is a UUIDv7 whose random part comes from the seed.
func newID(at time.Time, random *rand.Rand) string {
	ms, a, b := uint64(at.UnixMilli()), random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x",
		ms>>16&0xffffffff, ms&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
}
