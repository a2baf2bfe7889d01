package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/client"
	"redrive/internal/job"
	"redrive/internal/usage"
)

// enqueueCommand is dashboard enqueue: it sends jobs to a running dashboard.
type enqueueCommand struct {
	Type    string  `arg:"" optional:"" help:"The job's type, for example email.send."`
	Payload *string `arg:"" optional:"" help:"The payload, any JSON. If left out, it is read from standard input, unless that is a terminal."`
	Key     string  `help:"Idempotency key: the same job is enqueued once; another job with the same key is refused." placeholder:"TEXT"`
	JSON    bool    `name:"json" help:"Print the jobs as JSON, one per line."`
	NDJSON  bool    `name:"ndjson" help:"Read jobs from standard input, one per line, for example {\"type\": \"email.send\"}."`
	Batch   *int    `name:"batch-size" help:"With --ndjson: send at most this many jobs in a request (10000)." placeholder:"N"`
	jobFlags
	reach.Dashboard
}

// Run sends the jobs, and prints the id and the state of each.
func (e *enqueueCommand) Run(c console.Console) error {
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

	dashboard, err := e.Connect()
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
func (e *enqueueCommand) perhaps(jobs, them string) string {
	remedy := fmt.Sprintf(`run "dashboard list" to check before you send %s again`, them)
	if e.Key != "" {
		remedy = "run the same command again, the key prevents doubles"
	}

	return jobs + " may have been enqueued: " + remedy
}

// print prints what became of the jobs.
func (e *enqueueCommand) print(c console.Console, made client.Enqueued) error {
	for _, raw := range made.Jobs {
		if e.JSON {
			if err := c.PrintJSON(raw); err != nil {
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
		fmt.Fprintln(c.Stderr, "warning: "+console.Printable(made.Warning))
	}

	return nil
}

// body is the JSON text of the request. The payload is put into it byte for byte,
// so that numbers and spaces stay as they were written.
func (e *enqueueCommand) body(stdin io.Reader) ([]byte, error) {
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
func (e *enqueueCommand) payload(stdin io.Reader) ([]byte, error) {
	var payload []byte
	asked := e.Payload != nil && *e.Payload == "-"

	// One byte more than allowed is read, so that a payload that is too large is noticed.
	if asked || e.Payload == nil && !console.IsTerminal(stdin) {
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

// sendLines sends the jobs of the standard input, in batches. A batch is read and
// checked as a whole before it is sent.
func (e *enqueueCommand) sendLines(c console.Console) error {
	if e.Type != "" || e.jobFlags != (jobFlags{}) {
		return usage.Errorf("with --ndjson each line describes a whole job; leave out the type and all job flags")
	}

	size := job.MaxBatch
	if e.Batch != nil {
		size = *e.Batch
	}

	if size < 1 || size > job.MaxBatch {
		return usage.Errorf("--batch-size %d is out of range; use 1 to %d", size, job.MaxBatch)
	}

	dashboard, err := e.Connect()
	if err != nil {
		return err
	}

	in := newLineReader(c.Stdin, size)
	last := 0 // the number of the last line that is enqueued
	for {
		b, end := in.next()

		// A line that is wrong stops the input before its batch is sent.
		if end != nil && !errors.Is(end, io.EOF) {
			return fmt.Errorf("%w; %s", end, upTo(last))
		}

		if len(b.lines) > 0 {
			made, err := b.send(c, dashboard, e.Key)
			if err != nil {
				return e.failed(b, last, b.locate(err))
			}

			last = b.numbers[len(b.numbers)-1] // also when the jobs cannot be printed
			if err := e.print(c, made); err != nil {
				return fmt.Errorf("%w; %s", err, upTo(last))
			}
		}

		if end != nil {
			return nil
		}
	}
}

// upTo says what of the input is enqueued.
func upTo(last int) string {
	if last == 0 {
		return "nothing was enqueued"
	}
	return fmt.Sprintf("lines 1 to %d were enqueued, and nothing after them: continue with line %d", last, last+1)
}

// failed is the error of a batch, with what of the input is enqueued. Unless the error
// rules it out, that may be the batch, too.
func (e *enqueueCommand) failed(b batch, last int, err error) error {
	if client.Unchanged(err) {
		return fmt.Errorf("%w; %s", notEnqueued(err, b.name()+" were"), upTo(last))
	}

	before := ""
	if last > 0 {
		before = fmt.Sprintf("lines 1 to %d were enqueued, and ", last)
	}

	return fmt.Errorf("%w; %s%s", err, before, e.perhaps(b.name(), "them"))
}
