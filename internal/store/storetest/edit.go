package storetest

import (
	"fmt"
	"sync"
	"time"

	"redrive/internal/audit"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
)

var editing = []func(*kit){
	ReplayWithChangesTheNextRun, ReplayWithNothingIsAReplay, ReplayWithMovesTheDepths, ReplayWithATimeWaits,
	ReplayWithHappensOnce, ReplayWithKeepsWhatEachRunHad, ReplayWithRemovesNothingOfTheHistory,
}

var eve = audit.Actor{Name: "eve"}

// everything is a change of all that can be changed.
func everything() job.Edit {
	priority, p := 7, policy(9)
	p.Strategy = retry.Linear

	return job.Edit{
		Body: &job.Body{
			Type: "email.resend", TraceID: "t-2", MessageID: "m-2", Meta: []byte(`{"b":2}`), Payload: []byte(`{"n":2}`), Envelope: []byte(`{"e":2}`),
		},
		Queue: "mail", Priority: &priority, Policy: &p, Origins: job.Origins{"strategy": "replay"}, Timeout: time.Hour,
	}
}

// ReplayWithChangesTheNextRun: the next run has what the change says, a claim
// gets it, and the run before keeps what it had.
func ReplayWithChangesTheNextRun(k *kit) {
	first := simple()
	first.TraceID, first.MessageID, first.Meta, first.Envelope = "t-1", "m-1", []byte(`{"a":1}`), []byte(`{"e":1}`)
	was := k.dead(first)
	edit := everything()
	got, err := k.ReplayWith(k.ctx, k.now, was.ID, 1, edit, eve)
	k.check(err)

	want := edit.Apply(was)
	want.Run, want.State, want.DeadLetter, want.Attempts, want.Reason, want.Error = 2, job.Available, "", 0, "", job.ErrorInfo{}
	want.RunAt, want.ChangedAt, want.FinishedAt, want.Group = k.now, k.now, time.Time{}, 0
	k.same("the job", got, want)
	k.restart()
	d := k.detail(was.ID)
	k.same("the stored job", d.Job, want)

	body := was.Body()
	k.same("what run 1 had", *d.Replays[0].Earlier, history.Earlier{Queue: "orders", Type: was.Type, Policy: was.Policy, Timeout: was.Timeout, Body: &body})
	claimed := k.claim("mail", 5)
	k.same("what is claimed", []any{len(claimed), string(claimed[0].Payload), claimed[0].Type, claimed[0].Policy.Strategy},
		[]any{1, `{"n":2}`, "email.resend", retry.Linear})
	k.same("what is left in the first queue", len(k.claim("orders", 5)), 0)
}

// ReplayWithNothingIsAReplay: also when the change says what the job has
// anyhow.
func ReplayWithNothingIsAReplay(k *kit) {
	was := k.dead(simple())
	body, policy := was.Body(), was.Policy
	priority := was.Priority
	got, err := k.ReplayWith(k.ctx, k.now, was.ID, 1, job.Edit{Body: &body, Queue: "orders", Priority: &priority, Policy: &policy}, eve)
	k.check(err)
	k.same("run and state", []any{got.Run, got.State}, []any{2, job.Available})
	k.same("the replay", k.detail(was.ID).Replays, []history.Replay{{
		Run: 1, State: job.Discarded, Reason: retry.AttemptsExhausted, Attempts: 1, At: k.now, By: "eve",
	}})
}

// ReplayWithMovesTheDepths: after jobs changed their queues, from every state
// that can be replayed, each queue's depths are what counting gives.
func ReplayWithMovesTheDepths(k *kit) {
	dead, waiting, cancelled := k.dead(simple()), k.settle(k.begin(simple()), job.Failed), k.add(simple())[0]
	_, err := k.Cancel(k.ctx, k.now, cancelled.ID, cancelled.Run, eve)
	k.check(err)

	for i, id := range []string{dead.ID, waiting.ID, cancelled.ID} {
		_, err := k.ReplayWith(k.ctx, k.now, id, 1, job.Edit{Queue: fmt.Sprint("q", i%2), RunAt: k.now.Add(time.Duration(i) * time.Hour)}, eve)
		k.check(err)
	}

	for range 2 { // as it is in memory, and as it is in the file
		DepthsOfEachQueue(k)
		k.same("open letters", len(must(k.DeadLetters(k.ctx, filter.Filter{}, filter.Cursor{}, 10)).DeadLetters), 0)
		k.same("reasons", len(must(k.Counters.Reasons(k.ctx))), 0)
		k.restart()
	}

	k.same("totals", k.Snapshot().Totals.Replayed, int64(3))
}

