package api

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/envelope"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/rules"
	"redrive/internal/server/web"
)

// Envelopes of BabelQueue are handed over by a bridge that took them off a
// queue. It cannot send them back to anybody, so none is ever refused for what
// is in it: one that cannot be read, or that a rule refuses, is a dead letter
// at once, and its bytes are kept as they came. What is refused is refused
// whole, before anything is written: a request that is too large, or that
// holds no envelope.

// enqueueEnvelopes is POST /queues/{name}/envelopes: one envelope, or one on
// each line.
func (a *API) enqueueEnvelopes(c echo.Context) error {
	queue := c.Param("name")
	if err := job.CheckQueue(queue); err != nil {
		return web.InAddress(err)
	}
	release, err := a.admit(c.Request())
	if err != nil {
		return err
	}
	defer release()
	envelopes, err := envelopesOf(c)
	if err != nil {
		return err
	}
	jobs := make([]job.Job, len(envelopes))
	for i, raw := range envelopes {
		if err := c.Request().Context().Err(); err != nil {
			return outOfTime(i, err)
		}
		if jobs[i], err = a.fromEnvelope(queue, raw); err != nil {
			return err
		}
	}
	done, err := a.View.Enqueue(c.Request().Context(), time.Now(), jobs)
	if err != nil {
		return err
	}
	status, answer := describeEnvelopes(done)
	return c.JSONBlob(status, answer.Encode())
}

// envelopesOf reads the envelopes of a request, each as it was sent.
func envelopesOf(c echo.Context) ([][]byte, error) {
	var all [][]byte
	switch web.ContentType(c.Request()) {
	case "application/json":
		data, err := web.Received(c, job.MaxPayload)
		if err != nil {
			return nil, err
		}
		if !blank(data) {
			all = append(all, data)
		}
	case "application/x-ndjson", "application/ndjson":
		data, err := web.Received(c, maxBatch)
		if err != nil {
			return nil, err
		}
		if all, err = splitLines(data); err != nil {
			return nil, err
		}
	default:
		return nil, web.Fail(web.MediaType,
			"send one envelope with Content-Type: application/json, or one on each line with application/x-ndjson")
	}
	if len(all) == 0 {
		return nil, web.Fail(web.Malformed, "the body holds no envelope")
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
			return nil, web.FailIn(web.TooLarge, fmt.Sprintf("line %d", number),
				fmt.Sprintf("%d bytes, at most %d are kept; nothing of this request was", len(line), job.MaxPayload))
		case len(all) == job.MaxBatch:
			return nil, &invalid.Error{Field: fmt.Sprintf("line %d", number),
				Problem: fmt.Sprintf("is one envelope more than the %d that a request may hold; send them in several", job.MaxBatch)}
		}
		all = append(all, slices.Clip(line))
	}
	return all, nil
}

// blank reports whether there is nothing but what JSON calls white space.
func blank(data []byte) bool { return len(bytes.Trim(data, " \t\r\n")) == 0 }

// fromEnvelope makes a job of an envelope, or a dead letter.
func (a *API) fromEnvelope(queue string, raw []byte) (job.Job, error) {
	e, poison := envelope.Parse(raw)
	j := job.Job{
		Queue: queue, Type: e.URN, Payload: e.Data, Meta: e.Meta,
		TraceID: e.TraceID, MessageID: e.ID, Envelope: raw,
	}
	if poison != nil {
		j.Type, j.Payload, j.MessageID = envelope.Unread, raw, "" // it is no repeat of one that could be read
		return a.setAside(j, poison.Reason, job.ErrorInfo{Type: envelope.ErrorType(poison.Reason), Message: poison.Problem})
	}
	err := a.Config.Admit(&j, retry.Patch{})
	if refused := new(rules.Refused); errors.As(err, &refused) {
		return a.setAside(j, retry.RuleDecided, job.ErrorInfo{Type: "rule.refused", Message: web.RefusedBy("", refused).Text})
	}
	return j, err
}

// setAside makes the job a dead letter before it ran.
func (a *API) setAside(j job.Job, reason retry.Reason, e job.ErrorInfo) (job.Job, error) {
	j.State, j.Reason, j.Error = job.Discarded, reason, e
	return j, a.Config.Complete(&j)
}

type envelopeShape struct {
	ID     string       `json:"id"`
	State  job.State    `json:"state"`
	Repeat bool         `json:"repeat,omitempty"` // the job is the one that came first
	Reason retry.Reason `json:"reason,omitempty"`
	Error  *errorShape  `json:"error,omitempty"`
}

// describeEnvelopes tells what became of each envelope, in the order in which
// they came.
func describeEnvelopes(done []job.Enqueued) (status int, answer web.Object) {
	var accepted, repeated, poison, refused int
	for _, d := range done {
		switch {
		case d.Repeat:
			repeated++
		case d.Job.State != job.Discarded:
			accepted++
		case d.Job.Reason == retry.RuleDecided:
			refused++
		default:
			poison++
		}
	}
	jobs := web.List(done, func(d job.Enqueued) envelopeShape {
		return envelopeShape{d.Job.ID, d.Job.State, d.Repeat, d.Job.Reason, errorOf(d.Job.Error, "")}
	})
	return createdUnless(allRepeat(done)), web.Object{
		"jobs", jobs, "accepted", accepted, "repeated", repeated, "poison", poison, "refused", refused,
	}
}

// envelope is GET /jobs/{id}/envelope: the envelope as a consumer of
// BabelQueue would have left it, or with original=1 exactly as it came.
func (a *API) envelope(c echo.Context) error {
	d, err := a.Job(c)
	if err != nil {
		return err
	}
	if d.Job.Envelope == nil {
		return web.Fail(web.NotFound,
			"this job did not come as an envelope of BabelQueue; GET /jobs/"+d.Job.ID+"/payload sends its payload")
	}
	data := d.Job.Envelope
	if c.QueryParam("original") != "1" {
		data = asLeft(d)
	}
	return web.Download(c, d.Job.ID, "application/json", data)
}

// asLeft is the envelope with the attempts of the run, and with the block
// dead_letter if the run ended in the dead-letter queue or should have. What
// cannot be marked is as it came.
func asLeft(d history.Detail) []byte {
	raw := d.Job.Envelope
	i := slices.IndexFunc(d.Letters, func(l job.DeadLetter) bool { return l.Run == d.Job.Run })
	if d.Job.Letter == job.NoLetter || i < 0 {
		if tried, ok := envelope.Tried(raw, d.Job.Attempts); ok {
			return tried
		}
		return raw
	}
	letter := d.Letters[i]
	if d.Job.Attempts == 0 { // it never ran here: its attempts are its own
		e, _ := envelope.Parse(raw)
		letter.Attempts = e.Attempts
	}
	if annotated, ok := envelope.Annotate(raw, letter); ok {
		return annotated
	}
	return raw
}
