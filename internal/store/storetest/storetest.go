// Package storetest says, as tests, what a store of jobs has to do, whatever
// database it is made of. Each function is one behaviour; its comment is the
// contract. Nothing here knows SQLite.
//
//	func TestContract(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) func() *store.Store {
//			path := filepath.Join(t.TempDir(), "jobs.db")
//			return func() *store.Store { … open path … }
//		})
//	}
package storetest

import (
	"context"
	"flag"
	"fmt"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/store"
)

// Database makes an empty database and returns the function that opens it, the
// first time and again after each Close.
type Database func(t *testing.T) (open func() *store.Store)

// Run runs the suite.
func Run(t *testing.T, db Database) {
	run(t, db,
		enqueueing, claiming, prefetching, settling, acting, rescheduling, deadLettering, trashing, retaining, overCount,
		listing, searching, whole, counting, grouping, histories,
		naming, editing, drawing, operating, scoping, outcomes, byCause, progressing, accessing, mirroring,
		asking, ownNames, succeeding, apart, doubting, unattaching, renewing)
}

// FewHistories lets Run try a tenth of the random histories, unless a flag says how many.
func FewHistories(t *testing.T) {
	checks := flag.Lookup("rapid.checks")
	all := checks.Value.String()
	if all != checks.DefValue {
		return
	}

	set := func(n string) {
		if err := checks.Value.Set(n); err != nil {
			t.Fatal(err)
		}
	}
	set("10")
	t.Cleanup(func() { set(all) })
}

// RunRandom runs the part of the suite that tries long random histories.
func RunRandom(t *testing.T, db Database) {
	run(t, db, histories, []func(*kit){Operation_ScopeIsTheList})
}

func run(t *testing.T, db Database, groups ...[]func(*kit)) {
	for _, group := range groups {
		for _, behaviour := range group {
			t.Run(nameOf(behaviour), func(t *testing.T) {
				t.Parallel()
				behaviour(newKit(t, db))
			})
		}
	}
}

// nameOf is the name of a function without its package.
func nameOf(f func(*kit)) string {
	name := runtime.FuncForPC(reflect.ValueOf(f).Pointer()).Name()
	return name[strings.LastIndexByte(name, '.')+1:]
}

// kit is one test with its own database and its own time.
type kit struct {
	*testing.T
	*store.Store
	db   Database
	open func() *store.Store
	ctx  context.Context
	now  time.Time
}

func newKit(t *testing.T, db Database) *kit {
	k := openKit(t, db)
	t.Cleanup(func() { k.check(k.Close()) })
	return k
}

// openKit is newKit for a caller that closes the store before the test ends.
func openKit(t *testing.T, db Database) *kit {
	k := &kit{T: t, db: db, open: db(t), ctx: t.Context(), now: time.Date(2026, 3, 4, 5, 6, 7, 123456000, time.UTC)}
	k.Store = k.open()
	return k
}

// restart closes the store and opens it again.
func (k *kit) restart() {
	k.Helper()
	k.check(k.Close())
	k.Store = k.open()
}

func (k *kit) check(err error) {
	k.Helper()

	if err != nil {
		k.Fatal(err)
	}
}

// pass lets time pass.
func (k *kit) pass(d time.Duration) { k.now = k.now.Add(d) }

// simple is a job with nothing special about it.
func simple() job.Job {
	return job.Job{Queue: "orders", Type: "email.send", Policy: policy(3), Timeout: time.Minute, Payload: []byte(`{"n":1}`)}
}

// policy tries some times, a second apart, and then asks for a dead letter.
func policy(attempts int) retry.Policy {
	return retry.Policy{
		MaxAttempts: attempts, Strategy: retry.Constant, InitialInterval: time.Second, Coefficient: 1,
		MaxInterval: time.Minute, OnExhaustion: retry.DeadLetter,
	}
}

