package templates_test

import (
	"math"
	"math/rand/v2"
	"time"

	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
	"redrive/web/templates/policypage"
)

func simulation(p retry.Policy) retry.Simulation {
	return p.Simulate(rand.New(rand.NewPCG(1, 1000)).Float64)
}

func preset(name string) retry.Policy {
	p, ok := retry.Preset(name)
	if !ok {
		panic("no preset " + name)
	}
	return p
}

func presetEntries() []policypage.Entry {
	var all []policypage.Entry
	for _, name := range retry.Presets() {
		all = append(all, policypage.Entry{Name: name, Policy: preset(name)})
	}
	return all
}

// paymentsPolicy is the one of the visual language: 5 × 5 s, doubled.
func paymentsPolicy() policypage.Entry {
	p := preset("daycry")
	p.MaxAttempts, p.NonRetryable = 5, []string{"auth.*", "json.UnmarshalTypeError"}
	return policypage.Entry{Name: "queue:payments", Policy: p, TTR: 30 * time.Second}
}

func policiesInUse() []policypage.Entry {
	email, patient := retry.Default(), preset("daycry")
	email.Strategy, email.Schedule, email.MaxAttempts, email.MaxInterval = retry.Schedule, []time.Duration{30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute}, 6, time.Hour
	email.Jitter, patient.MaxAttempts = retry.Jitter{}, 12
	return []policypage.Entry{
		{Name: "default", Policy: retry.Default(), TTR: 5 * time.Minute}, paymentsPolicy(),
		{Name: "type:email.*", Policy: email, TTR: 30 * time.Second}, {Name: "patient", Policy: patient},
	}
}

// formOf is what the form shows of a policy.
func formOf(p retry.Policy) map[string]string {
	return map[string]string{
		"strategy": string(p.Strategy), "max_attempts": "5", "initial_interval": format.Compact(p.InitialInterval),
		"coefficient": "2", "schedule": format.CompactList(p.Schedule), "max_interval": format.Compact(p.MaxInterval),
		"jitter_low": "0.85", "jitter_high": "1.15",
	}
}

// policiesOf is the page about one policy, as it is.
func policiesOf(e policypage.Entry) policypage.View {
	h := simulation(e.Policy) // dear
	return policypage.View{
		Frame: frame("policies", "Policies: "+e.Name), InUse: policiesInUse(), Presets: presetEntries(),
		From: e, Form: formOf(e.Policy), Policy: e.Policy, Simulation: h, FromSimulation: h,
	}
}

// thinking is the page about a policy that the user changes.
func thinking(e policypage.Entry, change func(*retry.Policy)) policypage.View {
	v := policiesOf(e)
	change(&v.Policy)
	v.Simulation = simulation(v.Policy)
	return v
}

func policiesStates(all map[string]page) {
	all["policies"] = policiesOf(paymentsPolicy())
	all["policies-sidekiq"] = policiesOf(policypage.Entry{Name: "sidekiq", Policy: preset("sidekiq")})
	all["policies-never"] = policiesOf(policypage.Entry{Name: "yii2", Policy: preset("yii2")})
	all["policies-at-once"] = policiesOf(policypage.Entry{Name: "initphp", Policy: preset("initphp")})
	all["policies-schedule"] = policiesOf(policiesInUse()[2])
	all["policies-what-if"] = thinking(paymentsPolicy(), func(p *retry.Policy) { p.Jitter = retry.Jitter{Low: 0.5, High: 1.5} })
	all["policies-endless"] = thinking(paymentsPolicy(), func(p *retry.Policy) { p.MaxAttempts = math.MaxInt })
	wrong := policiesOf(paymentsPolicy())
	wrong.Form["coefficient"], wrong.Form["max_interval"] = "x", "1s"
	wrong.Errors = map[string]string{"coefficient": `"x" is not a number`, "max_interval": "1s is shorter than initial_interval, 5s"}
	all["policies-wrong"] = wrong
}

// poisonedPolicies is the page with s wherever data can stand.
func poisonedPolicies(f templates.Frame, s string, wrong bool) policypage.View {
	p := retry.Default()
	p.Strategy, p.OnExhaustion, p.NonRetryable = retry.Strategy(s), retry.Action(s), []string{s, s}
	e := policypage.Entry{Name: s, Policy: p}
	v := policypage.View{Frame: f, InUse: []policypage.Entry{e}, Presets: []policypage.Entry{e}, From: e, Policy: p, Simulation: simulation(p), Form: map[string]string{}}
	for _, name := range []string{"strategy", "max_attempts", "initial_interval", "coefficient", "schedule", "max_interval", "jitter_low", "jitter_high"} {
		v.Form[name] = s
	}
	v.Policy.MaxAttempts++
	if wrong {
		v.Errors = map[string]string{"preset": s, "strategy": s, "coefficient": s, "schedule": s}
	}
	return v
}
