// Package seed writes a large database: as many jobs as a user may have
// after months, a part of them dead, to measure pages and searches on.
//
// It goes through the ordinary calls of the store, batch by batch, so that the
// rollups, the groups of failures and the search index are as they would be in
// production. All chance comes from one seed: the same seed writes the same jobs.
package seed

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Store is the database to write to.
type Store interface {
	Enqueue(ctx context.Context, now time.Time, jobs []job.Job) ([]job.Enqueued, error)
	Exchange(ctx context.Context, settle []job.Settlement, claim job.Claim) (claimed []job.Job, stale []job.Token, err error)
}

// Index makes failures searchable.
type Index interface {
	Update(ctx context.Context) (int, error)
}

// Plan says how many jobs to write.
type Plan struct {
	Jobs, Dead int
	Seed       uint64
	Now        time.Time // when the last of them ended; the first one month before
}

const (
	batch = 2000                // jobs in a transaction
	month = 30 * 24 * time.Hour // that they are spread over
)

// Write enqueues the jobs and runs them: Dead of them fail permanently, one in
// twenty of the others fails once before it succeeds. progress gets how many
// of all jobs are over.
func (c Plan) Write(ctx context.Context, store Store, index Index, progress func(done, all int)) error {
	w := writer{c, store, rand.New(rand.NewPCG(c.Seed, 3))}
	for n := 0; n < c.Jobs; n += batch {
		if err := w.batch(ctx, n, min(batch, c.Jobs-n)); err != nil {
			return fmt.Errorf("write job %d of %d: %w", n, c.Jobs, err)
		}

		progress(n, c.Jobs)
	}

	progress(c.Jobs, c.Jobs)

	_, err := index.Update(ctx)

	return err
}

// writer is the state of one plan.
type writer struct {
	Plan
	store  Store
	random *rand.Rand
}

// batch enqueues so many jobs, runs them and ends them.
func (w writer) batch(ctx context.Context, first, count int) error {
	at := w.Now.Add(-month + time.Duration(float64(month)*float64(first)/float64(w.Jobs)))

	jobs := make([]job.Job, count)
	doomed := map[string]bool{}
	for i := range jobs {
		jobs[i] = w.newJob(first+i, at)
		doomed[jobs[i].ID] = w.dies(first + i)
	}

	_, err := w.store.Enqueue(ctx, at, jobs)
	if err != nil {
		return err
	}

	// A minute later those run again that failed, until all are over.
	for at := at; ; at = at.Add(time.Minute) {
		claimed, _, err := w.store.Exchange(ctx, nil, w.claim(at, count))
		if err != nil || len(claimed) == 0 {
			return err
		}

		ended := make([]job.Settlement, len(claimed))
		for i, j := range claimed {
			ended[i] = w.end(j, at, doomed[j.ID])
		}

		if _, _, err := w.store.Exchange(ctx, ended, job.Claim{}); err != nil {
			return err
		}
	}
}

// dies spreads the dead evenly, whatever their number.
func (w writer) dies(n int) bool { return (n+1)*w.Dead/w.Jobs > n*w.Dead/w.Jobs }

func (w writer) claim(at time.Time, count int) job.Claim {
	free := map[string]int{}
	for _, queue := range queueNames() {
		free[queue] = count
	}

	return job.Claim{Worker: fmt.Sprintf("worker-%d", 1+w.random.IntN(8)), Now: at, Lease: time.Hour, Free: free}
}

// end is how one execution ends.
func (w writer) end(j job.Job, at time.Time, dies bool) job.Settlement {
	end := job.Ending{Outcome: job.Succeeded, FinishedAt: at.Add(time.Duration(1+w.random.IntN(2000)) * time.Millisecond)}
	if dies || j.Attempts == 0 && w.random.IntN(20) == 0 {
		end.Outcome = job.Failed
		end.Error, end.Trace = w.failure(j)
	}

	return j.Settle(end, w.random.Float64)
}

