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
)

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

// GroupsOfDeadLetters: those to which the jobs of a page of dead letters belong, by
// number; what waits for a retry is not among them.
func GroupsOfDeadLetters(k *kit) {
	j, duplicate := k.dead(simple()), k.dead(simple())
	k.fails("no letter")
	all, err := k.Groups.Of(k.ctx, k.deadLetters(filter.Filter{}, 10))
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
