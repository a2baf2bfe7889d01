package retry

import (
	"slices"
	"time"
)

// preset is a policy that one of the documented systems would use.
type preset struct {
	name   string
	policy Policy
}

// presets are whole policies: whoever names one takes every field from it and
// overrides what it wants otherwise.
var presets = []preset{
	{"ojs", with(func(p *Policy) { p.OnExhaustion = Discard })},
	{"daycry", with(func(p *Policy) {
		p.MaxAttempts, p.InitialInterval, p.Jitter = 4, 5*time.Second, Jitter{0.85, 1.15}
	})},
	{"yii2", with(func(p *Policy) {
		p.MaxAttempts, p.Strategy, p.Jitter, p.OnExhaustion = 1, Immediate, Jitter{}, Discard
	})},
	{"initphp", with(func(p *Policy) {
		p.Strategy, p.Schedule, p.Jitter = Schedule, []time.Duration{0}, Jitter{}
	})},
	{"sidekiq", with(func(p *Policy) {
		p.MaxAttempts, p.Strategy, p.Coefficient, p.MaxInterval, p.Jitter = 26, Polynomial, 4, 7*24*time.Hour, Jitter{}
	})},
}

func with(change func(*Policy)) Policy {
	p := Default()
	change(&p)
	return p
}

// Presets lists the names of the presets.
func Presets() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// Preset returns the policy of that name; the caller owns its lists.
func Preset(name string) (Policy, bool) {
	for _, p := range presets {
		if p.name == name {
			p.policy.Schedule = slices.Clone(p.policy.Schedule)
			return p.policy, true
		}
	}
	return Policy{}, false
}