// in returns a simple job for a queue.
func in(queue string) job.Job {
	j := simple()
	j.Queue = queue
	return j
}

// lasting returns a simple job that is tried so many times.
func lasting(attempts int) job.Job {
	j := simple()
	j.Policy = policy(attempts)
	return j
}

// add enqueues jobs and returns them as they are stored.
func (k *kit) add(jobs ...job.Job) []job.Job {
	k.Helper()
	done, err := k.Enqueue(k.ctx, k.now, jobs)
	k.check(err)

	stored := make([]job.Job, len(done))
	for i := range done {
		stored[i] = done[i].Job
	}

	return stored
}

// many is n simple jobs.
func many(n int) []job.Job {
	jobs := make([]job.Job, n)
	for i := range jobs {
		jobs[i] = simple()
		jobs[i].Payload = fmt.Appendf(nil, "%d", i)
	}

	return jobs
}

// exchange settles and claims at the kit's time.
func (k *kit) exchange(settle []job.Settlement, queue string, n int) ([]job.Job, []job.Token) {
	k.Helper()
	claimed, stale, err := k.Exchange(k.ctx, settle, job.Claim{
		Worker: "worker-1", Now: k.now, Lease: time.Minute, Free: map[string]int{queue: n},
	})
	k.check(err)

	return claimed, stale
}

func (k *kit) claim(queue string, n int) []job.Job {
	k.Helper()
	claimed, _ := k.exchange(nil, queue, n)
	return claimed
}

// begin enqueues one job and claims it.
func (k *kit) begin(j job.Job) job.Job {
	k.Helper()

	id := k.add(j)[0].ID
	for _, c := range k.claim(j.Queue, 1000) {
		if c.ID == id {
			return c
		}
	}

	k.Fatalf("job %s was not claimed", id)

	return job.Job{}
}

// ending is a failure at the kit's time, or what else the outcome says.
func (k *kit) ending(o job.Outcome) job.Ending {
	e := job.Ending{Outcome: o, FinishedAt: k.now}
	if o.Counted() && o != job.Succeeded {
		e.Error, e.Trace = job.ErrorInfo{Type: "http.503", Message: "Service Unavailable"}, "cmd/main.go:1"
	}

	return e
}

// settle ends an execution, with a dead-letter queue, and returns the job.
func (k *kit) settle(j job.Job, o job.Outcome) job.Job {
	k.Helper()
	return k.settleAs(j.Settle(k.ending(o), nil))
}

func (k *kit) settleAs(s job.Settlement) job.Job {
	k.Helper()

	if _, stale := k.exchange([]job.Settlement{s}, "", 0); len(stale) > 0 {
		k.Fatalf("settlement of %v is stale", s.Token)
	}

	return k.job(s.ID)
}

// settleAll ends executions in one transaction.
func (k *kit) settleAll(all []job.Settlement) {
	k.Helper()

	if _, stale := k.exchange(all, "", 0); len(stale) > 0 {
		k.Fatalf("%d settlements are stale", len(stale))
	}
}

// dead is a job whose only attempt failed, with its dead letter.
func (k *kit) dead(j job.Job) job.Job {
	k.Helper()

	j.Policy = policy(1)
	return k.settle(k.begin(j), job.Failed)
}

func (k *kit) detail(id string) history.Detail {
	k.Helper()
	d, err := k.Job(k.ctx, id)
	k.check(err)
	return d
}

func (k *kit) job(id string) job.Job {
	k.Helper()
	return k.detail(id).Job
}

// same fails unless got is want; what names the thing.
func (k *kit) same(what string, got, want any) {
	k.Helper()

	if !reflect.DeepEqual(got, want) {
		k.Errorf("%s is\n%+v, want\n%+v", what, got, want)
	}
}

// ids are the ids of jobs, in their order.
func ids(jobs []job.Job) []string {
	all := make([]string, len(jobs))
	for i, j := range jobs {
		all[i] = j.ID
	}

	return all
}
