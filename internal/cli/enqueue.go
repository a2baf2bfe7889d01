package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/client"
	"redrive/internal/job"
	"redrive/internal/usage"
	"redrive/internal/wire"
)

// enqueue is dashboard enqueue: it sends jobs to a running dashboard.
type enqueue struct {
	Type    string  `arg:"" optional:"" help:"The job's type, for example email.send."`
	Payload *string `arg:"" optional:"" help:"The payload, any JSON. If left out, it is read from standard input, unless that is a terminal."`
	Key     string  `help:"Idempotency key: the same job is enqueued once; another job with the same key is refused." placeholder:"TEXT"`
	JSON    bool    `name:"json" help:"Print the jobs as JSON, one per line."`
	NDJSON  bool    `name:"ndjson" help:"Read jobs from standard input, one per line, for example {\"type\": \"email.send\"}."`
	Batch   *int    `name:"batch-size" help:"With --ndjson: send at most this many jobs in a request (10000)." placeholder:"N"`
	jobFlags
	dashboardFlags
}

// jobFlags are the flags that describe one job.
type jobFlags struct {
	Queue    string `help:"The queue (default)." placeholder:"NAME"`
	Delay    string `help:"Run the job after this time, for example 90s or PT1M30S." placeholder:"DURATION"`
	RunAt    string `help:"Run the job at this time, for example 2026-01-31T15:04:05Z, or after a duration." placeholder:"TIME"`
	TTR      string `name:"ttr" help:"How long an attempt may run, for example 30s or PT30S." placeholder:"DURATION"`
	Policy   string `help:"Retry policy: a name, for example sidekiq, or fields as JSON." placeholder:"NAME|JSON"`
	Priority int    `help:"Jobs with a higher priority run first." placeholder:"N"`
}

// Run sends the jobs, and prints the id and the state of each.
func (e *enqueue) Run(c Console) error {
	if strings.ContainsFunc(e.Key, unicode.IsControl) {
		return usage.Errorf("--key %q must not contain line breaks or other control characters", e.Key)
	}

	if e.NDJSON {
		return e.sendLines(c)
	}

	if e.Batch != nil {
		return usage.Errorf("--batch-size needs --ndjson")
	}

	body, err := e.body(c.Stdin)
	if err != nil {
		return err
	}

	dashboard, err := e.connect()
	if err != nil {
		return err
	}

	// An answer can be lost on its way: say whether the job may have been enqueued nevertheless.
	made, err := dashboard.Enqueue(context.Background(), body, e.Key)
	if err != nil {
		if client.Unchanged(err) {
			return notEnqueued(err, "the job was")
		}
		return fmt.Errorf("%w; %s", err, e.perhaps("the job", "it"))
	}

	if err := e.print(c, made); err != nil {
		return fmt.Errorf("the job was enqueued, but cannot be printed: %w", err)
	}

	return nil
}

// notEnqueued is the error of jobs that a dashboard certainly did not take. What names them:
// "the job was".
func notEnqueued(err error, what string) error {
	var answer *client.Error
	if !errors.As(err, &answer) {
		return err
	}

	remedy := answer.Remedy()
	switch {
	case remedy != "":
		return usage.Errorf("%s not enqueued: %s", what, remedy)
	case answer.Refused():
		return usage.Errorf("%s refused: %s", what, answer.Problem())
	}

	return fmt.Errorf("%s not enqueued: %s", what, answer.Problem())
}

// perhaps says that jobs may have been enqueued, and what to do: sending them again
// could make doubles.
func (e *enqueue) perhaps(jobs, them string) string {
	remedy := fmt.Sprintf(`run "dashboard list" to check before you send %s again`, them)
	if e.Key != "" {
		remedy = "run the same command again, the key prevents doubles"
	}

	return jobs + " may have been enqueued: " + remedy
}

// print prints what became of the jobs.
func (e *enqueue) print(c Console, made client.Enqueued) error {
	for _, raw := range made.Jobs {
		if e.JSON {
			if err := printLine(c, raw); err != nil {
				return err
			}
			continue
		}

		var j work.JobReceipt
		if err := json.Unmarshal(raw, &j); err != nil {
			return fmt.Errorf("read the dashboard's answer: %w", err)
		}

		state := string(j.State)
		if made.Repeat {
			state += " (already enqueued with this key)"
		}

		if _, err := fmt.Fprintln(c.Stdout, j.ID, state); err != nil {
			return err
		}
	}

	// The warning goes to stderr, so that a program can read stdout.
	if made.Warning != "" {
		fmt.Fprintln(c.Stderr, "warning: "+printable(made.Warning))
	}

	return nil
}

// printLine prints a JSON document on one line.
func printLine(c Console, raw json.RawMessage) error {
	var line bytes.Buffer
	if err := json.Compact(&line, raw); err != nil {
		return fmt.Errorf("read the dashboard's answer: %w", err)
	}

	line.WriteByte('\n')
	_, err := c.Stdout.Write(line.Bytes())

	return err
}

// body is the JSON text of the request. The payload is put into it byte for byte,
// so that numbers and spaces stay as they were written.
func (e *enqueue) body(stdin io.Reader) ([]byte, error) {
	if e.Type == "" {
		return nil, usage.Errorf(`enqueue needs the job's <type>, for example: dashboard enqueue email.send '{"to": "ana"}'`)
	}

	if err := job.CheckType(e.Type); err != nil {
		return nil, usage.Of(err)
	}

	payload, err := e.payload(stdin)
	if err != nil {
		return nil, err
	}

	data, err := e.describe(e.Type)
	if err != nil || len(bytes.TrimSpace(payload)) == 0 {
		return data, err
	}

	if !json.Valid(payload) {
		return nil, usage.Errorf(`the payload is not JSON; a string needs quotes, for example '"text"'`)
	}

	// The description is an object: its "}" moves behind the payload.
	return append(append(append(data[:len(data)-1], `,"payload":`...), payload...), '}'), nil
}

// payload is the payload of the command line or of the standard input; empty when
// there is none. A dash asks for the standard input even if that is a terminal.
func (e *enqueue) payload(stdin io.Reader) ([]byte, error) {
	var payload []byte
	asked := e.Payload != nil && *e.Payload == "-"

	// One byte more than allowed is read, so that a payload that is too large is noticed.
	if asked || e.Payload == nil && !isTerminal(stdin) {
		var err error

		payload, err = io.ReadAll(io.LimitReader(stdin, job.MaxPayload+1))
		if err != nil {
			return nil, fmt.Errorf("read the payload: %w", err)
		}
	} else if e.Payload != nil {
		payload = []byte(*e.Payload)
	}

	switch empty := len(bytes.TrimSpace(payload)) == 0; {
	case empty && asked:
		return nil, usage.Errorf("standard input is empty; send null, or leave out -")
	case empty && e.Payload != nil: // mostly a variable of a script that is not set
		return nil, usage.Errorf("the payload is empty; to enqueue a job without a payload, write null")
	}

	if len(payload) > job.MaxPayload {
		return nil, usage.Errorf("the payload is larger than %d bytes, the maximum", job.MaxPayload)
	}

	return payload, nil
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
