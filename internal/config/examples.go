package config

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
)

// example is a job, how it failed, and what the operator expects of the rules
// then. Without a failure it is about the enqueueing.
type example struct {
	at     value
	name   string
	job    job.Job
	patch  retry.Patch
	fails  bool
	number int
	took   time.Duration
	ending job.Ending
	expect map[string]string // by the names of outcome
}

// readExample reads an example, and fills in what it leaves out.
func readExample(v value) (example, error) {
	// What an example leaves out: the first attempt of the first run failed with an error of
	// the type "error".
	e := example{at: v, number: 1, expect: map[string]string{},
		job:    job.Job{Queue: "default", Payload: []byte("null"), Token: job.Token{Run: 1}},
		ending: job.Ending{Outcome: job.Failed, Error: job.ErrorInfo{Type: "error"}},
	}

	err := v.fields(map[string]func(value) error{
		"name":    into(&e.name, value.text),
		"job":     e.readJob,
		"attempt": e.readAttempt,
		"error":   e.readError,
		"expect":  e.readExpect,
	})
	if err != nil {
		return e, err
	}

	if err := job.CheckType(e.job.Type); err != nil {
		return e, v.wrong("job.type: %s", problem(err))
	}

	if err := job.CheckQueue(e.job.Queue); err != nil {
		return e, v.wrong("job.queue: %s", problem(err))
	}

	if len(e.expect) == 0 {
		return e, v.wrong("has no expectation; write expect: {rule: NAME}, or none")
	}

	return e, nil
}

// readJob reads the job of an example, with the names that a request to the API
// has.
func (e *example) readJob(v value) error {
	// A payload is any JSON, meta has to be an object.
	meta := func(v value) (json.RawMessage, error) {
		if err := v.mapping(); err != nil {
			return nil, err
		}
		return v.json()
	}

	return v.fields(map[string]func(value) error{
		"id":       into(&e.job.ID, value.text),
		"type":     into(&e.job.Type, value.text),
		"queue":    into(&e.job.Queue, value.text),
		"priority": into(&e.job.Priority, value.integer),
		"run":      into(&e.job.Run, value.count),
		"payload":  into(&e.job.Payload, value.json),
		"meta":     into(&e.job.Meta, meta),
		"policy":   into(&e.patch, value.policy),
		"ttr":      into(&e.job.Timeout, positive),
		"trace_id": into(&e.job.TraceID, value.text),
	})
}

// readAttempt reads how the job ran. An example with an attempt, or with an
// error, is about a failure.
func (e *example) readAttempt(v value) error {
	e.fails = true

	return v.fields(map[string]func(value) error{
		"number":   into(&e.number, value.count),
		"outcome":  into(&e.ending.Outcome, failure),
		"duration": into(&e.took, positive),
		"worker":   into(&e.job.Worker, value.text),
	})
}

// failure reads an outcome about which rules are asked.
func failure(v value) (job.Outcome, error) {
	failed := func(o job.Outcome) bool {
		return slices.Contains([]job.Outcome{job.Failed, job.Panicked, job.TimedOut, job.Lost}, o)
	}
	return word(failed, "not a failure; use failed, panicked, timed_out or lost")(v)
}

// readError reads what the handler said when it failed.
func (e *example) readError(v value) error {
	e.fails = true

	return v.fields(map[string]func(value) error{
		"type":      into(&e.ending.Error.Type, value.text),
		"message":   into(&e.ending.Error.Message, value.text),
		"retryable": optional(&e.ending.Answer.Retryable, value.boolean),
		"code":      into(&e.ending.Answer.Code, word(retry.Code.Valid, "unknown; use RETRY, DISCARD, DEAD_LETTER or FAIL")),
	})
}

