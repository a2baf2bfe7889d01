package jobpage

import (
	"math"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// forecast says what the policy will do if every attempt to come fails.
type forecast struct {
	coming []coming
	ends   time.Time       // when the run is over then; zero when that cannot be told
	length time.Duration   // how long an attempt is expected to take
	fate   templates.Style // what then becomes of the job
}

// coming is an attempt that the policy still allows.
type coming struct {
	number    int
	at        time.Time     // when it starts, in the middle of the jitter
	low, high time.Duration // its delay is between these; zero where it was drawn already
}

// maxForecast bounds the attempts that are computed, and farForecast the time:
// beyond, the end is said to be open.
const (
	maxForecast = 1000
	farForecast = 100 * 365 * format.Day
)

// forecastOf computes the attempts to come of a job as of now; deadLetters says
// whether its queue has a dead-letter queue. A job that is over has none to come,
// and neither has one whose start is unknown.
func forecastOf(j job.Job, attempts []job.Attempt, deadLetters bool, now time.Time) forecast {
	f := forecast{length: usualLength(j.Run, attempts), fate: fateOf(j.Policy, deadLetters)}
	next, start := j.Attempts+1, latest(j.RunAt, now)
	switch j.State {
	case job.Scheduled, job.Available, job.Retryable:
		if next > j.Policy.Limit() {
			return f
		}

		f.coming = append(f.coming, coming{number: next, at: start})
	case job.Active:
		start = j.StartedAt
	default:
		return f
	}

	f.follow(j, next, latest(start.Add(f.length), now), now)

	return f
}

// fateOf is what becomes of a job when its last attempt fails.
func fateOf(p retry.Policy, deadLetters bool) templates.Style {
	switch {
	case p.OnExhaustion != retry.DeadLetter:
		return templates.StyleOf(job.Status(job.Discarded))
	case deadLetters:
		return templates.StyleOf(job.StatusDeadLetter)
	}

	return templates.StyleOf(job.StatusDLQFailed)
}

// follow adds the attempts behind number, which ends at end. It stops without an
// end where a policy allows more attempts than anyone would read, or runs for a
// century.
func (f *forecast) follow(j job.Job, number int, end, now time.Time) {
	limit := j.Policy.Limit()
	for n := number; n < limit; n++ {
		if n-number >= maxForecast || end.Sub(now) > farForecast {
			return
		}

		c := coming{
			number: n + 1,
			at:     end.Add(j.Policy.Delay(n, always(0.5)).Final),
			low:    j.Policy.Delay(n, always(0)).Final,
			high:   j.Policy.Delay(n, always(math.Nextafter(1, 0))).Final,
		}
		f.coming = append(f.coming, c)
		end = c.at.Add(f.length)
	}

	f.ends = end
}

// always is chance that is none, for the middle and the bounds of the jitter.
func always(x float64) func() float64 { return func() float64 { return x } }

// latest is the later of two times; the zero time is before all others.
func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// usualLength is the median duration of the completed attempts of a run, or of
// all runs where it has none.
func usualLength(run int, attempts []job.Attempt) time.Duration {
	var here, all []time.Duration
	for _, a := range attempts {
		if !a.Outcome.Counted() {
			continue
		}

		d := max(0, a.FinishedAt.Sub(a.StartedAt))
		all = append(all, d)
		if a.Run == run {
			here = append(here, d)
		}
	}

	if len(here) == 0 {
		here = all
	}

	if len(here) == 0 {
		return 0
	}

	slices.Sort(here)

	return here[len(here)/2]
}
