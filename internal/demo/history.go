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

// Day is the day before the demo starts.
type Day struct {
	End  time.Time
	Jobs int // about so many
}

// Usual is the number of jobs of a day whose last hour has as many a minute as the live
// feed.
const Usual = 20_000

// lastHour is the share of a day's jobs that come in its last hour.
const lastHour = 0.3

const (
	early   = 23 * time.Hour // of a day, before its last hour
	day     = 24 * time.Hour
	workers = 4
)

// atOnce is how many jobs come before the workers take them: a few large
// transactions cost half of many small ones.
const atOnce = 1000

// History writes a day, step by step, through the same calls as the engine and the
// people at the dashboard. progress gets how many of all jobs are written.
func (w *World) History(ctx context.Context, store Store, desk Desk, d Day, progress func(done, all int)) error {
	h := history{World: w, store: store, desk: desk, random: rand.New(rand.NewPCG(w.seed, 1)), now: d.End}

	for t := d.End.Add(-day); t.Before(d.End.Add(-longest)); t = t.Add(h.long(t)) {
		if err := h.step(ctx, t, h.come(d.Jobs, t)); err != nil {
			return fmt.Errorf("write the demo's history: %w", err)
		}

		progress(h.written, d.Jobs)
	}

	if err := h.work(ctx, d.End.Add(-longest)); err != nil {
		return fmt.Errorf("write the demo's history: %w", err)
	}

	w.mu.Lock()
	defer w.mu.Unlock()

	w.jobs = h.written

	return nil
}

// come is how many of a day's jobs come in the step that begins at t. Before the last
// hour it differs from step to step.
func (h *history) come(jobs int, t time.Time) int {
	mean := float64(jobs) * (1 - lastHour) / float64(early/h.long(t))
	if h.inLastHour(t) {
		mean = float64(jobs) * lastHour / float64(time.Hour/h.long(t))
	}

	// What is left of the mean is one job more in some of the steps.
	count := int(mean)
	if h.random.Float64() < mean-float64(count) {
		count++
	}

	if !h.inLastHour(t) {
		count += h.random.IntN(3) - 1
	}

	return max(count, 0)
}

// history is the state of one walk through the day.
type history struct {
	*World
	store   Store
	desk    Desk
	random  *rand.Rand
	now     time.Time
	written int // jobs
	worked  int // of those, when the workers were last at work
	claims  int
	resumed time.Time // when a queue last was
}

// inLastHour reports whether something happened in the hour before the demo.
func (h *history) inLastHour(t time.Time) bool { return h.now.Sub(t) <= time.Hour }

// long is the length of a step.
func (h *history) long(t time.Time) time.Duration {
	if h.inLastHour(t) {
		return time.Minute / 10
	}
	return time.Minute
}

// step lets people act when it is their time, enqueues the jobs of one step, and
// lets the workers work when enough of them wait.
func (h *history) step(ctx context.Context, t time.Time, count int) error {
	if err := h.people(ctx, t); err != nil {
		return err
	}

	jobs := make([]job.Job, count)
	for i := range jobs {
		var err error

		jobs[i], err = h.next(h.random, h.written+i, t)
		if err != nil {
			return err
		}
	}

	if _, err := h.store.Enqueue(ctx, t, jobs); err != nil {
		return err
	}

	h.written += count
	if h.written-h.worked < atOnce {
		return nil
	}

	return h.work(ctx, t)
}

// work runs everything that was due by t and has not run yet, retries included.
// What is due later is left for the next time, and in the end for the engine.
func (h *history) work(ctx context.Context, t time.Time) error {
	h.worked = h.written

	// What ended in one call is settled in the next, as the engine does.
	var ended []job.Settlement
	for {
		claimed, _, err := h.store.Exchange(ctx, ended, h.claim(t))
		if err != nil || len(claimed) == 0 {
			return err
		}

		ended = ended[:0]
		for _, j := range claimed {
			ended = append(ended, h.live(j))
		}
	}
}

// longest is the longest time limit in the demo's configuration.
const longest = 10 * time.Second

// oneTakes is how many jobs of a queue one worker takes, before it is another's turn.
const oneTakes = 100