// DepthsOfEachQueue compares depths with the jobs.
func DepthsOfEachQueue(k *kit) {
	k.Helper()

	for _, q := range must(k.Counters.Queues(k.ctx, k.now, k.QueueNames())) {
		want := depths(k.all(filter.Filter{Queue: q.Name}, 1000))
		for status, n := range want {
			if q.Depths[status] != n {
				k.Errorf("%s has %d jobs that are %s, its depth says %d", q.Name, n, status, q.Depths[status])
			}
		}
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// ReplayWithATimeWaits: the job is scheduled until then, and runs in its new
// run; a time that has come is no time.
func ReplayWithATimeWaits(k *kit) {
	was := k.dead(simple())
	at := k.now.Add(time.Hour)
	got, err := k.ReplayWith(k.ctx, k.now, was.ID, 1, job.Edit{RunAt: at}, eve)
	k.check(err)
	k.same("state", []any{got.State, got.Run, got.RunAt}, []any{job.Scheduled, 2, at})
	k.same("next due", must(k.NextDue(k.ctx, k.now)), at)
	k.same("claimed too early", len(k.claim("orders", 5)), 0)
	k.pass(time.Hour)
	k.same("claimed in time", ids(k.claim("orders", 5)), []string{was.ID})

	other := k.dead(simple())
	got, err = k.ReplayWith(k.ctx, k.now, other.ID, 1, job.Edit{RunAt: k.now.Add(-time.Hour)}, eve)
	k.check(err)
	k.same("state of one whose time has come", []any{got.State, got.RunAt}, []any{job.Available, k.now})
}

// ReplayWithHappensOnce: of many people who change and replay one run at the
// same time one succeeds, the others hear of it, and nothing of theirs is done.
func ReplayWithHappensOnce(k *kit) {
	was := k.dead(simple())

	errs := make([]error, 20)
	var people sync.WaitGroup
	for i := range errs {
		people.Go(func() {
			edit := job.Edit{Queue: fmt.Sprint("queue-", i), Body: &job.Body{Type: was.Type, Payload: fmt.Append(nil, i)}}
			_, errs[i] = k.ReplayWith(k.ctx, k.now, was.ID, 1, edit, audit.Actor{Name: fmt.Sprint("person ", i)})
		})
	}

	people.Wait()

	d := k.detail(was.ID)
	won := 0
	for i, err := range errs {
		if err == nil {
			won++

			k.same("the job", []any{d.Job.Queue, string(d.Job.Payload), d.Replays[0].By}, []any{fmt.Sprint("queue-", i), fmt.Sprint(i), fmt.Sprint("person ", i)})
			continue
		}

		k.same("who was first", k.conflict(err).ReplayedBy, d.Replays[0].By)
	}

	k.same("replays that happened", won, 1)
	k.same("queues", len(must(k.Counters.Queues(k.ctx, k.now, k.QueueNames()))), 2)
}

// ReplayWithKeepsWhatEachRunHad: over several runs, some of them changed.
func ReplayWithKeepsWhatEachRunHad(k *kit) {
	j := simple()
	j.Policy = policy(1)

	id := k.settle(k.begin(j), job.Failed).ID
	body := func(n int) *job.Body { return &job.Body{Type: j.Type, Payload: fmt.Append(nil, n)} }
	for run, edit := range []job.Edit{{Body: body(2)}, {Queue: "mail"}, {}, {Queue: "orders", Body: body(5)}} {
		_, err := k.ReplayWith(k.ctx, k.now, id, run+1, edit, eve)
		k.check(err)
		k.settle(k.claim(k.job(id).Queue, 1)[0], job.Failed)
	}

	d := k.detail(id)
	var got []string
	for run := 1; run <= 5; run++ {
		was := d.RunAs(run)
		got = append(got, fmt.Sprintf("%s %s", was.Queue, was.Payload))
	}

	k.same("the runs", got, []string{`orders {"n":1}`, "orders 2", "mail 2", "mail 2", "orders 5"})
}

// ReplayWithRemovesNothingOfTheHistory: the dead letter and the attempts of the
// earlier run say what they said, and name the queue that they came from.
func ReplayWithRemovesNothingOfTheHistory(k *kit) {
	was := k.dead(simple())
	before := k.detail(was.ID)
	_, err := k.ReplayWith(k.ctx, k.now, was.ID, 1, everything(), eve)
	k.check(err)
	after := k.detail(was.ID)
	k.same("the attempts", after.Attempts, before.Attempts)
	k.same("the letter's queue", []any{after.DeadLetters[0].Queue, after.DeadLetters[0].ReplayedBy}, []any{"orders", "eve"})
}
