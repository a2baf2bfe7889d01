package retry_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/retry"
)

func preset(t *testing.T, name string) retry.Policy {
	t.Helper()
	p, ok := retry.Preset(name)
	if !ok {
		t.Fatalf("no preset %s", name)
	}
	return p
}

// The presets, each in the figures of its document.
func TestPreset_DelaysAsDocumented(t *testing.T) {
	tests := []struct {
		name     string
		attempts int
		end      retry.Action
		want     []float64 // seconds before retry 1, 2, 3, …
	}{
		{"ojs", 3, retry.Discard, []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300}},
		{"daycry", 4, retry.DeadLetter, []float64{5, 10, 20, 40, 80, 160, 300}},
		{"yii2", 1, retry.Discard, []float64{0, 0, 0}},
		{"initphp", 3, retry.DeadLetter, []float64{0, 0, 0, 0}},
		{"sidekiq", 26, retry.DeadLetter, []float64{1, 16, 81, 256, 625, 1296, 2401, 4096, 6561, 10_000}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := preset(t, test.name)
			if err := p.Validate(); err != nil {
				t.Fatal(err)
			}
			if p.MaxAttempts != test.attempts || p.OnExhaustion != test.end {
				t.Errorf("%d attempts, then %s; want %d, then %s", p.MaxAttempts, p.OnExhaustion, test.attempts, test.end)
			}
			for i, row := range p.Table(len(test.want)) {
				if row.Retry != i+1 || row.Capped.Seconds() != test.want[i] {
					t.Errorf("retry %d after %v, want %d after %v s", row.Retry, row.Capped, i+1, test.want[i])
				}
			}
		})
	}
	if len(tests) != len(retry.Presets()) {
		t.Errorf("%d presets, %d of them tested", len(retry.Presets()), len(tests))
	}
}

// The mock's figures: 5 attempts, 5 s doubled, 15 % around.
func TestPolicyTable_AddsUp(t *testing.T) {
	p := preset(t, "daycry")
	rows := p.Table(4)
	want := retry.Row{
		Retry: 4, Raw: 40 * time.Second, Capped: 40 * time.Second,
		Delay: retry.Span{Low: 34 * time.Second, Mean: 40 * time.Second, High: 46 * time.Second},
		Total: retry.Span{Low: 63_750 * time.Millisecond, Mean: 75 * time.Second, High: 86_250 * time.Millisecond},
	}
	if len(rows) != 4 || rows[3] != want {
		t.Errorf("Table(4) ends with\n%+v, want\n%+v", rows[3], want)
	}
}

// At the cap, jitter can only shorten: OJS's 300 s become 150 to 300 s, and on
// average not 300.
func TestPolicyTable_CapsTheJitterAgain(t *testing.T) {
	got := preset(t, "ojs").Table(10)[9]
	want := retry.Span{Low: 150 * time.Second, Mean: 262_500 * time.Millisecond, High: 300 * time.Second}
	if got.Raw != 512*time.Second || got.Capped != 300*time.Second || got.Delay != want {
		t.Errorf("row 10 = %+v, want a delay of %+v", got, want)
	}
}

// What the table says is what Delay draws.
func TestPolicyTable_HoldsWhatDelayDraws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := anyPolicy(t), rapid.IntRange(1, 40).Draw(t, "n")
		row := p.Table(n)[n-1]
		d := p.Delay(n, func() float64 { return rapid.Float64Range(0, 0.999999).Draw(t, "random") })
		if d.Final < row.Delay.Low || d.Final > row.Delay.High || d.Raw != row.Raw || d.Capped != row.Capped {
			t.Fatalf("Delay = %+v is outside of %+v", d, row)
		}
	})
}

// Nothing overflows or leaves its order, at any coefficient and cap.
func TestPolicyTable_IsOrderedAndNeverOverflows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy(t)
		p.MaxAttempts = rapid.IntRange(0, math.MaxInt).Draw(t, "attempts")
		var before retry.Span
		for _, row := range p.Table(30) {
			for _, s := range []retry.Span{row.Delay, row.Total} {
				if s.Low < 0 || s.Low > s.Mean || s.Mean > s.High {
					t.Fatalf("%+v of %+v is out of order", row, p)
				}
			}
			if row.Delay.High > p.MaxInterval || row.Total.Low < before.Low || row.Total.High < before.High {
				t.Fatalf("%+v of %+v after %+v", row, p, before)
			}
			before = row.Total
		}
		if total, _ := p.UntilDeath(); total.Low < 0 || total.Low > total.Mean || total.Mean > total.High {
			t.Fatalf("UntilDeath of %+v = %+v", p, total)
		}
	})
}

