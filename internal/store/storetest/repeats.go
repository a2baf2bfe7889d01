package storetest

import (
	"errors"
	"strconv"
	"sync"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
)

// EnqueueRepeatReturnsTheFirst: an idempotency key that was seen before stores
// nothing, also after a restart, and returns the first job as it is now.
func EnqueueRepeatReturnsTheFirst(k *kit) {
	first := simple()
	first.Key = "k"
	began := k.job(k.begin(first).ID)
	k.restart()

	again := simple()
	again.Key = "k"
	done, err := k.Enqueue(k.ctx, k.now, []job.Job{again})
	k.check(err)
	k.same("Repeat", done[0].Repeat, true)
	k.same("the job", done[0].Job, began)
	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(1))
}

// EnqueueRepeatWithinABatch: a key can repeat within one batch; the others of
// the batch are stored.
func EnqueueRepeatWithinABatch(k *kit) {
	jobs := many(5)
	jobs[1].Key, jobs[3].Key, jobs[3].Payload = "k", "k", jobs[1].Payload
	done, err := k.Enqueue(k.ctx, k.now, jobs)
	k.check(err)

	for i, d := range done {
		k.same("Repeat", d.Repeat, i == 3)
	}

	k.same("the repeat", done[3].Job, done[1].Job)
	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(4))
}

// EnqueueOfAKeyUsedForAnotherJobIsRefused: another type, queue or payload under
// a caller's key is no repeat: nothing of the request is stored, and the error
// names the first job.
func EnqueueOfAKeyUsedForAnotherJobIsRefused(k *kit) {
	first := simple()

	first.Key, first.Caller = "k", "a"
	id := k.add(first)[0].ID
	for _, change := range []func(*job.Job){
		func(j *job.Job) { j.Queue = "elsewhere" },
		func(j *job.Job) { j.Type = "email.resend" },
		func(j *job.Job) { j.Payload = []byte("17") },
	} {
		another := first
		change(&another)
		k.reusedFor(id, func() error {
			_, err := k.Enqueue(k.ctx, k.now, []job.Job{simple(), another})
			return err
		})
	}

	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(1))
}

// EnqueueOfAKeyUsedTwiceInOneRequestIsRefused: two jobs of one request cannot
// share a key unless they are the same job.
func EnqueueOfAKeyUsedTwiceInOneRequestIsRefused(k *kit) {
	jobs := many(3)
	jobs[0].Key, jobs[2].Key = "k", "k"
	k.reusedFor("", func() error {
		_, err := k.Enqueue(k.ctx, k.now, jobs)
		return err
	})
	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(0))
}

// EnqueueKeyBelongsToItsCaller: two callers that choose the same key get a job
// each, whatever they ask for, also after a restart.
func EnqueueKeyBelongsToItsCaller(k *kit) {
	ids := map[string]string{}
	for _, caller := range []string{"a", "b", ""} {
		j := simple()
		j.Key, j.Caller, j.Payload = "k", caller, []byte(`"`+caller+`"`)
		done, err := k.Enqueue(k.ctx, k.now, []job.Job{j})
		k.check(err)
		k.same("Repeat of "+caller, done[0].Repeat, false)
		ids[caller] = done[0].Job.ID

		k.restart()
		done, err = k.Enqueue(k.ctx, k.now, []job.Job{j})
		k.check(err)
		k.same("the repeat of "+caller, []any{done[0].Repeat, done[0].Job.ID}, []any{true, ids[caller]})
	}

	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(3))
}

// EnqueueKeyIsForWhatWasAskedFor: what a caller says of the content counts where
// it is said; what became of the job since does not.
func EnqueueKeyIsForWhatWasAskedFor(k *kit) {
	j := simple()
	j.Key, j.Caller, j.Content = "k", "a", "asked"
	id := k.add(j)[0].ID
	j.Queue = "elsewhere" // as a rule has it now
	done, err := k.Enqueue(k.ctx, k.now, []job.Job{j})
	k.check(err)
	k.same("the repeat", []any{done[0].Repeat, done[0].Job.ID}, []any{true, id})

	j.Content = "asked for more"
	k.reusedFor(id, func() error { _, err := k.Enqueue(k.ctx, k.now, []job.Job{j}); return err })
}

