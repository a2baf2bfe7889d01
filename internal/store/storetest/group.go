package storetest

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/retention"
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
// in all other counts, until its letter is accepted. Groups and counters agree.
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

// GroupsByFilter: by state, queue, source, type and text, in which % and _ mean
// themselves.
func GroupsByFilter(k *kit) {
	k.fails("50% of it")
	k.settle(k.begin(in("mail")), job.Failed)
	k.decide(k.fails("other"), failures.Decision{State: failures.Resolved})
	k.mirror(1, k.deadAt("7"))

	for f, want := range map[failures.Filter]int{
		{}: 4, {State: failures.Open}: 3, {Source: "shop"}: 1, {Source: "hop"}: 0, {Source: "orders"}: 0, {State: failures.Resolved}: 1, {Queue: "mail"}: 1, {Queue: "none"}: 0,
		{Type: "email.*"}: 3, {Type: "sms"}: 0, {Text: "% OF"}: 1, {Text: "_"}: 0, {Text: "http."}: 3, {Sort: failures.NewestSeen}: 4,
	} {
		page, err := k.Groups.List(k.ctx, k.now, f, failures.Cursor{}, 10)
		k.check(err)
		k.same(fmt.Sprintf("groups of %+v", f), len(page.Groups), want)
	}

	tallies, err := k.Groups.Tallies(k.ctx)
	k.check(err)
	k.same("the tallies", tallies, []failures.Tally{
		{State: failures.Open, Groups: 3, Dead: 1, Retrying: 2}, {State: failures.Resolved, Groups: 1, Retrying: 1}, {State: failures.Ignored},
	})
}

// GroupsByClass: one cause in several types of jobs and queues is one class, and a filter
// selects before it is summed up.
func GroupsByClass(k *kit) {
	for i, typ := range []string{"a.one", "a.two", "b.three"} {
		j := in([]string{"orders", "mail"}[i%2])
		j.Type = typ
		k.failing(j, "tls.handshake", "no answer")
	}

	j := simple()
	j.Type = "a.one"
	other := k.failing(j, "smtp.Error", "421")
	k.pass(30 * time.Hour)

	retrying := simple()
	retrying.Type, retrying.Policy = "a.one", policy(5)
	k.settle(k.begin(retrying), job.Failed)

	sums := func(f failures.Filter, limit int) (all []any) {
		c, err := k.Groups.RollUp(k.ctx, k.now, f, limit)
		k.check(err)

		for _, c := range c.Listed {
			all = append(all, c.Name, c.Groups, c.Types, c.Queues, c.Dead, c.Retrying, c.Day)
		}

		return append(all, c.Total, c.Groups)
	}
	tls := []any{"tls.handshake", int64(3), int64(3), int64(2), int64(3), int64(0), int64(0)}
	smtp := []any{"smtp.Error", int64(1), int64(1), int64(1), int64(1), int64(0), int64(0)}
	http := []any{"http.503", int64(1), int64(1), int64(1), int64(0), int64(1), int64(1)}
	k.same("all", sums(failures.Filter{}, 10), append(append(append(slices.Clone(tls), smtp...), http...), int64(3), int64(5)))
	k.same("the first one", sums(failures.Filter{}, 1), append(slices.Clone(tls), int64(3), int64(5)))
	k.same("of a type", sums(failures.Filter{Type: "b.three"}, 10),
		[]any{"tls.handshake", int64(1), int64(1), int64(1), int64(1), int64(0), int64(0), int64(1), int64(1)})
	k.same("of a class", sums(failures.Filter{Class: "smtp.Error"}, 10), append(slices.Clone(smtp), int64(1), int64(1)))
	k.same("of none", sums(failures.Filter{Class: "none"}, 10), []any{int64(0), int64(0)})

	k.decide(other, failures.Decision{State: failures.Resolved})
	k.same("the open ones", sums(failures.Filter{State: failures.Open}, 10), append(append(slices.Clone(tls), http...), int64(2), int64(4)))
	page, err := k.Groups.List(k.ctx, k.now, failures.Filter{Class: "tls.handshake"}, failures.Cursor{}, 10)
	k.check(err)
	k.same("the groups of a class", len(page.Groups), 3)
}

