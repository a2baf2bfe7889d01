package jobpage

import (
	"math"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

var noon = time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)

func anyPolicy(t *rapid.T) retry.Policy {
	initial := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "initial"))
	return retry.Policy{
		MaxAttempts:     rapid.SampledFrom([]int{0, 1, 3, 26, 5000, math.MaxInt}).Draw(t, "max attempts"),
		Strategy:        rapid.SampledFrom(retry.Strategies()).Draw(t, "strategy"),
		InitialInterval: initial, Coefficient: rapid.Float64Range(1, 9).Draw(t, "coefficient"),
		MaxInterval:  initial * time.Duration(rapid.Int64Range(1, 1000).Draw(t, "cap")),
		Jitter:       rapid.SampledFrom([]retry.Jitter{{}, {Low: 0.5, High: 1.5}, {Low: 0, High: 100}}).Draw(t, "jitter"),
		OnExhaustion: retry.DeadLetter,
	}
}

// anyLife is a history that the engine could have written, and some that only
// a clock that was set back could.
func anyLife(t *rapid.T) history.Detail {
	var d history.Detail
	d.Job = job.Job{
		Token: job.Token{ID: "j", Run: rapid.IntRange(1, 8).Draw(t, "runs")}, EnqueuedAt: noon, RunAt: noon,
		Policy: anyPolicy(t), State: rapid.SampledFrom(job.States()).Draw(t, "state"),
	}
	clock := noon
	step := func(name string) time.Duration {
		most := rapid.SampledFrom([]time.Duration{1, time.Second, time.Hour, 90 * format.Day}).Draw(t, name+" size")
		return time.Duration(rapid.Int64Range(-1, int64(most)).Draw(t, name))
	}
	for run := 1; run <= d.Job.Run; run++ {
		n := rapid.SampledFrom([]int{0, 1, 5, 30, 90}).Draw(t, "attempts")
		for i := range n {
			start := clock.Add(step("gap"))
			clock = start.Add(step("length"))
			d.Attempts = append(d.Attempts, job.Attempt{Run: run, Number: i + 1, Execution: i, StartedAt: start, FinishedAt: clock, Outcome: job.Failed})
			d.Job.Attempts = i + 1
		}
	}
	d.Job.StartedAt, d.Job.RunAt = clock, clock.Add(step("wait"))
	return d
}

func TestTimeline_BarsAreInOrderAndOnThePage(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := anyLife(t)
		now := latestOf(d).Add(time.Duration(rapid.Int64Range(0, int64(format.Day)).Draw(t, "now")))
		runs := runsOf(d)
		s := timelineOf(d, runs, forecastOf(d.Job, d.Attempts, true, now), now)
		for _, l := range s.lanes {
			checkLane(t, l)
		}
		for i, k := range s.ticks {
			if k.x < 0 || k.x > 100 || i > 0 && k.x <= s.ticks[i-1].x {
				t.Fatalf("tick %d at %v", i, k.x)
			}
		}
	})
}

func latestOf(d history.Detail) time.Time {
	last := noon
	for _, a := range d.Attempts {
		last = latest(last, a.FinishedAt)
	}
	return last
}

func checkLane(t *rapid.T, l lane) {
	const rounding = 1e-6
	if len(l.bars) > maxBars+maxPlanned+1 {
		t.Fatalf("run %d has %d bars", l.run.number, len(l.bars))
	}
	for i, b := range l.bars {
		if !(b.x >= 0 && b.w >= minBar-rounding && b.end() <= timelineWidth+rounding) {
			t.Fatalf("run %d, bar %d from %v, %v wide", l.run.number, i, b.x, b.w)
		}
		if i > 0 && b.x < l.bars[i-1].end()-rounding {
			t.Fatalf("run %d, bar %d at %v begins before bar %d ends at %v", l.run.number, i, b.x, i-1, l.bars[i-1].end())
		}
		if i > 0 && l.bars[i-1].planned && !b.planned {
			t.Fatalf("run %d: a bar of the past stands behind one to come", l.run.number)
		}
	}
	for _, b := range l.bands {
		if !(b.x >= 0 && b.w >= 0 && b.end() <= 100+rounding) {
			t.Fatalf("run %d: a band from %v, %v wide", l.run.number, b.x, b.w)
		}
	}
	if l.end.x < 0 || l.end.x > 100 || l.now > 100 {
		t.Fatalf("run %d ends at %v, now at %v", l.run.number, l.end.x, l.now)
	}
}

