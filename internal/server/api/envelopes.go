package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/envelope"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

// enqueueEnvelopes is POST /queues/{name}/envelopes: one envelope, or one on
// each line.
func (a *API) enqueueEnvelopes(c echo.Context) error {
	queue := c.Param("name")
	if err := job.CheckQueue(queue); err != nil {
		return problem.InAddress(err)
	}

	release, err := a.admit(c)
	if err != nil {
		return err
	}
	defer release()

	envelopes, err := envelopesOf(c)
	if err != nil {
		return err
	}

	// Reading envelopes takes time, and rules may take more: stop once the request has none left.
	jobs := make([]job.Job, len(envelopes))
	for i, raw := range envelopes {
		if err := c.Request().Context().Err(); err != nil {
			return outOfTime(i, err)
		}

		jobs[i], err = a.fromEnvelope(queue, raw)
		if err != nil {
			return err
		}
	}

	done, err := a.View.Enqueue(c.Request().Context(), time.Now(), jobs)
	if err != nil {
		return err
	}

	return web.JSON(c, createdUnless(allRepeat(done)), takenEnvelopes(c, done))
}

// envelopesOf returns the envelopes of a request, each as it was sent.
func envelopesOf(c echo.Context) ([][]byte, error) {
	const none = "the body holds no envelope"
	var all [][]byte

	if bodiless(c.Request()) {
		return nil, problem.New(problem.Malformed, none)
	}

	switch web.ContentType(c.Request()) {
	// The whole body is one envelope. Its bytes are kept as they came.
	case "application/json":
		data, err := web.Received(c, job.MaxPayload)
		if err != nil {
			return nil, err
		}

		if !blank(data) {
			all = append(all, data)
		}
	// Each line is an envelope.
	case "application/x-ndjson", "application/ndjson":
		data, err := web.Received(c, MaxBatch)
		if err != nil {
			return nil, err
		}

		all, err = splitLines(data)
		if err != nil {
			return nil, err
		}
	default:
		return nil, problem.New(problem.MediaType,
			"send one envelope with Content-Type: application/json, or one on each line with application/x-ndjson")
	}

	if len(all) == 0 {
		return nil, problem.New(problem.Malformed, none)
	}

	return all, nil
}

// splitLines splits a body at its line ends, "\n" or "\r\n". Blank lines hold no
// envelope.
func splitLines(data []byte) (all [][]byte, err error) {
	number := 0
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		line = bytes.TrimSuffix(line, []byte("\r"))
		switch number++; {
		case blank(line):
			continue
		case len(line) > job.MaxPayload:
			return nil, problem.In(problem.TooLarge, fmt.Sprintf("line %d", number),
				fmt.Sprintf("%d bytes; the maximum is %d. Nothing of this request was stored", len(line), job.MaxPayload))
		case len(all) == job.MaxBatch:
			return nil, &invalid.Error{Field: fmt.Sprintf("line %d", number),
				Problem: fmt.Sprintf("exceeds the %d envelopes that a request may have; send several requests", job.MaxBatch)}
		}

		// Clip keeps an append to one envelope from writing into the next one.
		all = append(all, slices.Clip(line))
	}

	return all, nil
}

// blank reports whether there is nothing but white space as JSON defines it.
func blank(data []byte) bool { return len(bytes.Trim(data, " \t\r\n")) == 0 }

// fromEnvelope makes a job of an envelope. One that cannot be read, or that a
// rule refuses, becomes a dead letter, in which a person can see what came and
// correct it.
func (a *API) fromEnvelope(queue string, raw []byte) (job.Job, error) {
	e, poison := envelope.Parse(raw)
	j := job.Job{
		Queue: queue, Type: e.URN, Payload: e.Data, Meta: e.Meta,
		TraceID: e.TraceID, MessageID: e.ID, Envelope: raw,
	}
	if poison != nil {
		j.Type, j.Payload, j.MessageID = envelope.Unread, raw, "" // it is no repeat of one that could be read
		return a.deadOnArrival(j, poison.Reason, job.ErrorInfo{Type: envelope.ErrorType(poison.Reason), Message: poison.Problem})
	}

	err := a.Config.Admit(&j, retry.Patch{})
	if refused := new(rules.Refused); errors.As(err, &refused) {
		return a.deadOnArrival(j, retry.RuleDecided, job.ErrorInfo{Type: "rule.refused", Message: problem.RefusedBy("", refused).Text})
	}

	return j, err
}

// deadOnArrival completes a job that becomes a dead letter without having run.
// It still gets a policy, so that it can be replayed like any other.
func (a *API) deadOnArrival(j job.Job, reason retry.Reason, e job.ErrorInfo) (job.Job, error) {
	j.State, j.Reason, j.Error = job.Discarded, reason, e
	return j, a.Config.Complete(&j)
}

// takenEnvelopes says what became of each envelope, in the order in which they came.
func takenEnvelopes(c echo.Context, done []job.Enqueued) (taken work.EnvelopesTaken) {
	for _, d := range done {
		switch {
		case d.Repeat:
			taken.Repeated++
		// What is discarded on arrival is a dead letter: a rule refused it, or it could not be
		// read.
		case d.Job.State != job.Discarded:
			taken.Accepted++
		case d.Job.Reason == retry.RuleDecided:
			taken.Refused++
		default:
			taken.Poison++
		}
	}

	taken.Jobs = mapped(done, func(d job.Enqueued) work.EnvelopeTaken {
		one := work.EnvelopeTaken{JobReceipt: receiptOf(d.Job), Repeat: d.Repeat}
		if d.Repeat && !sees(c) { // the job of a repeat is the one that came first
			return one
		}

		one.Reason, one.Error = d.Job.Reason, errorOf(d.Job.Error, "")

		return one
	})

	return taken
}

// envelope is GET /jobs/{id}/envelope: the envelope as a consumer of BabelQueue
// would have left it, or with original=1 exactly as it came.
func (a *API) envelope(c echo.Context) error {
	d, err := a.Job(c, 0)
	if err != nil {
		return err
	}

	if d.Job.Envelope == nil {
		return problem.New(problem.NotFound,
			"this job is not from a BabelQueue envelope; GET /jobs/"+d.Job.ID+"/payload sends its payload")
	}

	data := d.Job.Envelope
	switch original := c.QueryParam("original"); original {
	case "", "0":
		data = asLeft(d)
	case "1":
	default:
		return problem.In(problem.BadParameter, "original", fmt.Sprintf("%q is neither 1 nor 0", clip.Text(original, 64)))
	}

	return web.Download(c, d.Job.ID, "application/json", data)
}

// asLeft is the envelope with the attempts of the run, and with the block
// dead_letter if the run ended in the dead-letter queue or should have. An
// envelope that cannot be annotated is returned as it came.
func asLeft(d history.Detail) []byte {
	raw := d.Job.Envelope

	// Without a dead letter only the attempts are written into the envelope.
	i := slices.IndexFunc(d.DeadLetters, func(l job.DeadLetter) bool { return l.Run == d.Job.Run })
	if d.Job.DeadLetter == job.NoDeadLetter || i < 0 {
		if tried, ok := envelope.Tried(raw, d.Job.Attempts); ok {
			return tried
		}
		return raw
	}

	deadLetter := d.DeadLetters[i]
	if d.Job.Attempts == 0 { // it never ran here: its attempts are its own
		e, _ := envelope.Parse(raw)
		deadLetter.Attempts = e.Attempts
	}

	if annotated, ok := envelope.Annotate(raw, deadLetter); ok {
		return annotated
	}

	return raw
}