// newJob makes the n-th job.
func (w writer) newJob(n int, at time.Time) job.Job {
	typ, queues := w.random.IntN(types), queueNames()
	nouns, verbs, names := nouns(), verbs(), customers()

	policy := retry.Default()
	policy.MaxAttempts, policy.InitialInterval, policy.Jitter = 2, time.Second, retry.Jitter{}

	return job.Job{
		Token: job.Token{ID: w.id(at)}, Queue: queues[typ%len(queues)],
		Type:   fmt.Sprintf("%s.%s", nouns[typ%len(nouns)], verbs[typ/len(nouns)%len(verbs)]),
		Policy: policy, Timeout: time.Minute,
		Payload: fmt.Appendf(nil, `{"order_id":%d,"customer":"%s.%s@mail.example","amount":%d,"currency":"EUR",`+
			`"lines":[{"sku":"MK-%d","qty":%d}]}`,
			n, pick(w.random, names), pick(w.random, names), w.random.IntN(90_000), w.random.IntN(900), 1+w.random.IntN(9)),
		Meta: fmt.Appendf(nil, `{"tenant":"shop-%d"}`, w.random.IntN(500)),
	}
}

// failure is what a handler says: one of a few hundred causes, with what differs
// from time to time inside.
func (w writer) failure(j job.Job) (job.ErrorInfo, string) {
	causes := causes()

	n := w.random.IntN(len(causes))
	message := fmt.Sprintf(causes[n].message, w.random.IntN(1_000_000))
	trace := fmt.Sprintf("%s: %s\nshop/%s.Handle\n\tshop/%s.go:%d\nshop/worker.Run\n\tshop/worker.go:88",
		causes[n].class, message, j.Type, j.Type, 20+n)

	return job.ErrorInfo{Type: causes[n].class, Message: message}, trace
}

// id is a UUIDv7 whose random part comes from the seed.
func (w writer) id(at time.Time) string {
	ms, a, b := uint64(at.UnixMilli()), w.random.Uint64(), w.random.Uint64()
	return fmt.Sprintf("%08x-%04x-7%03x-%04x-%012x", ms>>16&0xffffffff, ms&0xffff, a&0xfff, 0x8000|b>>48&0x3fff, b&0xffffffffffff)
}

// types is how many types of job there are: each noun with each verb.
const types = 40

func queueNames() []string {
	return strings.Fields("orders payments email sms reports search imports ledger")
}

func nouns() []string {
	return strings.Fields("order invoice parcel receipt refund report product account coupon review")
}

func verbs() []string { return strings.Fields("send render import sync") }

func customers() []string {
	return strings.Fields("ines tomas yuki amara lars noor miguel sofia hana emeka olga pierre")
}

// cause is a way to fail: a class, and a message with a number that differs.
type cause struct{ class, message string }

func causes() []cause {
	return []cause{
		{"upstream.unavailable", "POST https://api.paylane.example/v2/captures/%d: 503 Service Unavailable"},
		{"upstream.rate_limited", "GET https://rates.example/v1/quotes/%d: 429 Too Many Requests"},
		{"upstream.timeout", "POST https://parcels.example/labels/%d: context deadline exceeded after 10s"},
		{"smtp.Error", "451 4.7.1 message %d: recipient address rejected, try again later"},
		{"sql.Deadlock", "transaction %d was chosen as the deadlock victim"},
		{"validation.payload_invalid", "lines[%d].qty: a string stands where a number is expected"},
		{"panic", "runtime error: index out of range [%d] with length 0"},
		{"storage.full", "write /var/data/exports/%d.csv: no space left on device"},
		{"auth.expired", "the token of tenant %d ended"},
		{"inventory.missing", "product MK-%d is not in any warehouse"},
		{"dns.failure", "lookup shop-%d.internal: no such host"},
		{"tls.handshake", "connection %d: remote error: tls: handshake failure"},
	}
}

func pick(random *rand.Rand, words []string) string { return words[random.IntN(len(words))] }
