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

	"redrive/internal/client"
	"redrive/internal/job"
	"redrive/internal/usage"
)

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
func (e *enqueue) failed(b batch, last int, err error) error {
	if client.Unchanged(err) {
		return fmt.Errorf("%w; %s", notEnqueued(err, b.name()+" were"), upTo(last))
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
			size += len(line) + 1
			if size > batchBytes && len(b.lines) > 0 {
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

	line = bytes.TrimSpace(line)
	if len(line) > 0 && !json.Valid(line) {
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