// EnqueueRepeatsWhatAJobBeganAs: a job answers for the key and for the envelope that it came
// with, whatever replays have changed of it since, one after the other.
func EnqueueRepeatsWhatAJobBeganAs(k *kit) {
	body := func(n int, message string) *job.Body {
		return &job.Body{Type: "email.resend", MessageID: message, Payload: []byte(strconv.Itoa(n))}
	}
	for name, first := range map[string]job.Job{"key": {Key: "k", Caller: "a"}, "message": {MessageID: "m"}} {
		first.Queue, first.Type, first.Policy, first.Timeout, first.Payload = "orders", "email.send", policy(1), time.Minute, []byte("1")
		id := k.settle(k.begin(first), job.Failed).ID

		for run, edit := range []job.Edit{{Queue: "mail"}, {Body: body(2, first.MessageID)}, {}, {Queue: "orders", Body: body(3, first.MessageID)}} {
			_, err := k.ReplayWith(k.ctx, k.now, id, run+1, edit, eve)
			k.check(err)

			done, err := k.Enqueue(k.ctx, k.now, []job.Job{first})
			if err != nil || !done[0].Repeat || done[0].Job.ID != id {
				k.Fatalf("the repeat of a %s in run %d gave %+v, %v", name, run+2, done, err)
			}

			k.settle(k.claim(k.job(id).Queue, 1)[0], job.Failed)
		}
	}
}

// EnqueueKeyIsFreeOnceItsJobIsGone: a key is kept as long as its job.
func EnqueueKeyIsFreeOnceItsJobIsGone(k *kit) {
	j := simple()
	j.Key, j.Caller, j.State, j.Reason = "k", "a", job.Discarded, "malformed"
	newest := simple()
	newest.State, newest.Reason = job.Discarded, "malformed"
	first := k.add(j)[0]
	k.pass(time.Hour)
	k.add(newest)
	_, err := k.Sweep.Prune(k.ctx, k.now, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
	k.check(err)

	j.Payload = []byte("2")
	done, err := k.Enqueue(k.ctx, k.now, []job.Job{j})
	k.check(err)
	k.same("a new job", []bool{done[0].Repeat, done[0].Job.ID == first.ID}, []bool{false, false})
}

// EnqueueOfAMessageIDWithOtherContentIsAJobOfItsOwn: a caller that chooses the id
// of another caller's envelope neither learns of that job nor keeps that envelope
// from becoming one.
func EnqueueOfAMessageIDWithOtherContentIsAJobOfItsOwn(k *kit) {
	first := simple()
	first.MessageID = "m"
	id := k.add(first)[0].ID

	other := first
	other.Payload = []byte("17")
	for range 2 { // the second time both are repeats, in one transaction and from the table
		done, err := k.Enqueue(k.ctx, k.now, []job.Job{other, first, other})
		k.check(err)
		k.same("the other one is another one", done[0].Job.ID != id, true)
		k.same("the first one", []any{done[1].Repeat, done[1].Job.ID}, []any{true, id})
		k.same("the other one again", []any{done[2].Repeat, done[2].Job.ID}, []any{true, done[0].Job.ID})
	}

	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(2))
}

// EnqueueParallelMessagesMakeOneJobOfEach: of many callers with the same envelopes
// at the same time, one stores each, and all get it.
func EnqueueParallelMessagesMakeOneJobOfEach(k *kit) {
	jobs := many(3)
	for i := range jobs {
		jobs[i].MessageID = "m"
		jobs[i].Payload = []byte(strconv.Itoa(i))
	}

	var callers sync.WaitGroup
	for range 30 {
		callers.Go(func() {
			if _, err := k.Enqueue(k.ctx, k.now, jobs); err != nil {
				k.Error(err)
			}
		})
	}

	callers.Wait()
	k.same("all jobs", k.Snapshot().Depths.Jobs(), int64(len(jobs)))
}

// reusedFor expects that a key was used for the job or operation first before.
func (k *kit) reusedFor(first string, act func() error) {
	k.Helper()

	var reused *job.KeyReused
	if err := act(); !errors.As(err, &reused) || reused.First != first {
		k.Errorf("the error is %v, want that the key was used for %q", err, first)
	}
}

// EnqueueParallelRepeatsMakeOneJob: of many callers with one key at the same
// time, one stores the job, and all get it.
func EnqueueParallelRepeatsMakeOneJob(k *kit) {
	j := simple()
	j.Key = "k"
	var callers sync.WaitGroup
	var mu sync.Mutex

	seen := map[string]int{}
	firsts := 0
	for range 50 {
		callers.Go(func() {
			done, err := k.Enqueue(k.ctx, k.now, []job.Job{j})

			mu.Lock()
			defer mu.Unlock()

			if err != nil {
				k.Error(err)
				return
			}

			seen[done[0].Job.ID]++
			if !done[0].Repeat {
				firsts++
			}
		})
	}

	callers.Wait()

	if len(seen) != 1 || firsts != 1 {
		k.Errorf("%d jobs, %d times the first", len(seen), firsts)
	}
}