// The average in the table is the average of many draws, the cap included.
func TestPolicyTable_MeanIsTheMeanOfDraws(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)).Float64
	for _, jitter := range []retry.Jitter{{Low: 0.5, High: 1.5}, {Low: 0, High: 1}, {Low: 0, High: 4}, {Low: 2, High: 3}, {Low: 1.2, High: 1.2}} {
		p := with(func(p *retry.Policy) {
			p.Strategy, p.InitialInterval, p.MaxInterval, p.Jitter = retry.Constant, 10*time.Second, 12*time.Second, jitter
		})
		const n = 20_000
		var sum float64
		for range n {
			sum += p.Delay(1, random).Final.Seconds()
		}
		// Twelve seconds are the widest spread: 5 standard errors at most.
		want := p.Table(1)[0].Delay.Mean.Seconds()
		if mean := sum / n; math.Abs(mean-want) > 5*12/math.Sqrt(12*n) {
			t.Errorf("jitter %v: the mean of %d draws is %v s, the table says %v s", jitter, n, mean, want)
		}
	}
}

func TestPolicyUntilDeath(t *testing.T) {
	attempts := func(name string, n int) retry.Policy {
		p := preset(t, name)
		p.MaxAttempts = n
		return p
	}
	linear := with(func(p *retry.Policy) {
		p.Strategy, p.MaxAttempts, p.MaxInterval = retry.Linear, math.MaxInt, 3660*24*time.Hour
	})
	capped := preset(t, "daycry").Table(7)[6] // from the seventh retry on: 300 s, or 255 to 300
	tests := []struct {
		name      string
		policy    retry.Policy
		low, mean time.Duration
		exact     bool
	}{
		{"daycry, 5 attempts", attempts("daycry", 5), 63_750 * time.Millisecond, 75 * time.Second, true},
		{"never retried", attempts("ojs", 0), 0, 0, true},
		{"one retry", attempts("ojs", 2), 500 * time.Millisecond, time.Second, true},
		{"at once", attempts("initphp", 100), 0, 0, true},
		{"sidekiq, 25 retries", attempts("sidekiq", 26), 2_153_645 * time.Second, 2_153_645 * time.Second, true},
		{"a million attempts under the cap", attempts("daycry", 1_000_000), capped.Total.Low + 999_992*255*time.Second, capped.Total.Mean + 999_992*capped.Delay.Mean, true},
		{"longer than time", attempts("daycry", math.MaxInt), math.MaxInt64, math.MaxInt64, true},
		{"more delays than are added", linear, 50_005_000 * time.Second, 50_005_000 * time.Second, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, exact := test.policy.UntilDeath()
			if got.Low != test.low || got.Mean != test.mean || exact != test.exact {
				t.Errorf("UntilDeath = %+v, %v; want low %v, mean %v, %v", got, exact, test.low, test.mean, test.exact)
			}
		})
	}
}

// The shortcut for delays that no longer change is no shortcut in the result.
func TestPolicyUntilDeath_IsTheLastTotal(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy(t)
		p.MaxAttempts = rapid.IntRange(2, 300).Draw(t, "attempts")
		rows := p.Table(p.MaxAttempts - 1)
		if got, exact := p.UntilDeath(); got != rows[len(rows)-1].Total || !exact {
			t.Fatalf("UntilDeath = %+v, %v; the last row says %+v", got, exact, rows[len(rows)-1].Total)
		}
	})
}

func seeded() func() float64 { return rand.New(rand.NewPCG(1, 1000)).Float64 }

