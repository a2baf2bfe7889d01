package storetest

import (
	"errors"
	"time"

	"redrive/internal/audit"
	"redrive/internal/job"
)

var rescheduling = []func(*kit){
	RescheduleMovesAScheduledJob, RescheduleLetsARetryRunNow, RescheduleChargesNoAttempt, RescheduleNeedsAWaitingJob,
	RescheduleKeepsAwayFromAnotherRun, RescheduleNeverOutlivesAJob, RescheduleIsInTheAuditLog,
}

// reschedule lets eve move a job.
func (k *kit) reschedule(j job.Job, at time.Time) job.Job {
	k.Helper()
	got, err := k.Reschedule(k.ctx, k.now, j.ID, j.Run, at, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("the stored job", k.job(j.ID), got)

	return got
}

// scheduled adds a job that waits for an hour.
func (k *kit) scheduled() job.Job {
	k.Helper()

	j := simple()
	j.RunAt = k.now.Add(time.Hour)

	return k.add(j)[0]
}

// RescheduleMovesAScheduledJob: only the time from which on it may run changes, and
// the job is claimed from then on, whether that is earlier or later.
func RescheduleMovesAScheduledJob(k *kit) {
	for _, at := range []time.Duration{30 * time.Minute, 2 * time.Hour} {
		j := k.scheduled()
		want := j
		want.RunAt = k.now.Add(at)
		k.pass(time.Minute)
		k.same("the job", k.reschedule(j, want.RunAt), want)
		due, err := k.NextDue(k.ctx, k.now)
		k.check(err)
		k.same("NextDue", due, want.RunAt)
		k.now = want.RunAt.Add(-time.Microsecond)
		k.same("claimed before its time", len(k.claim("orders", 5)), 0)
		k.now = want.RunAt
		k.same("claimed at its time", len(k.claim("orders", 5)), 1)
	}
}

// RescheduleLetsARetryRunNow: a time that has passed means now; the job stays
// retryable, since it failed, until it is claimed.
func RescheduleLetsARetryRunNow(k *kit) {
	retrying := k.settle(k.begin(simple()), job.Failed)
	k.pass(time.Millisecond)
	got := k.reschedule(retrying, time.Time{})
	want := retrying
	want.RunAt = k.now
	k.same("the job", got, want)
	claimed := k.claim("orders", 5)
	k.same("claimed", len(claimed), 1)
	k.same("the next attempt", []int{claimed[0].Run, claimed[0].Attempts, claimed[0].Execution}, []int{1, 1, 2})
}

// RescheduleChargesNoAttempt: neither the attempts nor any counter change, nor what
// was written down of the attempt before, its delay included.
func RescheduleChargesNoAttempt(k *kit) {
	retrying := k.settle(k.begin(simple()), job.Failed)
	before, was := k.Snapshot(), k.detail(retrying.ID)
	k.reschedule(retrying, k.now.Add(time.Hour))
	after, is := k.Snapshot(), k.detail(retrying.ID)
	k.same("totals", after.Totals, before.Totals)
	k.same("depths", after.Depths, before.Depths)
	k.same("attempts", is.Attempts, was.Attempts)
	k.same("news", after.Seq, before.Seq+1)
}

// RescheduleNeedsAWaitingJob: a job that runs, can start any moment or is over is a
// conflict that names its state, and stays as it is.
func RescheduleNeedsAWaitingJob(k *kit) {
	active := k.begin(simple())
	done := k.settle(k.begin(in("b")), job.Succeeded)
	for _, j := range []job.Job{active, k.add(in("c"))[0], done, k.dead(in("d"))} {
		_, err := k.Reschedule(k.ctx, k.now, j.ID, j.Run, k.now.Add(time.Hour), audit.Actor{Name: "eve"})
		c := k.conflict(err)
		k.same("the job in the conflict", c.Job, j)
		k.same("the sentence", c.Problem,
			"the job is "+string(j.State)+"; only a job that is scheduled or waits for a retry can be rescheduled")
	}
}

// RescheduleKeepsAwayFromAnotherRun: another user replayed the job meanwhile, and is
// named; an unknown job is job.ErrNotFound.
func RescheduleKeepsAwayFromAnotherRun(k *kit) {
	retrying := k.settle(k.begin(simple()), job.Failed)
	_, err := k.Replay(k.ctx, k.now, retrying.ID, 1, audit.Actor{Name: "adam"})
	k.check(err)
	_, err = k.Reschedule(k.ctx, k.now, retrying.ID, 1, k.now, audit.Actor{Name: "eve"})
	k.same("who was first", k.conflict(err).ReplayedBy, "adam")

	_, err = k.Reschedule(k.ctx, k.now, job.NewID(), 1, k.now, audit.Actor{Name: "eve"})
	if !errors.Is(err, job.ErrNotFound) {
		k.Errorf("a job that nobody knows gave %v", err)
	}
}

// RescheduleNeverOutlivesAJob: a job whose first attempt has to begin before some
// time is not moved to it or behind it.
func RescheduleNeverOutlivesAJob(k *kit) {
	j := simple()
	j.RunAt, j.ExpiresAt = k.now.Add(time.Hour), k.now.Add(2*time.Hour)
	j = k.add(j)[0]
	_, err := k.Reschedule(k.ctx, k.now, j.ID, 1, j.ExpiresAt, audit.Actor{Name: "eve"})
	k.same("the sentence", k.conflict(err).Problem,
		"the job expires at 2026-03-04T07:06:07.123456Z; at 2026-03-04T07:06:07.123456Z it could no longer run")
	k.reschedule(j, j.ExpiresAt.Add(-time.Microsecond))
}

// RescheduleIsInTheAuditLog: with the times before and after.
func RescheduleIsInTheAuditLog(k *kit) {
	j := k.scheduled()
	k.reschedule(j, k.now.Add(15*time.Minute))
	log, err := k.Accounts.Audit(k.ctx, audit.Filter{Subject: j.ID}, 0, 5)
	k.check(err)

	e := log.Entries[0]
	k.same("the entry", []any{e.Actor.Name, e.Action, e.Before, e.After}, []any{"eve", "job.reschedule",
		"scheduled, run 1; not before 2026-03-04T06:06:07.123456Z", "scheduled, run 1; not before 2026-03-04T05:21:07.123456Z"})
}
