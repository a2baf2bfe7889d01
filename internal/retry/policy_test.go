package retry_test

import (
	"errors"
	"math"
	"reflect"
	"testing"
	"time"

	"redrive/internal/invalid"
	"redrive/internal/retry"
)

// The rows of the Open Job Spec's table, and the exact form.
func TestPolicyMatchNonRetryable(t *testing.T) {
	p := retry.Policy{NonRetryable: []string{"validation.payload_invalid", "auth.*"}}
	tests := []struct {
		errorType, want string
	}{
		{"auth.token_expired", "auth.*"},
		{"auth.forbidden", "auth.*"},
		{"auth", ""},
		{"external.auth.failure", ""},
		{"authentic", ""},
		{"auth.", ""},
		{"auth.*", "auth.*"},
		{"validation.payload_invalid", "validation.payload_invalid"},
		{"validation.payload_invalid.x", ""},
		{"", ""},
	}
	for _, test := range tests {
		if got, ok := p.MatchNonRetryable(test.errorType); got != test.want || ok != (test.want != "") {
			t.Errorf("MatchNonRetryable(%q) = %q, %v; want %q", test.errorType, got, ok, test.want)
		}
	}
}

func TestPolicyValidate_NamesTheField(t *testing.T) {
	tests := []struct {
		field  string
		change func(*retry.Policy)
	}{
		{"max_attempts", func(p *retry.Policy) { p.MaxAttempts = -1 }},
		{"strategy", func(p *retry.Policy) { p.Strategy = "fibonacci" }},
		{"on_exhaustion", func(p *retry.Policy) { p.OnExhaustion = retry.Retry }},
		{"coefficient", func(p *retry.Policy) { p.Coefficient = 0.99 }},
		{"coefficient", func(p *retry.Policy) { p.Coefficient = math.NaN() }},
		{"coefficient", func(p *retry.Policy) { p.Coefficient = math.Inf(1) }},
		{"initial_interval", func(p *retry.Policy) { p.InitialInterval = 0 }},
		{"initial_interval", func(p *retry.Policy) { p.InitialInterval = -time.Second }},
		{"max_attempts", func(p *retry.Policy) { p.MaxAttempts = retry.MaxAttempts + 1 }},
		{"max_attempts", func(p *retry.Policy) { p.MaxAttempts = math.MaxInt }},
		{"max_interval", func(p *retry.Policy) { p.MaxInterval = 0 }},
		{"max_interval", func(p *retry.Policy) { p.MaxInterval = p.InitialInterval - 1 }},
		{"schedule", func(p *retry.Policy) { p.Schedule = []time.Duration{time.Second, -1} }},
		{"jitter", func(p *retry.Policy) { p.Jitter = retry.Jitter{Low: 1.5, High: 0.5} }},
		{"jitter", func(p *retry.Policy) { p.Jitter = retry.Jitter{Low: -1, High: 1} }},
		{"non_retryable_errors", func(p *retry.Policy) { p.NonRetryable = []string{""} }},
	}
	for _, test := range tests {
		p := retry.Default()
		test.change(&p)
		var bad *invalid.Error
		if err := p.Validate(); !errors.As(err, &bad) || bad.Field != test.field {
			t.Errorf("Validate(%+v) = %v, want an error of field %s", p, err, test.field)
		}
	}
	if err := retry.Default().Validate(); err != nil {
		t.Errorf("the default policy is refused: %v", err)
	}
}

// The cap holds for the first delay whatever the strategy does with it.
func TestPolicyValidate_CapBelowTheFirstDelayUnderEveryStrategy(t *testing.T) {
	for _, strategy := range retry.Strategies() {
		p := retry.Default()
		p.Strategy, p.MaxInterval = strategy, p.InitialInterval-1
		var bad *invalid.Error
		if err := p.Validate(); !errors.As(err, &bad) || bad.Field != "max_interval" {
			t.Errorf("%s: %v, want an error of field max_interval", strategy, err)
		}
	}
	for _, name := range retry.Presets() {
		if p, _ := retry.Preset(name); p.Validate() != nil {
			t.Errorf("the preset %s is refused: %v", name, p.Validate())
		}
	}
}

func TestPolicyWith_OverridesFieldByField(t *testing.T) {
	ten := 10
	got := retry.Default().With(retry.Patch{MaxAttempts: &ten})
	want := retry.Default()
	want.MaxAttempts = 10
	if got.MaxAttempts != 10 || got.Strategy != want.Strategy || got.MaxInterval != want.MaxInterval || got.Jitter != want.Jitter {
		t.Errorf("With(max_attempts 10) = %+v, want %+v", got, want)
	}
}

func TestPolicyWith_LiftsTheCapThatNoneNamed(t *testing.T) {
	hour, minute := time.Hour, time.Minute
	schedule := []time.Duration{time.Second, 2 * time.Hour}
	tests := []struct {
		name  string
		patch retry.Patch
		want  time.Duration
	}{
		{"a first delay above it", retry.Patch{InitialInterval: &hour}, hour},
		{"a first delay below it", retry.Patch{InitialInterval: &minute}, 5 * time.Minute},
		{"a schedule above it", retry.Patch{Schedule: &schedule}, 2 * time.Hour},
		{"a named cap stays", retry.Patch{InitialInterval: &hour, MaxInterval: &minute}, minute},
	}
	for _, test := range tests {
		if got := retry.Default().With(test.patch).MaxInterval; got != test.want {
			t.Errorf("%s: MaxInterval = %v, want %v", test.name, got, test.want)
		}
	}
}

func TestPolicyEqual_LooksAtEveryField(t *testing.T) {
	whole := func() retry.Policy {
		p := retry.Default()
		p.Schedule, p.NonRetryable = []time.Duration{1, 2}, []string{"auth.*"}
		return p
	}
	if !whole().Equal(whole()) {
		t.Error("a policy does not equal its copy")
	}
	for i := range reflect.TypeFor[retry.Policy]().NumField() {
		p := whole()
		reflect.ValueOf(&p).Elem().Field(i).SetZero()
		if p.Equal(whole()) {
			t.Errorf("without %s it is still equal", reflect.TypeFor[retry.Policy]().Field(i).Name)
		}
	}
}