func TestPolicySimulation_JitterBreaksItUp(t *testing.T) {
	p := preset(t, "daycry")
	p.MaxAttempts = 5
	h := p.Simulate(seeded())
	if h.Jobs != 1000 || h.Retries != 4 || h.Cut || h.Bucket != time.Second {
		t.Fatalf("%d jobs, %d retries, cut %v, buckets of %v", h.Jobs, h.Retries, h.Cut, h.Bucket)
	}
	if want := []int{1000, 1000, 1000, 1000}; h.Together.Peak != 1000 || !slices.Equal(h.Together.Waves, want) {
		t.Errorf("without jitter: peak %d, waves %v", h.Together.Peak, h.Together.Waves)
	}
	for second, n := range h.Together.Buckets {
		if want := map[int]int{5: 1000, 15: 1000, 35: 1000, 75: 1000}[second]; n != want {
			t.Errorf("without jitter, second %d has %d retries, want %d", second, n, want)
		}
	}
	// 5 s ± 15 % is 1.5 s wide: no second holds more than two thirds, by far.
	if h.Spread.Peak < 450 || h.Spread.Peak > 720 || !slices.IsSortedFunc(h.Spread.Waves, func(a, b int) int { return b - a }) {
		t.Errorf("with jitter: peak %d, waves %v", h.Spread.Peak, h.Spread.Waves)
	}
	if h.Spread.Peak != slices.Max(h.Spread.Buckets) {
		t.Errorf("the peak is %d, the highest bucket %d", h.Spread.Peak, slices.Max(h.Spread.Buckets))
	}
}

func TestPolicySimulation_CountsEveryRetryOnce(t *testing.T) {
	h := preset(t, "ojs").Simulate(seeded())
	sum := 0
	for _, n := range h.Spread.Buckets {
		sum += n
	}
	if h.Bucket != time.Second || sum != h.Jobs*h.Retries {
		t.Errorf("%d retries in seconds of %v, want %d", sum, h.Bucket, h.Jobs*h.Retries)
	}
}

func TestPolicySimulation_ShowsWhatJitterWouldDo(t *testing.T) {
	p := preset(t, "sidekiq")
	h := p.Simulate(seeded())
	if p.Jitter.On() || h.Jitter != (retry.Jitter{Low: 0.5, High: 1.5}) {
		t.Errorf("the retries of a policy without jitter are spread by %v", h.Jitter)
	}
	if h.Spread.Peak >= h.Together.Peak {
		t.Errorf("jitter makes it %d per second, none %d", h.Spread.Peak, h.Together.Peak)
	}
}

func TestPolicySimulation_OfJobsThatAreRetriedAtOnce(t *testing.T) {
	if h := preset(t, "initphp").Simulate(seeded()); h.Together.Peak != 2000 || len(h.Together.Buckets) != 1 {
		t.Errorf("two retries at once are %d in the peak, in %d buckets", h.Together.Peak, len(h.Together.Buckets))
	}
	if h := preset(t, "yii2").Simulate(seeded()); h.Retries != 0 || h.Together.Peak != 0 || h.Spread.Peak != 0 {
		t.Errorf("jobs that are never retried come back: %+v", h)
	}
}

func TestPolicySimulation_IsBoundedAndDeterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := anyPolicy(t)
		p.MaxAttempts = rapid.SampledFrom([]int{0, 2, 31, 32, math.MaxInt}).Draw(t, "attempts")
		h, again := p.Simulate(seeded()), p.Simulate(seeded())
		if h.Retries > 30 || h.Cut != (p.MaxAttempts > 31) {
			t.Fatalf("%d retries followed, cut %v", h.Retries, h.Cut)
		}
		for _, lane := range []retry.Lane{h.Together, h.Spread} {
			if len(lane.Buckets) > 120 || len(lane.Waves) != h.Retries || lane.Peak > h.Jobs*h.Retries {
				t.Fatalf("a lane of %d buckets, %d waves, peak %d", len(lane.Buckets), len(lane.Waves), lane.Peak)
			}
		}
		if !slices.Equal(h.Spread.Buckets, again.Spread.Buckets) {
			t.Fatal("the same numbers give another simulation")
		}
	})
}

func BenchmarkPolicySimulation(b *testing.B) {
	p, _ := retry.Preset("sidekiq")
	for b.Loop() {
		p.Simulate(seeded())
	}
}

func TestPreset_BelongsToItsCaller(t *testing.T) {
	p, _ := retry.Preset("initphp")
	p.Schedule[0] = time.Hour
	if again, _ := retry.Preset("initphp"); again.Schedule[0] != 0 {
		t.Errorf("a caller changed the preset for all: %v", again.Schedule)
	}
}
