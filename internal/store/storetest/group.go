package storetest

import (
	"errors"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retry"
)

var grouping = []func(*kit){
	GroupsAreTheirCause, GroupsCountWhatTheyHold, GroupsCountRefusedDeadLettersApart, GroupsOfDeadLettersThatNeverRan, GroupIsOpenedByTheNextFailure,
	GroupIsIgnoredUntilADate, GroupIsIgnoredUntilACount, GroupIsIgnoredUntilARate, GroupKnowsHowItsReplaysEnded, GroupLosesWhatIsDiscarded,
	GroupKeepsANote, GroupsByFilter, GroupsByClass, GroupsByPage, GroupOfNoJob, GroupsOfDeadLetters, TopGroupsOfTheDay, TopGroupsOfThisDay, OldGroupsAreRemoved, GroupsSurviveARestart,
}

// fails is a job that fails so, and retries are left to it.
func (k *kit) fails(message string) job.Job {
	k.Helper()
	e := k.ending(job.Failed)
	e.Error.Message = message
	return k.settleAs(k.begin(simple()).Settle(e, nil))
}

// group is the error group of a job's newest failure.
func (k *kit) group(of job.Job) failures.Detail {
	k.Helper()
	d, err := k.Groups.Get(k.ctx, k.now, k.detail(of.ID).Group.Fingerprint)
	k.check(err)
	return d
}

// decide sets the group of a job.
func (k *kit) decide(of job.Job, to failures.Decision) failures.Group {
	k.Helper()
	g, err := k.Groups.Decide(k.ctx, k.now, k.group(of).Fingerprint, to, audit.Actor{Name: "eve"})
	k.check(err)
	return g
}

// GroupsAreTheirCause: failures that differ in numbers only are one group,
// others are not; the group says what they share, and shows the newest.
func GroupsAreTheirCause(k *kit) {
	first := k.fails("order 7 not found")
	k.pass(time.Minute)
	second := k.fails("order 1234 not found")
	other := k.fails("order not found")
	d := k.group(first)
	k.same("the group of the second", k.group(second).Fingerprint, d.Fingerprint)

	if k.group(other).Fingerprint == d.Fingerprint {
		k.Error("another message has the same group")
	}

	k.same("what they share", []any{d.Type, d.Class, d.Message, d.Frames, d.Group.State},
		[]any{"email.send", "http.503", "order ‹number› not found", []string{"main.go"}, failures.Open})
	k.same("the sample", []any{d.Sample.Job.ID, d.Sample.Attempt.Error.Message}, []any{second.ID, "order 1234 not found"})
	k.same("first and last", []time.Time{d.FirstSeen, d.LastSeen}, []time.Time{k.now.Add(-time.Minute), k.now})
}

// GroupsCountWhatTheyHold: failures, by hour and by queue; jobs that are dead
// for it and those that are not over.
func GroupsCountWhatTheyHold(k *kit) {
	dead := k.dead(simple())
	k.pass(time.Hour)
	waits := k.settle(k.begin(in("mail")), job.Failed)
	d := k.group(dead)
	k.same("counts", []int64{d.Failures, d.Dead, d.Retrying}, []int64{2, 1, 1})
	k.same("queues", d.Queues, []filter.NameCount{{Name: "mail", Count: 1}, {Name: "orders", Count: 1}})
	k.same("the last two hours", []any{d.Hours[22].Failures, d.Hours[22].Final, d.Hours[23].Failures, d.Hours[23].Final}, []any{int64(1), int64(1), int64(1), int64(0)})
	k.same("its jobs", ids(d.Jobs), []string{waits.ID, dead.ID})
	k.pass(time.Minute)
	k.settle(k.claim("mail", 1)[0], job.Succeeded)
	d = k.group(dead)
	k.same("counts after it recovered", []int64{d.Failures, d.Dead, d.Retrying}, []int64{2, 1, 0})
}

