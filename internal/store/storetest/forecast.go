package storetest

import (
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retention"
)

// ForecastTellsWhatGoesSoon: of each kind how many are kept, when the oldest ended,
// and how many will be removed within a day.
func ForecastTellsWhatGoesSoon(k *kit) {
	limits := retention.Limits{
		Ages:   retention.Ages{retention.Completed: 3 * day, retention.DeadLetters: 10 * day},
		Queues: map[string]retention.Ages{"short": {retention.Completed: 2 * day}},
		Trash:  2 * day,
	}

	k.same("before the first", k.Sweep.Retention(), retention.Forecast{})
	oldest := k.now
	k.completed(simple())
	k.completed(in("short"))
	trashed := k.dead(simple())
	k.discard(trashed.ID)
	dead := k.now
	k.dead(simple())
	k.pass(day + time.Hour)
	k.completed(simple())
	k.completed(in("short"))
	k.cancelled(simple())

	outlook := func(kind retention.Kind, kept int64, oldest time.Time, soon int64) {
		k.Helper()
		k.same("the outlook", k.Sweep.Retention().Of(kind), retention.Outlook{Kind: kind, Jobs: kept, Oldest: oldest, Soon: soon})
	}
	f, err := k.Sweep.Forecast(k.ctx, k.now, limits)
	k.check(err)
	k.same("the moment", f.At, k.now)
	outlook(retention.Completed, 4, oldest, 1)
	outlook(retention.Cancelled, 1, k.now, 0)
	outlook(retention.Discarded, 0, time.Time{}, 0)
	outlook(retention.DeadLetters, 1, dead, 0)
	outlook(retention.Trash, 1, oldest, 1)
	k.now = oldest.Add(9*day + time.Hour)
	_, err = k.Sweep.Forecast(k.ctx, k.now, limits)
	k.check(err)
	outlook(retention.Completed, 4, oldest, 4)
	outlook(retention.DeadLetters, 1, dead, 1)
}

// foresee counts what will be removed, and returns the outlook of a kind.
func (k *kit) foresee(l retention.Limits, kind retention.Kind) retention.Outlook {
	k.Helper()
	f, err := k.Sweep.Forecast(k.ctx, k.now, l)
	k.check(err)
	return f.Of(kind)
}

// ForecastAnnouncesWhatIsTooMany: the dead letters that the next sweep removes for
// their number, without those that it spares.
func ForecastAnnouncesWhatIsTooMany(k *kit) {
	oldest := k.now
	k.deads(5)
	k.same("without a number", k.foresee(retention.Limits{}, retention.OverCount), retention.Outlook{Kind: retention.OverCount})
	k.same("at the number", k.foresee(retention.Limits{Count: 5}, retention.OverCount), retention.Outlook{Kind: retention.OverCount})
	want := retention.Outlook{Kind: retention.OverCount, Jobs: 3, Oldest: oldest, Soon: 3}
	k.same("beyond it", k.foresee(retention.Limits{Count: 2}, retention.OverCount), want)
	k.same("the newest forecast", k.Sweep.Retention().Of(retention.OverCount), want)
	o := k.operate(operation.Replay, filter.Filter{})
	k.run(o.ID, operation.Pace{})
	k.same("held by an operation", k.foresee(retention.Limits{Count: 2}, retention.OverCount), retention.Outlook{Kind: retention.OverCount, Jobs: 3})
}

// ForecastCountsNoDeadLetterTwice: what goes for its number does not go for its age.
func ForecastCountsNoDeadLetterTwice(k *kit) {
	k.deads(5)
	k.pass(day)
	k.deads(2)

	limits := retention.Limits{Ages: retention.Ages{retention.DeadLetters: day + time.Hour}, Count: 3}
	tooMany, aged := k.foresee(limits, retention.OverCount), k.Sweep.Retention().Of(retention.DeadLetters)
	k.same("for the number, for the age", []int64{tooMany.Soon, aged.Soon}, []int64{4, 1})
}

// Retention_ItsClockOutlivesARestart: when nothing is removed, to the moment; otherwise to the
// hour. What is known from memory is exact.
func Retention_ItsClockOutlivesARestart(k *kit) {
	stored := func(c retention.Clock) retention.Clock {
		k.Helper()
		k.check(k.Sweep.SetClock(k.ctx, c))
		k.same("from memory", k.Sweep.Retention().Clock, c)
		k.restart()
		got, err := k.Sweep.Clock(k.ctx)
		k.check(err)

		return got
	}
	first := retention.Clock{Trusted: k.now}
	k.same("the first", stored(first), first)
	k.same("a minute later", stored(retention.Clock{Trusted: k.now.Add(time.Minute)}), first)
	later := retention.Clock{Trusted: k.now.Add(time.Hour)}
	k.same("an hour later", stored(later), later)
	held := retention.Clock{Trusted: k.now.Add(61 * time.Minute), Left: 23*time.Hour + time.Second}
	k.same("held", stored(held), held)
	held.Left -= time.Minute
	k.same("held for less", stored(held), held)
	back := retention.Clock{Trusted: k.now.Add(-day)}
	k.same("back", stored(back), back)
}

// Retention_ItsClockBeginsWithTheNewestTime: of what happened in a database that never had
// one. A new database knows none.
func Retention_ItsClockBeginsWithTheNewestTime(k *kit) {
	clock := func() time.Time {
		k.Helper()
		c, err := k.Sweep.Clock(k.ctx)
		k.check(err)
		k.same("held for", c.Left, time.Duration(0))

		return c.Trusted
	}
	k.same("a new database", clock(), time.Time{})
	j := k.add(simple())[0]
	k.same("a job", clock(), k.now)
	k.pass(time.Hour)
	k.settle(k.claim("orders", 1)[0], job.Failed)
	k.same("a failure", clock().After(k.now.Add(-time.Minute)), true)
	k.pass(time.Hour)
	_, err := k.Cancel(k.ctx, k.now, j.ID, 1, eve)
	k.check(err)
	k.same("an act", clock(), k.now)
}
