package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"

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
	server, err := newAPI(e.Server)
	if err != nil {
		return err
	}
	r, err := http.NewRequest(http.MethodPost, server.base.JoinPath("jobs").String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	if e.Key != "" {
		r.Header.Set("Idempotency-Key", e.Key)
	}
	response, err := server.do(r)
	if err != nil {
		return fmt.Errorf("the job was not sent: %w; is a dashboard running there?", err)
	}
	defer response.Body.Close()
	return report(response, c.stdout)
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

// report prints what the server said.
func report(response *http.Response, stdout io.Writer) error {
	var answer struct {
		Job   struct{ ID, State string }
		Error struct{ Field, Message string }
	}
	err := json.NewDecoder(io.LimitReader(response.Body, 4<<20)).Decode(&answer)
	switch {
	case err != nil || answer.Job.ID == "" && answer.Error.Message == "":
		return fmt.Errorf("%s answered %s, which is no dashboard's answer", response.Request.URL.Host, response.Status)
	case answer.Error.Message != "":
		text := strings.TrimPrefix(answer.Error.Field+": "+answer.Error.Message, ": ")
		if response.StatusCode < http.StatusInternalServerError {
			return usage("the job was refused: %s", text)
		}
		return fmt.Errorf("the job was not enqueued: %s", text)
	case response.StatusCode == http.StatusOK:
		fmt.Fprintf(stdout, "%s %s (enqueued before, under this key)\n", answer.Job.ID, answer.Job.State)
	default:
		fmt.Fprintf(stdout, "%s %s\n", answer.Job.ID, answer.Job.State)
	}
	return nil
}