// GroupsCountRefusedDeadLettersApart: a job whose dead letter was refused is not dead, as
// in all other counts, until its dead letter is accepted. Groups and counters agree.
func GroupsCountRefusedDeadLettersApart(k *kit) {
	k.dead(simple())
	j := k.refused()
	counts := func() []int64 {
		d := k.group(j)
		tallies, err := k.Groups.Tallies(k.ctx)
		k.check(err)
		depths := k.Snapshot().Depths
		k.same("its count and the tally", []int64{d.Dead, d.Refused}, []int64{tallies[0].Dead, tallies[0].Refused})
		k.same("its count and the counters", []int64{d.Dead, d.Refused}, []int64{depths[job.StatusDeadLetter], depths[job.StatusDLQFailed]})

		return []int64{d.Dead, d.Refused, d.Group.Jobs()}
	}
	k.same("refused", counts(), []int64{1, 1, 2})
	k.restart()
	k.same("after a restart", counts(), []int64{1, 1, 2})
	_, err := k.Forwarded(k.ctx, k.now, j.ID, 1, job.Delivery{ForwardedTo: "https://hook.example", ForwardedAt: k.now}, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("accepted", counts(), []int64{2, 0, 2})
}

// GroupsOfDeadLettersThatNeverRan: a job that comes as a dead letter is grouped by
// its reason.
func GroupsOfDeadLettersThatNeverRan(k *kit) {
	j := simple()
	j.State, j.Reason, j.Error = job.Discarded, retry.MissingTraceID, job.ErrorInfo{Type: "missing_trace_id", Message: "envelope 7 has no trace_id"}
	d := k.group(k.add(j)[0])
	k.same("the group", []any{d.Class, d.Message, d.Failures, d.Dead}, []any{string(retry.MissingTraceID), "envelope ‹number› has no trace_id", int64(1), int64(1)})
}

// GroupIsOpenedByTheNextFailure: one that was resolved opens, and says when.
func GroupIsOpenedByTheNextFailure(k *kit) {
	j := k.fails("x")
	g := k.decide(j, failures.Decision{State: failures.Resolved})
	k.same("resolved", []any{g.State, g.StateBy, g.StateAt, g.ReopenedBy}, []any{failures.Resolved, "eve", k.now, failures.Reopening("")})
	k.pass(time.Minute)
	k.fails("x")
	g = k.group(j).Group
	k.same("after a failure", []any{g.State, g.StateBy, g.ReopenedAt, g.ReopenedBy}, []any{failures.Open, "eve", k.now, failures.ByFailure})
}

// GroupIsIgnoredUntilADate: failures before it change nothing; then it opens
// without one.
func GroupIsIgnoredUntilADate(k *kit) {
	j := k.fails("x")
	until := k.now.Add(time.Hour)
	k.decide(j, failures.Decision{State: failures.Ignored, Patience: failures.Patience{Until: until}})
	k.pass(30 * time.Minute)
	k.fails("x")
	n, err := k.Groups.ReopenDue(k.ctx, k.now)
	k.check(err)
	k.same("before", []any{n, k.group(j).Group.State}, []any{0, failures.Ignored})
	k.pass(30 * time.Minute)
	n, err = k.Groups.ReopenDue(k.ctx, k.now)
	k.check(err)
	g := k.group(j).Group
	k.same("then", []any{n, g.State, g.ReopenedBy, g.ReopenedAt, g.Until}, []any{1, failures.Open, failures.ByDate, until, until})
}

// GroupIsIgnoredUntilACount: so many more failures, also over a restart.
func GroupIsIgnoredUntilACount(k *kit) {
	j := k.fails("x")
	k.decide(j, failures.Decision{State: failures.Ignored, More: 2})
	k.fails("x")
	k.same("after one", k.group(j).Group.State, failures.Ignored)
	k.restart()
	k.fails("x")
	g := k.group(j).Group
	k.same("after two", []any{g.State, g.ReopenedBy, g.Patience.Count}, []any{failures.Open, failures.ByCount, int64(3)})
}

// GroupIsIgnoredUntilARate: as many within one hour by the clock; what came in
// the hour before does not count.
func GroupIsIgnoredUntilARate(k *kit) {
	j := k.fails("x")
	k.decide(j, failures.Decision{State: failures.Ignored, Patience: failures.Patience{Rate: 2}})
	k.pass(time.Hour)
	k.fails("x")
	k.same("after one in the hour", k.group(j).Group.State, failures.Ignored)
	k.fails("x")
	g := k.group(j).Group
	k.same("after two", []any{g.State, g.ReopenedBy}, []any{failures.Open, failures.ByRate})
}

// GroupKnowsHowItsReplaysEnded: a run that was replayed leaves the group at
// once, and its end counts where it came from.
func GroupKnowsHowItsReplaysEnded(k *kit) {
	good, bad := k.dead(simple()), k.dead(simple())
	fingerprint := k.group(good).Fingerprint
	for _, j := range []job.Job{good, bad} {
		_, err := k.Replay(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
		k.check(err)
	}

	counts := func() []int64 {
		d, err := k.Groups.Get(k.ctx, k.now, fingerprint)
		k.check(err)
		return []int64{d.Dead, d.Replayed, d.Recovered, d.Relapsed}
	}
	k.same("after the replay", counts(), []int64{0, 2, 0, 0})
	claimed := k.claim("orders", 2)
	k.settle(claimed[0], job.Succeeded)
	k.settle(claimed[1], job.Failed)
	k.same("after the runs", counts(), []int64{1, 2, 1, 1})
}

// GroupLosesWhatIsDiscarded: a job in the trash does not count as dead, and does so
// again when it is restored.
func GroupLosesWhatIsDiscarded(k *kit) {
	j := k.dead(simple())
	_, err := k.Discard(k.ctx, k.now, j.ID, j.Run, audit.Actor{Name: "eve"})
	k.check(err)
	d := k.group(j)
	k.same("in the trash", []any{d.Dead, len(d.Jobs)}, []any{int64(0), 0})
	_, err = k.Restore(k.ctx, k.now, j.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.same("restored", k.group(j).Dead, int64(1))
}

// GroupKeepsANote: until a person writes another one.
func GroupKeepsANote(k *kit) {
	fingerprint := k.group(k.fails("x")).Fingerprint
	for _, note := range []string{"they know", ""} {
		g, err := k.Groups.Note(k.ctx, k.now, fingerprint, note, audit.Actor{Name: "eve"})
		k.check(err)
		k.same("the note", g.Note, note)
	}
}

// GroupOfNoJob: an unknown fingerprint is job.ErrNotFound, for whatever is
// done to it.
func GroupOfNoJob(k *kit) {
	_, err := k.Groups.Get(k.ctx, k.now, "nobody")

	_, setErr := k.Groups.Decide(k.ctx, k.now, "nobody", failures.Decision{State: failures.Open}, audit.Actor{})
	_, noteErr := k.Groups.Note(k.ctx, k.now, "nobody", "x", audit.Actor{})
	for _, err := range []error{err, setErr, noteErr} {
		if !errors.Is(err, job.ErrNotFound) {
			k.Errorf("got %v, want job.ErrNotFound", err)
		}
	}
}

// GroupsSurviveARestart: everything that is told of a group, and the next
// failure finds it.
func GroupsSurviveARestart(k *kit) {
	j := k.fails("x")
	k.decide(j, failures.Decision{State: failures.Ignored, Patience: failures.Patience{Rate: 5}})
	before := k.group(j)
	k.restart()
	k.same("the group", k.group(j), before)
	k.fails("x")
	k.same("its failures", k.group(j).Failures, int64(2))
}
