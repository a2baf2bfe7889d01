package storetest

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
)

var enqueueing = []func(*kit){
	EnqueueKeepsEveryField, EnqueueFillsInWhatIsMissing, EnqueueLaterIsScheduled, EnqueueKeepsPayloadBytes,
	EnqueueNumbersJobsInOrder, EnqueueRepeatReturnsTheFirst, EnqueueRepeatWithinABatch, EnqueueParallelRepeatsMakeOneJob,
	EnqueueBatchIsAllOrNothing, EnqueueOfATakenIDIsAConflict, EnqueueAfterCallerLeftIsWholeOrAbsent,
	EnqueueOfAKeyUsedForAnotherJobIsRefused, EnqueueOfAKeyUsedTwiceInOneRequestIsRefused, EnqueueKeyBelongsToItsCaller,
	EnqueueKeyIsForWhatWasAskedFor, EnqueueKeyIsFreeOnceItsJobIsGone, EnqueueOfAMessageIDWithOtherContentIsAJobOfItsOwn,
	EnqueueRepeatsWhatAJobBeganAs, EnqueueNumbersNoTwoJobsAlike, EnqueueOfUnlikeJobsKeepsEach, EnqueueParallelMessagesMakeOneJobOfEach,
}

// EnqueueKeepsEveryField: a job is read back as it was handed in, times to the
// microsecond and in UTC.
func EnqueueKeepsEveryField(k *kit) {
	j := simple()
	j.ID, j.Priority, j.Key, j.Meta = job.NewID(), -7, "order-1", []byte(`{"trace": "a"}`)
	j.Policy.NonRetryable = []string{"auth.*"}
	j.Origins = job.Origins{"max_attempts": "queue:orders/preset:ojs", "ttr": "job"}
	j.TraceID, j.MessageID, j.Note, j.Envelope = "trace-1", "message-1", "rule x failed", []byte(`{"job": 1}`)
	j.ExpiresAt = k.now.Add(time.Hour)
	j.Timeout = 1500 * time.Millisecond
	stored := k.add(j)[0]
	k.same("the stored job", k.job(j.ID), stored)
	want := j
	want.Seq, want.Run, want.State = stored.Seq, 1, job.Available
	want.RunAt, want.EnqueuedAt, want.ChangedAt = k.now, k.now, k.now
	k.same("the job", stored, want)
	k.same("the claimed job's envelope", string(k.claim("orders", 1)[0].Envelope), `{"job": 1}`)
}

// EnqueueFillsInWhatIsMissing: a job without an id gets one; one without a time
// runs now.
func EnqueueFillsInWhatIsMissing(k *kit) {
	stored := k.add(simple())[0]
	if _, err := job.ParseID(stored.ID); err != nil {
		k.Error(err)
	}

	k.same("RunAt", stored.RunAt, k.now)
	k.same("Token", stored.Token, job.Token{ID: stored.ID, Run: 1})
}

// EnqueueLaterIsScheduled: a job that may not run before a later time is
// scheduled, one whose time has passed is available.
func EnqueueLaterIsScheduled(k *kit) {
	later, earlier := simple(), simple()
	later.RunAt, earlier.RunAt = k.now.Add(time.Microsecond), k.now.Add(-time.Hour)
	stored := k.add(later, earlier)
	k.same("the later one's state", stored[0].State, job.Scheduled)
	k.same("the later one's time", stored[0].RunAt, later.RunAt)
	k.same("the earlier one's state", stored[1].State, job.Available)
}

// EnqueueKeepsPayloadBytes: the payload and the meta object are bytes: nothing
// decodes them.
func EnqueueKeepsPayloadBytes(k *kit) {
	for _, payload := range []string{
		"", "null", `{"n":12345678901234567890123,"f":1.0e400,"z":-0}`, `{"a":1,"a":2,"A":3}`, "  [ 1 ,2 ]\n",
		"\xff\xfe\x00invalid", "\u2028\x00\x1b[31m", `"` + string(slices.Repeat([]byte("x"), 1<<20)) + `"`,
	} {
		j := simple()

		j.Payload, j.Meta = []byte(payload), []byte(`{"b":1e2, "a":{} }`)
		id := k.add(j)[0].ID
		for from, got := range map[string]job.Job{"Job": k.job(id), "Exchange": k.claim("orders", 1)[0]} {
			if string(got.Payload) != payload || string(got.Meta) != string(j.Meta) {
				k.Errorf("%s: payload %.80q became %.80q, meta %q became %q", from, payload, got.Payload, j.Meta, got.Meta)
			}
		}
	}
}

