package storetest

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/stats"
)

var drawing = []func(*kit){SeriesByQueueAndType, SeriesByTheQuarter, SeriesBoundsTheTypes, RecentOfAType}

// typed is a simple job of a type.
func typed(queue, typ string) job.Job {
	j := in(queue)
	j.Type = typ
	return j
}

// SeriesByQueueAndType: minute by minute, the newest last, of one queue, one
// type, a family of types, or all.
func SeriesByQueueAndType(k *kit) {
	k.settle(k.begin(typed("mail", "email.send")), job.Succeeded)
	k.pass(30 * time.Minute)
	k.dead(typed("mail", "email.send"))
	k.settle(k.begin(typed("mail", "email.digest")), job.Succeeded)
	k.settle(k.begin(typed("orders", "email.send")), job.Succeeded)
	k.settle(k.begin(typed("orders", "emailed")), job.Succeeded)
	k.pass(29 * time.Minute)

	ok, dead := stats.Totals{Succeeded: 1}, stats.Totals{Failed: 1, FailedPermanently: 1}
	for _, test := range []struct {
		queue, typ     string
		oldest, middle stats.Totals
	}{
		{"", "", ok, dead.Add(stats.Totals{Succeeded: 3})},
		{"mail", "", ok, dead.Add(ok)},
		{"", "email.send", ok, dead.Add(ok)},
		{"mail", "email.send", ok, dead},
		{"", "email.*", ok, dead.Add(stats.Totals{Succeeded: 2})},
		{"orders", "email.*", stats.Totals{}, ok},
		{"orders", "email.digest", stats.Totals{}, stats.Totals{}},
	} {
		want := make([]stats.Totals, 60)
		want[0], want[30] = test.oldest, test.middle
		got := must(k.Counters.Series(k.ctx, k.now, test.queue, test.typ, queues.LastHour()))
		k.same(fmt.Sprintf("the hour of %q %q", test.queue, test.typ), got, want)
	}

	k.pass(time.Minute)
	k.same("the oldest minute", must(k.Counters.Series(k.ctx, k.now, "", "", queues.LastHour()))[0], stats.Totals{})
}

// SeriesByTheQuarter: a day in quarters of an hour that begin at whole ones.
func SeriesByTheQuarter(k *kit) {
	k.now = time.Date(2026, 3, 4, 0, 1, 0, 0, time.UTC)
	for _, at := range []time.Duration{0, 13 * time.Minute, 14 * time.Minute, 23*time.Hour + 50*time.Minute} {
		k.now = time.Date(2026, 3, 4, 0, 1, 0, 0, time.UTC).Add(at)
		k.settle(k.begin(simple()), job.Succeeded)
	}

	want := make([]stats.Totals, 96)
	want[0].Succeeded, want[1].Succeeded, want[95].Succeeded = 2, 1, 1
	k.same("the day", must(k.Counters.Series(k.ctx, k.now, "orders", "", queues.LastDay())), want)
}

// SeriesBoundsTheTypes: past a thousand of them the rest counts as other, and
// the series of all types misses nothing.
func SeriesBoundsTheTypes(k *kit) {
	for round := range 3 {
		jobs := many(500)
		for i := range jobs {
			jobs[i].Type = fmt.Sprintf("type-%d-%d", round, i)
		}

		k.add(jobs...)

		var settle []job.Settlement
		for _, j := range k.claim("orders", 500) {
			settle = append(settle, j.Settle(k.ending(job.Succeeded), nil))
		}

		k.exchange(settle, "", 0)
	}

	count := func(typ string) int64 {
		return must(k.Counters.Series(k.ctx, k.now, "", typ, queues.LastHour()))[59].Succeeded
	}
	k.same("all, the first, the last, other", []int64{count(""), count("type-0-0"), count("type-2-499"), count("other")}, []int64{1500, 1, 0, 500})
	k.same("the queue's hour", must(k.Counters.Queues(k.ctx, k.now, k.QueueNames()))[0].LastHour[59].Succeeded, int64(1500))
}

// RecentOfAType: the newest first, whatever became of them, and not more than
// asked for.
func RecentOfAType(k *kit) {
	var want []string
	for range 3 {
		want = append([]string{k.add(typed("mail", "email.send"))[0].ID}, want...)
		k.add(typed("mail", "email.digest"))
	}

	k.same("the newest two", ids(must(k.Recent(k.ctx, "email.send", 2))), want[:2])
	k.same("all of them", ids(must(k.Recent(k.ctx, "email.send", 60))), want)
	k.same("of an unknown type", len(must(k.Recent(k.ctx, "sms", 60))), 0)
}
