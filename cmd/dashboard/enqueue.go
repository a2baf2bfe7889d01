package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"redrive/internal/client"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// enqueue is the command that sends a job.
type enqueue struct {
	Type     string `arg:"" help:"The job's type, as email.send."`
	Payload  string `arg:"" optional:"" help:"The payload, any JSON; - reads it from the standard input."`
	Queue    string `help:"The queue (default)." placeholder:"NAME"`
	Delay    string `help:"Run it later, as 90s or PT1M30S." placeholder:"DURATION"`
	Policy   string `help:"A retry policy, or a part of one, as JSON." placeholder:"JSON"`
	Priority int    `help:"Higher runs first." placeholder:"N"`
	Key      string `help:"Idempotency key: a second job with the same one is not enqueued." placeholder:"TEXT"`
	Server   string `help:"Where the dashboard is (${default})." default:"http://127.0.0.1:8080" env:"REDRIVE_SERVER" placeholder:"URL"`
}

// Run sends the job and prints its id and state.
func (e *enqueue) Run(c console) error {
	if err := e.check(); err != nil {
		return err
	}
	body, err := e.body(c.stdin)
	if err != nil {
		return err
	}
	dashboard, err := connect(e.Server)
	if err != nil {
		return err
	}
	made, err := dashboard.Enqueue(context.Background(), body, e.Key)
	var answer *client.Error
	switch {
	case errors.As(err, &answer) && answer.Refused():
		return usage("the job was refused: %s", answer.Problem())
	case answer != nil:
		return fmt.Errorf("the job was not enqueued: %s", answer.Problem())
	case err != nil:
		return err
	}
	if made.Repeat {
		made.State += " (enqueued before, under this key)"
	}
	fmt.Fprintln(c.stdout, made.ID, made.State)
	return nil
}

// check refuses what cannot be sent as it was written.
func (e *enqueue) check() error {
	if err := job.CheckType(e.Type); err != nil {
		return usageError{err}
	}
	if strings.ContainsFunc(e.Key, unicode.IsControl) {
		return usage("--key %q must be without line breaks and other control characters", e.Key)
	}
	return nil
}

// body is the request. The payload goes in as it was written.
func (e *enqueue) body(stdin io.Reader) ([]byte, error) {
	payload := []byte(e.Payload)
	if e.Payload == "-" {
		var err error
		if payload, err = io.ReadAll(io.LimitReader(stdin, job.MaxPayload+1)); err != nil {
			return nil, fmt.Errorf("read the payload: %w", err)
		}
		if len(bytes.TrimSpace(payload)) == 0 {
			return nil, usage("the standard input is empty; send null, or leave - out")
		}
	}
	if len(payload) > job.MaxPayload {
		return nil, usage("the payload is larger than %d bytes, the most that is kept", job.MaxPayload)
	}
	fields := map[string]any{"type": e.Type}
	if e.Queue != "" {
		fields["queue"] = e.Queue
	}
	if e.Priority != 0 {
		fields["priority"] = e.Priority
	}
	if e.Delay != "" {
		d, err := wire.ParseGoDuration(e.Delay)
		if err != nil {
			return nil, usage("--delay: %w", err)
		}
		fields["delay"] = wire.FormatDuration(d)
	}
	if e.Policy != "" {
		if !json.Valid([]byte(e.Policy)) {
			return nil, usage(`--policy is not JSON, as {"max_attempts": 5}`)
		}
		fields["policy"] = json.RawMessage(e.Policy)
	}
	data, err := json.Marshal(fields)
	if err != nil || len(bytes.TrimSpace(payload)) == 0 {
		return data, err
	}
	if !json.Valid(payload) {
		return nil, usage(`the payload is not JSON; a text needs quotes, as '"text"'`)
	}
	return append(append(append(data[:len(data)-1], `,"payload":`...), payload...), '}'), nil
}