// claim takes what is due, each time as another worker.
func (h *history) claim(t time.Time) job.Claim {
	free := map[string]int{}

	// Every queue of the shop has room.
	for _, k := range h.kinds {
		free[k.queue] = oneTakes
	}

	h.claims++

	return job.Claim{Worker: fmt.Sprintf("shop-%d", 1+h.claims%workers), Now: t, Lease: time.Minute, Free: free}
}

// live lets one claimed job happen: it starts when it was due, or when its queue
// was resumed, works, and ends.
func (h *history) live(j job.Job) job.Settlement {
	k, _ := h.kindOf(j.Type)
	random := h.chance(j)

	due := later(j.RunAt, h.resumed)

	j.StartedAt = due.Add(h.wait(j, random))

	end := job.Ending{Outcome: job.Succeeded, FinishedAt: j.StartedAt.Add(k.took(random))}

	// The chance of a failure is that of the time when the run was due. A replay fails less
	// often.
	if k.past != nil && random.Float64() < k.again(h.now.Sub(due), j.Run) {
		bad := k.fail(random, j)
		end.Outcome, end.Error = bad.outcome, bad.failure.ErrorInfo
		end.Trace, end.Answer = bad.failure.Trace, bad.failure.Answer

		// The engine would have hidden secrets, and ended what runs too long.
		end.Error.Message = h.desk.Hide(end.Error.Message)
		if end.Outcome == job.TimedOut {
			end.FinishedAt = j.StartedAt.Add(j.Timeout)
		}
	}

	return j.Settle(end, random.Float64).Delivered(h.delivered(j, true))
}

// wait is how long a job that is due waits for a worker. Those that come together
// begin one after another, and what came in one minute has ended before the next,
// when people act.
func (h *history) wait(j job.Job, random *rand.Rand) time.Duration {
	most := 20 * time.Millisecond
	if first := j.Attempts == 0 && j.Run == 1; first {
		most = max(h.long(j.RunAt)-longest, time.Minute/10)
	}

	return time.Duration(random.Int64N(int64(most)))
}

// later is the later of two times.
func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// kindOf is the kind of a type, if the shop has it.
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
		at -= k.share
		if at < 0 {
			return k
		}
	}

	return w.kinds[0]
}

// newID is a UUIDv7 whose random part comes from the seed.
func newID(at time.Time, random *rand.Rand) string {
	// The first 48 bits are the time, then come the version 7, 12 random bits, the variant and
	// 62 more.
	ms, a, b := uint64(at.UnixMilli()), random.Uint64(), random.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x",
		ms>>16&0xffffffff, ms&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
}

// feedEvery spaces the live jobs: as many in an hour as a usual day's last one.
const feedEvery = time.Duration(float64(time.Hour) / (Usual * lastHour)) // 600 ms

// Feed enqueues a steady trickle of jobs until the context ends, and a few of
// a type that has no handler. It returns the first error of the store, and nil
// when the context ended.
func (w *World) Feed(ctx context.Context, store Store) error {
	// A random stream of its own, so that the live jobs of a seed do not depend on how much the
	// history drew.
	random := rand.New(rand.NewPCG(w.seed, 2))
	if err := w.orphans(ctx, store, random); err != nil {
		return err
	}

	tick := time.NewTicker(feedEvery)
	defer tick.Stop()

	// The live jobs go on with the numbers of the history.
	for n := w.written(); ; n++ {
		now := time.Now()

		j, err := w.next(random, n, now)
		if err == nil {
			_, err = store.Enqueue(ctx, now, []job.Job{j})
		}

		// Once the context has ended, an error of the store does not count.
		if ctx.Err() != nil {
			return nil
		}

		if err != nil {
			return err
		}

		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// orphans enqueues three jobs of a type without a handler: they wait.
func (w *World) orphans(ctx context.Context, store Store, random *rand.Rand) error {
	now := time.Now()
	var jobs []job.Job
	for range 3 {
		j, err := w.admit(newID(now, random), "loyalty", "loyalty.expire", `{"tier":"silver","before":"2026-01-01"}`)
		if err != nil {
			return err
		}

		jobs = append(jobs, j)
	}

	_, err := store.Enqueue(ctx, now, jobs)

	return err
}
