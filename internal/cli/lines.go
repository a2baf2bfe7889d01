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

	"redrive/internal/cli/console"
	"redrive/internal/client"
	"redrive/internal/usage"
)

// batchBytes is how many bytes of the standard input go into one request at most. Like
// the number of jobs, it is as much as the API takes unless the user asks for less,
// because a request is enqueued as a whole or not at all.
const batchBytes = 64 << 20

// patience is how long a batch may be refused for want of a place before that is an error.
const patience = 2 * time.Minute

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
func (b batch) send(c console.Console, dashboard *client.Client, key string) (client.Enqueued, error) {
	done := c.Waiting("sending " + b.name())
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
		done = c.Waiting("waiting to send " + b.name() + ": the dashboard is busy")

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