// EnqueueNumbersJobsInOrder: Seq rises in the order of enqueueing, also after a
// restart.
func EnqueueNumbersJobsInOrder(k *kit) {
	var last int64
	for range 3 {
		for _, j := range k.add(many(40)...) {
			if j.Seq <= last {
				k.Fatalf("job number %d came after %d", j.Seq, last)
			}

			last = j.Seq
		}

		k.restart()
	}
}

// EnqueueNumbersNoTwoJobsAlike: the numbers of jobs that are gone are not given again,
// and those of snapshots go on rising, also after a restart.
func EnqueueNumbersNoTwoJobsAlike(k *kit) {
	var last, revision int64
	for range 4 {
		j := simple()
		j.State, j.Reason = job.Discarded, "malformed"
		for _, stored := range k.add(j, j) {
			if stored.Seq <= last {
				k.Fatalf("job number %d came after %d", stored.Seq, last)
			}

			last = stored.Seq
		}

		if now := k.Snapshot().Seq; now <= revision {
			k.Errorf("revision %d came after %d", now, revision)
		} else {
			revision = now
		}

		k.pass(time.Hour)
		_, err := k.Sweep.Prune(k.ctx, k.now, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Minute}})
		k.check(err)
		k.restart()
	}
}

// EnqueueOfUnlikeJobsKeepsEach: jobs that are written together keep what each of
// them has of its own, be they alike or not.
func EnqueueOfUnlikeJobsKeepsEach(k *kit) {
	for _, unlike := range []int{1, 3} { // how many likenesses take turns
		jobs := many(200)
		for i := range jobs {
			j := &jobs[i]

			j.ID, j.Payload = job.NewID(), []byte(strconv.Itoa(i))
			j.Queue, j.Priority = "queue-"+strconv.Itoa(i%unlike), i%unlike
			switch i % unlike {
			case 1:
				j.Key, j.RunAt = j.ID, k.now.Add(time.Hour)
			case 2:
				j.MessageID, j.TraceID, j.Timeout = j.ID, "trace", time.Hour
				j.Policy.MaxAttempts = 2 + i
			}
		}

		for i, stored := range k.add(jobs...) {
			k.same("the stored job", k.job(jobs[i].ID), stored)
			k.same("its payload", string(stored.Payload), strconv.Itoa(i))
			k.same("its policy", stored.Policy.MaxAttempts, jobs[i].Policy.MaxAttempts)
		}
	}
}

// EnqueueBatchIsAllOrNothing: when one job of a batch cannot be stored, none
// is; other callers notice nothing.
func EnqueueBatchIsAllOrNothing(k *kit) {
	taken := k.add(simple())[0]
	before := k.Snapshot()
	bad := many(100)
	bad[70].ID = taken.ID

	var others sync.WaitGroup
	for range 10 {
		others.Go(func() {
			if _, err := k.Enqueue(k.ctx, k.now, many(3)); err != nil {
				k.Error(err)
			}
		})
	}

	_, err := k.Enqueue(k.ctx, k.now, bad)

	others.Wait()

	if err == nil {
		k.Error("the batch was stored")
	}

	k.same("all jobs", k.Snapshot().Depths.Jobs(), before.Depths.Jobs()+30)
}

// EnqueueOfATakenIDIsAConflict: an id names one job forever.
func EnqueueOfATakenIDIsAConflict(k *kit) {
	j := simple()
	j.ID = job.NewID()
	first := k.add(j)[0]

	_, err := k.Enqueue(k.ctx, k.now, []job.Job{j})
	var conflict *job.Conflict
	if !errors.As(err, &conflict) {
		k.Errorf("the second job with the id gave %v", err)
	}

	k.same("the first job", k.job(j.ID), first)
}

// EnqueueAfterCallerLeftIsWholeOrAbsent: a caller whose context ends gets its
// error at once; its batch is stored as a whole or not at all.
func EnqueueAfterCallerLeftIsWholeOrAbsent(k *kit) {
	const callers, size = 40, 25
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			ctx, cancel := context.WithCancel(k.ctx)
			go cancel()

			if _, err := k.Enqueue(ctx, k.now, many(size)); err != nil && !errors.Is(err, context.Canceled) {
				k.Error(err)
			}
		})
	}

	all.Wait()
	k.restart()

	n := k.Snapshot().Depths.Jobs()
	if n%size != 0 {
		k.Errorf("%d jobs are no whole number of batches of %d", n, size)
	}

	k.same("jobs that can be claimed", int64(len(k.claim("orders", callers*size))), n)
}
