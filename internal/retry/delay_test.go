package retry_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/retry"
)

// noRandom fails the test when jitter is asked for although it is off.
func noRandom(t *testing.T) func() float64 {
	return func() float64 {
		t.Error("random was called although jitter is off")
		return 0
	}
}

func with(change func(*retry.Policy)) retry.Policy {
	p := retry.Default()
	p.Jitter = retry.Jitter{}
	change(&p)
	return p
}

// The tables of the four documents: seconds before retry 1, 2, 3, …
func TestPolicyDelay_DocumentedTables(t *testing.T) {
	sec := time.Second
	tests := []struct {
		name   string
		policy retry.Policy
		want   []float64
	}{
		{"Open Job Spec, exponential to attempt 11",
			with(func(*retry.Policy) {}),
			[]float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300}},
		{"Open Job Spec, constant",
			with(func(p *retry.Policy) { p.Strategy, p.InitialInterval = retry.Constant, 10*sec }),
			[]float64{10, 10, 10}},
		{"Open Job Spec, linear",
			with(func(p *retry.Policy) { p.Strategy = retry.Linear }),
			[]float64{1, 2, 3, 4}},
		{"Open Job Spec, polynomial as Sidekiq",
			with(func(p *retry.Policy) {
				p.Strategy, p.Coefficient, p.MaxInterval = retry.Polynomial, 4, 7*24*time.Hour
			}),
			[]float64{1, 16, 81, 256, 625}},
		{"daycry, base 5 and multiplier 2, before attempts 2 to 6 with max 45",
			with(func(p *retry.Policy) { p.InitialInterval, p.MaxInterval = 5*sec, 45*sec }),
			[]float64{5, 10, 20, 40, 45}},
		{"daycry, none",
			with(func(p *retry.Policy) { p.Strategy = retry.Immediate }),
			[]float64{0, 0, 0}},
		{"daycry, fixed above its maximum",
			with(func(p *retry.Policy) {
				p.Strategy, p.InitialInterval, p.MaxInterval = retry.Constant, 60*sec, 60*sec
			}),
			[]float64{60, 60}},
		{"InitPHP [0]",
			with(func(p *retry.Policy) { p.Strategy, p.Schedule = retry.Schedule, []time.Duration{0} }),
			[]float64{0, 0, 0, 0}},
		{"InitPHP [1, 5, 15]",
			with(func(p *retry.Policy) {
				p.Strategy, p.Schedule = retry.Schedule, []time.Duration{sec, 5 * sec, 15 * sec}
			}),
			[]float64{1, 5, 15, 15}},
		{"InitPHP [2]",
			with(func(p *retry.Policy) { p.Strategy, p.Schedule = retry.Schedule, []time.Duration{2 * sec} }),
			[]float64{2, 2, 2}},
		{"yii2, retried at once",
			with(func(p *retry.Policy) { p.Strategy = retry.Immediate }),
			[]float64{0, 0}},
		{"a schedule without entries",
			with(func(p *retry.Policy) { p.Strategy, p.Schedule = retry.Schedule, nil }),
			[]float64{0, 0}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for i, want := range test.want {
				if got := test.policy.Delay(i+1, noRandom(t)).Final.Seconds(); got != want {
					t.Errorf("Delay(%d) = %v s, want %v s", i+1, got, want)
				}
			}
		})
	}
}

func TestPolicyDelay_ExplainsEveryStep(t *testing.T) {
	p := with(func(p *retry.Policy) {
		p.InitialInterval, p.MaxInterval, p.Jitter = 5*time.Second, 45*time.Second, retry.Jitter{Low: 0.5, High: 1.5}
	})
	got := p.Delay(5, func() float64 { return 0.25 })
	want := retry.Delay{
		Source: retry.FromPolicy, Strategy: retry.Exponential, Retry: 5,
		Initial: 5 * time.Second, Coefficient: 2,
		Raw: 80 * time.Second, Cap: 45 * time.Second, Capped: 45 * time.Second,
		Jitter: p.Jitter, Factor: 0.75, Final: 33_750 * time.Millisecond,
	}
	if got != want {
		t.Errorf("Delay(5) =\n%+v, want\n%+v", got, want)
	}
}