// readExpect reads what shall come of the example; what it does not name may be
// anything.
func (e *example) readExpect(v value) error {
	known := map[string]func(value) error{"meta": func(v value) error {
		all, err := v.strings()
		for name, text := range all {
			e.expect["meta."+name] = text
		}

		return err
	}}
	expecting(e, known, value.text, "rule", "action", "reason", "refused", "queue")
	expecting(e, known, value.integer, "priority", "max_attempts")
	expecting(e, known, span, "delay", "ttr")

	return v.fields(known)
}

// expecting adds readers of fields, which are expected as they are shown.
func expecting[T any](e *example, known map[string]func(value) error, read func(value) (T, error), names ...string) {
	for _, name := range names {
		known[name] = func(v value) error {
			said, err := read(v)
			e.expect[name] = fmt.Sprint(said)
			return err
		}
	}
}

// TryExamples plays the examples of the file. It says how many came out as they
// expect, and returns an *Error for each thing that did not.
func (c *Config) TryExamples() (passed int, wrong []error) {
	for _, e := range c.written.examples {
		came, note := c.try(e)
		before := len(wrong)

		// What an example does not name may come out in any way.
		for _, name := range slices.Sorted(maps.Keys(e.expect)) {
			if came[name] != e.expect[name] {
				wrong = append(wrong, e.disagrees(name, came[name], note))
			}
		}

		if len(wrong) == before {
			passed++
		}
	}

	return passed, wrong
}

// disagrees is the error of an example that came out differently, at the line
// of what was expected.
func (e example) disagrees(name, came, note string) error {
	text := fmt.Sprintf("expected %s, got %s", e.expect[name], cmp.Or(came, "nothing"))
	if e.name != "" {
		text = e.name + ": " + text
	}

	if note != "" {
		text += " (" + note + ")"
	}

	return e.at.file.wrong(e.at.path+".expect."+name, text)
}

// try plays one example and tells what came of it, by the names that expect has.
func (c *Config) try(e example) (came map[string]string, note string) {
	j := e.job

	rule, err := c.admit(&j, e.patch)
	if refused := new(rules.Refused); errors.As(err, &refused) {
		return map[string]string{"rule": refused.Rule, "refused": refused.Text}, "rule " + refused.Rule + " refused it: " + refused.Text
	} else if err != nil {
		return nil, err.Error()
	}

	came = map[string]string{
		"rule": rule, "queue": j.Queue, "ttr": j.Timeout.String(),
		"priority": strconv.Itoa(j.Priority), "max_attempts": strconv.Itoa(j.Policy.Limit()),
	}
	for name, text := range texts(j.Meta) {
		came["meta."+name] = text
	}

	note = j.Note

	// The rules are asked again about a failure, so the rule that admitted the job no longer
	// counts.
	if e.fails {
		came["rule"] = rules.None
		note = c.fail(e, j, came)
	}

	return came, note
}

// fail lets the job of an example fail.
func (c *Config) fail(e example, j job.Job, came map[string]string) (note string) {
	// The job has made all attempts but this one. Only the length of the attempt counts, so
	// that it can begin at any time.
	j.Attempts, j.StartedAt = e.number-1, time.Unix(0, 0)
	end := e.ending

	end.FinishedAt = j.StartedAt.Add(e.took)
	end.Ruling, end.Note = c.rules.AfterFailure(j, end)
	if end.Ruling != nil {
		came["rule"] = end.Ruling.Rule
	}

	s := j.Settle(end, func() float64 { return 0 })
	came["action"], came["reason"] = string(s.Attempt.Action), string(s.Reason)
	if s.Attempt.Delay != nil {
		came["delay"] = s.Attempt.Delay.Capped.String() // chance comes later
	}

	return s.Attempt.Note
}

// texts are the members of a job's meta that are strings.
func texts(meta json.RawMessage) map[string]string {
	var all map[string]any
	if len(meta) == 0 || json.Unmarshal(meta, &all) != nil {
		return nil
	}

	texts := map[string]string{}
	for name, v := range all {
		if s, ok := v.(string); ok {
			texts[name] = s
		}
	}

	return texts
}
