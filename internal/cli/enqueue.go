package cli

import (
	"bufio"
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

	made, err := dashboard.Enqueue(context.Background(), body, e.Key)
	if err != nil {
		if client.Unchanged(err) {
			return notEnqueued(err)
		}
		return fmt.Errorf("%w; %s", err, e.perhaps("the job", "it"))
	}

	if err := e.print(c, made); err != nil {
		return fmt.Errorf("the job was enqueued, but cannot be printed: %w", err)
	}

	return nil
}

// notEnqueued is the error of jobs that a dashboard certainly did not take.
func notEnqueued(err error) error {
	var answer *client.Error
	switch {
	case errors.As(err, &answer) && answer.Refused():
		return usage.Errorf("the job was refused: %s", answer.Problem())
	case answer != nil:
		return fmt.Errorf("the job was not enqueued: %s", answer.Problem())
	}

	return err
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

	return append(append(append(data[:len(data)-1], `,"payload":`...), payload...), '}'), nil
}

// payload is the payload of the command line or of the standard input; empty when
// there is none. A dash asks for the standard input even if that is a terminal.
func (e *enqueue) payload(stdin io.Reader) ([]byte, error) {
	var payload []byte
	asked := e.Payload != nil && *e.Payload == "-"
	if asked || e.Payload == nil && !isTerminal(stdin) {
		var err error
		if payload, err = io.ReadAll(io.LimitReader(stdin, job.MaxPayload+1)); err != nil {
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

// batchBytes is how many bytes of the standard input go into one request at most. Like
// the number of jobs, it is as much as the API takes unless the user asks for less,
// because a request is enqueued as a whole or not at all.
const batchBytes = 64 << 20

// patience is how long a batch may be refused for want of a place before that is an error.
const patience = 2 * time.Minute

// sendLines sends the jobs of the standard input, in batches. A batch is read and
// checked as a whole before it is sent.
func (e *enqueue) sendLines(c Console) error {
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

	dashboard, err := e.connect()
	if err != nil {
		return err
	}

	in := newLineReader(c.Stdin, size)
	last := 0 // the number of the last line that is enqueued
	for {
		b, end := in.next()
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
func (e *enqueue) failed(b batch, last int, err error) error {
	if client.Unchanged(err) {
		return fmt.Errorf("%w; %s", notEnqueued(err), upTo(last))
	}

	before := ""
	if last > 0 {
		before = fmt.Sprintf("lines 1 to %d were enqueued, and ", last)
	}

	return fmt.Errorf("%w; %s%s", err, before, e.perhaps(b.name(), "them"))
}

// lineReader reads batches of jobs, one on each line.
type lineReader struct {
	in     *bufio.Reader
	size   int    // of a batch at most, in lines
	number int    // of the last line that was read
	over   []byte // that line, when the batch before had no room for it
}

func newLineReader(in io.Reader, size int) *lineReader {
	return &lineReader{in: bufio.NewReaderSize(in, 64<<10), size: size}
}

// next returns the next batch. With io.EOF it is the last one; any other error is about
// one of its lines, and there is no batch.
func (r *lineReader) next() (b batch, err error) {
	size := len(`{"jobs":[]}`)
	for len(b.lines) < r.size {
		line, err := r.line()
		if len(line) > 0 {
			if size += len(line) + 1; size > batchBytes && len(b.lines) > 0 {
				r.over = line
				return b, nil
			}

			b.lines, b.numbers = append(b.lines, line), append(b.numbers, r.number)
		}

		if errors.Is(err, io.EOF) {
			return b, err
		}

		if err != nil {
			return batch{}, err
		}
	}

	return b, nil
}

// line returns the next line without what is around it, which may leave nothing. With
// io.EOF it is the last one.
func (r *lineReader) line() ([]byte, error) {
	if line := r.over; line != nil {
		r.over = nil
		return line, nil
	}

	line, err := r.in.ReadBytes('\n')
	r.number++
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("read line %d of standard input: %w", r.number, err)
	}

	if line = bytes.TrimSpace(line); len(line) > 0 && !json.Valid(line) {
		return nil, usage.Errorf("line %d of standard input is not JSON", r.number)
	}

	return line, err
}

// batch is some lines of the standard input, each with its number.
type batch struct {
	lines   [][]byte
	numbers []int
}

// name is what messages call the batch.
func (b batch) name() string {
	return fmt.Sprintf("lines %d to %d", b.numbers[0], b.numbers[len(b.numbers)-1])
}

// send sends the batch, and sends it again while the dashboard has no place for it. A
// person at a terminal is told what takes longer than a second.
func (b batch) send(c Console, dashboard *client.Client, key string) (client.Enqueued, error) {
	done := c.waiting("sending " + b.name())
	defer func() { done() }()

	until := time.Now().Add(patience)
	for {
		made, err := dashboard.EnqueueBatch(context.Background(), b.lines, b.key(key))
		var answer *client.Error
		if !errors.As(err, &answer) {
			return made, err
		}

		after, again := answer.Again()
		if !again || time.Now().Add(after).After(until) {
			return made, err
		}

		done()
		done = c.waiting("waiting to send " + b.name() + ": the dashboard is busy")

		time.Sleep(after)
	}
}

// key is the idempotency key of the batch: the same input makes the same batches,
// unless their size is another one; then the dashboard refuses the key.
func (b batch) key(whole string) string {
	if whole == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", whole, b.numbers[0])
}

// locate names the line of the standard input instead of the place in the request, and
// the flag that makes requests smaller.
func (b batch) locate(err error) error {
	var answer *client.Error
	var i int

	if !errors.As(err, &answer) {
		return err
	}

	if answer.Code == "rules_too_slow" {
		answer.Message += " (--batch-size)"
	}

	if n, _ := fmt.Sscanf(answer.Field, "jobs[%d]", &i); n == 1 && i < len(b.numbers) {
		_, field, _ := strings.Cut(answer.Field, "]")
		answer.Field = strings.TrimSuffix(fmt.Sprintf("line %d, %s", b.numbers[i], strings.TrimPrefix(field, ".")), ", ")
	}

	return err
}