// The two documented spreads: bounds, and a mean that says the factor is
// uniform.
func TestPolicyDelay_JitterBoundsAndMean(t *testing.T) {
	tests := []struct {
		name   string
		jitter retry.Jitter
	}{
		{"Open Job Spec, 0.5 to 1.5", retry.Jitter{Low: 0.5, High: 1.5}},
		{"daycry, plus or minus 15 %", retry.Jitter{Low: 0.85, High: 1.15}},
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0)).Float64
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			p := with(func(p *retry.Policy) {
				p.Strategy, p.InitialInterval, p.Jitter = retry.Constant, 10*time.Second, test.jitter
			})
			const n = 20_000
			var sum float64
			for range n {
				d := p.Delay(1, random).Final.Seconds()
				if d < 10*test.jitter.Low || d >= 10*test.jitter.High {
					t.Fatalf("delay %v s is outside of [%v, %v)", d, 10*test.jitter.Low, 10*test.jitter.High)
				}
				sum += d
			}
			// Five standard errors of a uniform mean: one false alarm in millions.
			spread := 10 * (test.jitter.High - test.jitter.Low)
			if mean, tolerance := sum/n, 5*spread/math.Sqrt(12*n); math.Abs(mean-10) > tolerance {
				t.Errorf("mean = %v s, want 10 ± %v", mean, tolerance)
			}
		})
	}
}

func TestPolicyDelay_CapsAgainAfterJitter(t *testing.T) {
	p := retry.Default()
	if got := p.Delay(10, func() float64 { return 0.99 }).Final; got != p.MaxInterval {
		t.Errorf("Delay(10) with the highest jitter = %v, want the cap %v", got, p.MaxInterval)
	}
}

// anyPolicy draws policies that Validate accepts, extremes included.
func anyPolicy(t *rapid.T) retry.Policy {
	p := retry.Default()
	p.Strategy = rapid.SampledFrom(retry.Strategies()).Draw(t, "strategy")
	p.InitialInterval = time.Duration(rapid.Int64Range(1, math.MaxInt64).Draw(t, "initial"))
	p.MaxInterval = time.Duration(rapid.Int64Range(int64(p.InitialInterval), math.MaxInt64).Draw(t, "cap"))
	p.Coefficient = rapid.Float64Range(1, math.MaxFloat64).Draw(t, "coefficient")
	for range rapid.IntRange(0, 3).Draw(t, "entries") {
		p.Schedule = append(p.Schedule, time.Duration(rapid.Int64Range(0, math.MaxInt64).Draw(t, "entry")))
	}
	p.Jitter = rapid.SampledFrom([]retry.Jitter{{}, {Low: 0.5, High: 1.5}, {Low: 0, High: 100}}).Draw(t, "jitter")
	if err := p.Validate(); err != nil {
		t.Fatalf("the generator made an invalid policy: %v", err)
	}
	return p
}

func TestPolicyDelay_IsNeverNegativeNorAboveTheCap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := anyPolicy(t), rapid.IntRange(-1, math.MaxInt).Draw(t, "n")
		d := p.Delay(n, func() float64 { return rapid.Float64Range(0, 0.999999).Draw(t, "random") })
		if d.Final < 0 || d.Final > p.MaxInterval || d.Raw < 0 || d.Capped > p.MaxInterval {
			t.Fatalf("Delay(%d) of %+v = %+v", n, p, d)
		}
	})
}

func TestPolicyDelay_NeverShrinksWithoutJitter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, n := anyPolicy(t), rapid.IntRange(1, 1_000_000).Draw(t, "n")
		p.Jitter = retry.Jitter{}
		if p.Strategy == retry.Schedule {
			p.Strategy = retry.Linear // a schedule may say anything
		}
		if a, b := p.Delay(n, nil).Final, p.Delay(n+1, nil).Final; b < a {
			t.Fatalf("Delay(%d) = %v, but Delay(%d) = %v", n, a, n+1, b)
		}
	})
}