// GroupsByPage: every page follows the one before, in either order.
func GroupsByPage(k *kit) {
	for i := range 7 {
		k.pass(time.Minute)
		k.fails("message " + string(rune('a'+i)))
	}

	for _, sort := range []failures.Sort{failures.MostDead, failures.NewestSeen} {
		var seen string
		for after, first := (failures.Cursor{}), true; first || after != (failures.Cursor{}); first = false {
			page, err := k.Groups.List(k.ctx, k.now, failures.Filter{Sort: sort}, after, 3)
			k.check(err)

			for _, g := range page.Groups {
				seen += g.Message[len(g.Message)-1:]
			}

			after = page.Next
		}

		k.same("the pages", seen, "gfedcba")
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

// GroupsOfDeadLetters: those to which the jobs of a page of dead letters belong, by
// number; what waits for a retry is not among them.
func GroupsOfDeadLetters(k *kit) {
	j, duplicate := k.dead(simple()), k.dead(simple())
	k.fails("no letter")
	all, err := k.Groups.Of(k.ctx, k.letters(filter.Filter{}, 10))
	k.check(err)
	number := k.detail(j.ID).Job.Group
	k.same("the groups", []any{len(all), all[number].Fingerprint, all[number].Failures}, []any{1, k.group(duplicate).Fingerprint, int64(2)})
	all, err = k.Groups.Of(k.ctx, nil)
	k.check(err)
	k.same("groups of no letter", len(all), 0)
}

// TopGroupsOfTheDay: those with the most failures within a day first, also when
// others have more dead jobs; what is older, or dealt with, is left out.
func TopGroupsOfTheDay(k *kit) {
	k.fails("long ago")
	k.pass(25 * time.Hour)
	once := k.dead(simple())
	k.pass(time.Hour)
	twice := k.fails("twice")
	k.fails("twice")
	k.decide(k.fails("dealt with"), failures.Decision{State: failures.Resolved})
	k.same("open groups", k.Snapshot().OpenGroups, int64(3))
	top, err := k.Groups.Top(k.ctx, k.now, 5)
	k.check(err)

	var got []any
	for _, g := range top {
		got = append(got, g.Fingerprint, g.LastDay[22], g.LastDay[23])
	}

	k.same("the top", got, []any{k.group(twice).Fingerprint, int64(0), int64(2), k.group(once).Fingerprint, int64(1), int64(0)})
	top, err = k.Groups.Top(k.ctx, k.now, 1)
	k.check(err)
	k.same("the first alone", len(top), 1)
}

// TopGroupsOfThisDay: what failed often the day before, and again today, comes
// after what failed more often today.
func TopGroupsOfThisDay(k *kit) {
	for range 5 {
		k.fails("often")
	}

	k.pass(20 * time.Hour)
	often := k.fails("often")
	k.pass(10 * time.Hour)
	k.fails("lately")

	lately := k.fails("lately")
	once := k.fails("once")
	for i, want := range [][]string{{k.group(lately).Fingerprint}, {k.group(lately).Fingerprint, k.group(once).Fingerprint}} {
		top, err := k.Groups.Top(k.ctx, k.now, i+1)
		k.check(err)

		var got []string
		for _, g := range top {
			got = append(got, g.Fingerprint)
		}

		k.same("the first ones", got, want)
	}

	top, err := k.Groups.Top(k.ctx, k.now, 9)
	k.check(err)
	k.same("the last of all", []any{len(top), top[2].Fingerprint, total(top[2].LastDay)}, []any{3, k.group(often).Fingerprint, int64(1)})
}

// OldGroupsAreRemoved: with the retention of dead letters, once no job belongs
// to them; not those that a person wrote a note or decided about.
func OldGroupsAreRemoved(k *kit) {
	gone, noted := k.failing(simple(), "a", "gone"), k.failing(simple(), "a", "noted")
	resolved, ignored := k.failing(simple(), "a", "resolved"), k.failing(simple(), "a", "ignored")

	replayed, waits := k.failing(simple(), "a", "replayed"), k.fails("waits")
	known := map[string]string{}
	for name, j := range map[string]job.Job{"gone": gone, "noted": noted, "resolved": resolved, "ignored": ignored, "replayed": replayed, "waits": waits} {
		known[name] = k.group(j).Fingerprint
	}

	k.decide(resolved, failures.Decision{State: failures.Resolved})
	k.decide(ignored, failures.Decision{State: failures.Ignored})
	_, err := k.Groups.Note(k.ctx, k.now, known["noted"], "they know", audit.Actor{Name: "eve"})
	k.check(err)
	_, err = k.Replay(k.ctx, k.now, replayed.ID, 1, audit.Actor{Name: "eve"})
	k.check(err)
	k.pass(2 * time.Hour)
	k.failing(in("mail"), "a", "new")

	left := func() (names []string) {
		for name, fingerprint := range known {
			if _, err := k.Groups.Get(k.ctx, k.now, fingerprint); err == nil {
				names = append(names, name)
			} else if !errors.Is(err, job.ErrNotFound) {
				k.check(err)
			}
		}

		slices.Sort(names)

		return names
	}
	done, err := k.Sweep.Prune(k.ctx, k.now, retention.Limits{Count: 1})
	k.check(err)
	k.same("removed for the number of letters", []any{done.Groups, len(left())}, []any{0, 6})
	done, err = k.Sweep.Prune(k.ctx, k.now, retention.Limits{Ages: retention.Ages{retention.DeadLetters: time.Hour}})
	k.check(err)
	k.same("removed", []any{done.Groups, left()}, []any{2, []string{"ignored", "noted", "resolved", "waits"}})
	k.same("open groups", k.Snapshot().OpenGroups, int64(3))

	for _, j := range k.claim("orders", 2) { // one of them was replayed: it has no group to prove
		k.settle(j, job.Succeeded)
	}

	k.restart()
	k.same("after a restart", []any{left(), k.Snapshot().OpenGroups}, []any{[]string{"ignored", "noted", "resolved", "waits"}, int64(3)})
	d := k.group(k.failing(simple(), "a", "gone"))
	k.same("it fails again", []any{d.Fingerprint, d.Failures, d.FirstSeen, d.ReopenedBy}, []any{known["gone"], int64(1), k.now, failures.Reopening("")})
}
