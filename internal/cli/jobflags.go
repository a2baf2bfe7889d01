package cli

import (
	"encoding/json"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/job"
	"redrive/internal/usage"
	"redrive/internal/wire"
)

// jobFlags are the flags that describe one job.
type jobFlags struct {
	Queue    string `help:"The queue (default)." placeholder:"NAME"`
	Delay    string `help:"Run the job after this time, for example 90s or PT1M30S." placeholder:"DURATION"`
	RunAt    string `help:"Run the job at this time, for example 2026-01-31T15:04:05Z, or after a duration." placeholder:"TIME"`
	TTR      string `name:"ttr" help:"How long an attempt may run, for example 30s or PT30S." placeholder:"DURATION"`
	Policy   string `help:"Retry policy: a name, for example sidekiq, or fields as JSON." placeholder:"NAME|JSON"`
	Priority int    `help:"Jobs with a higher priority run first." placeholder:"N"`
}

// describe is the JSON text of a job without its payload.
func (f *jobFlags) describe(typ string) ([]byte, error) {
	request := work.NewJob{Type: typ, Queue: f.Queue, Priority: f.Priority}

	// --run-at also takes a duration, which is then a delay.
	delay := f.Delay
	if at, err := time.Parse(time.RFC3339, f.RunAt); err == nil {
		request.RunAt = &apitype.Time{Time: at}
	} else if f.RunAt != "" {
		delay = f.RunAt
	}

	policy, err := policyText(f.Policy)
	if err == nil {
		err = f.check(delay)
	}

	if err != nil {
		return nil, err
	}

	request.Policy = apitype.PolicyPatch(policy)
	request.Delay, request.TTR = lengthOf(delay), lengthOf(f.TTR)

	return json.Marshal(request)
}

// lengthOf is a duration that was checked; nil when there is none.
func lengthOf(text string) *apitype.Duration {
	d, err := wire.ParseDuration(text)
	if err != nil {
		return nil
	}

	return (*apitype.Duration)(&d)
}

// check refuses durations and times that cannot be read. delay is what says how long
// the job waits.
func (f *jobFlags) check(delay string) error {
	if f.Delay != "" && f.RunAt != "" {
		return usage.Errorf("--delay and --run-at cannot be used together")
	}

	if _, err := wire.ParseDuration(delay); err != nil && f.RunAt != "" && delay != "" {
		return usage.Errorf("--run-at %q is neither a time, for example 2026-01-31T15:04:05Z, nor a duration, for example 90s", f.RunAt)
	} else if err != nil && delay != "" {
		return usage.Errorf("--delay: %w", err)
	}

	if _, err := wire.ParseDuration(f.TTR); err != nil && f.TTR != "" {
		return usage.Errorf("--ttr: %w", err)
	}

	return nil
}

// policyText is a policy as the API reads it: an object, or the name of one.
func policyText(text string) (json.RawMessage, error) {
	switch {
	case text == "":
		return nil, nil
	case json.Valid([]byte(text)):
		return json.RawMessage(text), nil
	case job.CheckQueue(text) != nil: // names of policies are like those of queues
		return nil, usage.Errorf(`--policy is neither the name of a policy, for example sidekiq, nor JSON, for example {"max_attempts": 5}`)
	}

	return json.Marshal(text)
}