func attempts(run int, ends ...time.Duration) []job.Attempt {
	var all []job.Attempt
	for i := 0; i < len(ends); i += 2 {
		all = append(all, job.Attempt{
			Run: run, Number: i/2 + 1, StartedAt: noon.Add(ends[i]), FinishedAt: noon.Add(ends[i+1]), Outcome: job.Failed,
		})
	}
	return all
}

func TestTimeline_RunsShareOneScale(t *testing.T) {
	d := history.Detail{
		Job:         job.Job{Token: job.Token{Run: 2}, State: job.Completed, Policy: retry.Default()},
		AttemptPage: history.AttemptPage{Attempts: append(attempts(1, 0, 100*time.Second), attempts(2, time.Hour, time.Hour+50*time.Second)...)},
	}
	runs := runsOf(d)
	s := timelineOf(d, runs, forecast{}, noon.Add(2*time.Hour))
	if one, two := s.lanes[0].bars[0], s.lanes[1].bars[0]; math.Abs(one.w-2*two.w) > 0.01 || one.x != 0 || two.x != 0 {
		t.Errorf("100 s are %+v, 50 s are %+v; both should begin at 0, one twice as wide", one.box, two.box)
	}
}

func TestTimeline_LeavesOutLabelsWithoutRoom(t *testing.T) {
	d := history.Detail{
		Job:         job.Job{Token: job.Token{Run: 1}, State: job.Discarded, Policy: retry.Default()},
		AttemptPage: history.AttemptPage{Attempts: attempts(1, 0, time.Second, 2*time.Second, 3*time.Second, 100*time.Second, 200*time.Second)},
	}
	runs := runsOf(d)
	l := timelineOf(d, runs, forecast{}, noon.Add(time.Hour)).lanes[0]
	if len(l.delays) != 1 || l.delays[0].text != "1 min 37 s" {
		t.Errorf("labels %+v, want the long gap only: 1 min 37 s", l.delays)
	}
	if l.bars[0].number != "1" || l.bars[1].number != "" || l.bars[2].number != "3" {
		t.Errorf("numbers %q %q %q, want 2 left out", l.bars[0].number, l.bars[1].number, l.bars[2].number)
	}
}

func TestForecast_FollowsThePolicyToItsEnd(t *testing.T) {
	j := job.Job{State: job.Retryable, Attempts: 1, RunAt: noon.Add(10 * time.Second), Policy: retry.Policy{
		MaxAttempts: 4, Strategy: retry.Exponential, InitialInterval: 10 * time.Second, Coefficient: 2,
		MaxInterval: 25 * time.Second, Jitter: retry.Jitter{Low: 0.5, High: 1.5},
	}}
	f := forecastOf(j, []job.Attempt{{Outcome: job.Failed, StartedAt: noon, FinishedAt: noon.Add(time.Second)}}, true, noon)
	want := []coming{
		{number: 2, at: noon.Add(10 * time.Second)},
		{number: 3, at: noon.Add(31 * time.Second), low: 10 * time.Second, high: 25 * time.Second},
		{number: 4, at: noon.Add(57 * time.Second), low: 12500 * time.Millisecond, high: 25 * time.Second},
	}
	if len(f.coming) != len(want) {
		t.Fatalf("forecast %+v, want %+v", f.coming, want)
	}
	for i, c := range f.coming {
		if c != want[i] {
			t.Errorf("attempt to come %d: %+v, want %+v", i, c, want[i])
		}
	}
	if end := noon.Add(58 * time.Second); !f.ends.Equal(end) {
		t.Errorf("ends at %v, want %v", f.ends, end)
	}
}

func TestForecast_OfAnEndlessPolicyIsOpen(t *testing.T) {
	j := job.Job{State: job.Available, Policy: retry.Default()}
	j.Policy.MaxAttempts = math.MaxInt
	if f := forecastOf(j, nil, true, noon); !f.ends.IsZero() || len(f.coming) > maxForecast+1 {
		t.Errorf("ends at %v after %d attempts, want no end", f.ends, len(f.coming))
	}
}
