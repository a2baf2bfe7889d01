package retry

import "time"

// preset is a policy that one of the documented systems would use.
type preset struct {
	name   string
	policy Policy
}

// presets are whole policies: whoever names one takes every field from it and
// overrides what it wants otherwise. Each call makes them anew, so that no
// caller's change of a list reaches another.
func presets() []preset {
	return []preset{
		{"ojs", with(func(p *Policy) { p.OnExhaustion = Discard })},
		// A job of daycry/jobs that says no maxRetries is never retried
		// (src/Queues/RequeueHelper.php), and retryBackoffStrategy is "none"
		// (src/Config/Jobs.php). Whoever names the preset wants its retries: three,
		// as in the examples of its documentation (docs/MIGRATION-v1-to-v3.md), with
		// the figures that src/Config/Jobs.php gives for the exponential strategy.
		{"daycry", with(func(p *Policy) {
			p.MaxAttempts, p.InitialInterval, p.Jitter = 4, 5*time.Second, Jitter{0.85, 1.15}
		})},
		{"yii2", with(func(p *Policy) {
			p.MaxAttempts, p.Strategy, p.Jitter, p.OnExhaustion = 1, Immediate, Jitter{}, Discard
		})},
		{"initphp", with(func(p *Policy) {
			p.Strategy, p.Schedule, p.Jitter = Schedule, []time.Duration{0}, Jitter{}
		})},
		// Its retry: 25 counts retries. It adds 15 s and a random part to each
		// delay, (n−1)^4 + 15 + rand(10)·n seconds, which this leaves out.
		{"sidekiq", with(func(p *Policy) {
			p.MaxAttempts, p.Strategy, p.Coefficient, p.MaxInterval, p.Jitter = 26, Polynomial, 4, 7*24*time.Hour, Jitter{}
		})},
	}
}

func with(change func(*Policy)) Policy {
	p := Default()
	change(&p)
	return p
}

// Presets lists the names of the presets.
func Presets() []string {
	var names []string
	for _, p := range presets() {
		names = append(names, p.name)
	}
	return names
}

// Preset returns the policy of that name; the caller owns its lists.
func Preset(name string) (Policy, bool) {
	for _, p := range presets() {
		if p.name == name {
			return p.policy, true
		}
	}
	return Policy{}, false
}
