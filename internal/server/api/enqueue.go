package api

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/envelope"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
	"redrive/internal/rules"
	"redrive/internal/server/limit"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// enqueue is POST /jobs. A repeat under an idempotency key is answered with the
// first job and 200, so that a program that got no answer can safely send the
// request again.
func (a *API) enqueue(c echo.Context) error {
	data, err := readBody(c, maxBody)
	if err != nil {
		return err
	}

	key, err := key(c)
	if err != nil {
		return err
	}

	j, err := a.newJob("", data, key != "")
	if err != nil {
		return err
	}

	j.Key, j.Caller = key, web.CallerOf(c).Scope()

	done, err := a.View.Enqueue(c.Request().Context(), time.Now(), []job.Job{j})
	if err != nil {
		return reused(c, err)
	}

	c.Response().Header().Set("Location", v1+"/jobs/"+done[0].Job.ID)

	status, warning := createdUnless(done[0].Repeat), a.unhandled(done)
	if !sees(c) {
		return web.JSON(c, status, work.EnqueuedReceipt{Job: receiptOf(done[0].Job), Warning: warning})
	}

	return web.JSON(c, status, work.Enqueued{Job: fullJobOf(done[0].Job), Warning: warning})
}

// enqueueBatch is POST /jobs/batch. Either all jobs are enqueued or none. With
// an idempotency key a repeat of the whole batch returns the first jobs. The
// answer leaves the payloads out. A batch has keys of its own: no header holds a
// line break, so no single job's key is like the key of one of its jobs.
func (a *API) enqueueBatch(c echo.Context) error {
	release, err := a.admit(c)
	if err != nil {
		return err
	}
	defer release()

	data, err := readBody(c, MaxBatch)
	if err != nil {
		return err
	}

	key, err := key(c)
	if err != nil {
		return err
	}

	jobs, err := a.newJobs(c.Request().Context(), data, key != "")
	if err != nil {
		return err
	}

	if key != "" {
		setKeys(jobs, key, web.CallerOf(c).Scope())
	}

	done, err := a.View.Enqueue(c.Request().Context(), time.Now(), jobs)
	if err != nil {
		return reused(c, err)
	}

	status, warning := createdUnless(allRepeat(done)), a.unhandled(done)
	if !sees(c) {
		receipts := mapped(done, func(d job.Enqueued) work.JobReceipt { return receiptOf(d.Job) })
		return web.JSON(c, status, work.EnqueuedBatchReceipt{Jobs: receipts, Warning: warning})
	}

	rows := mapped(done, func(d job.Enqueued) work.JobRow { return jobRowOf(d.Job) })

	return web.JSON(c, status, work.EnqueuedBatch{Jobs: rows, Warning: warning})
}

// maxUnhandled is how many types of jobs a warning names.
const maxUnhandled = 5

// unhandled warns of jobs that were enqueued although no handler can run them. It
// is empty when there are none.
func (a *API) unhandled(done []job.Enqueued) string {
	var types []string
	for _, d := range done {
		if d.Repeat || a.Engine.Knows(d.Job.Type) || slices.Contains(types, d.Job.Type) {
			continue
		}

		if len(types) == maxUnhandled {
			types = append(types, "others")
			break
		}

		types = append(types, d.Job.Type)
	}

	if len(types) == 0 {
		return ""
	}

	become := map[retry.Unknown]string{
		retry.UnknownHold: "they wait until one is", retry.UnknownFail: "they fail",
		retry.UnknownDeadLetter: "they become dead letters", retry.UnknownDelete: "they are discarded",
	}

	return "no handler is configured for jobs of type " + strings.Join(types, ", ") + ": " + become[a.Config.UnknownType]
}

// createdUnless is the status of an answer about something that was made now, or
// was there already.
func createdUnless(repeat bool) int {
	if repeat {
		return http.StatusOK
	}
	return http.StatusCreated
}

// allRepeat reports whether nothing was enqueued because all of it was there
// already.
func allRepeat(done []job.Enqueued) bool {
	return !slices.ContainsFunc(done, func(d job.Enqueued) bool { return !d.Repeat })
}

// admit bounds how many large bodies are held in memory at once, until release
// is called. A body that announces a small size needs no place.
func (a *API) admit(c echo.Context) (release func(), err error) {
	if r := c.Request(); r.ContentLength >= 0 && r.ContentLength <= maxBody {
		return func() {}, nil
	}

	if body, ok := c.Request().Body.(*limit.Body); ok {
		body.Free()
	}

	return a.Limits.Turn(c, web.LimitBatches, a.Limits.Large, "other large batches are being read; nothing was changed, try again")
}

// newJobs reads the jobs of a batch. Rules may take long for so many; when the
// request runs out of time, nothing has been enqueued.
func (a *API) newJobs(ctx context.Context, data json.RawMessage, keyed bool) ([]job.Job, error) {
	var all json.RawMessage

	err := decode("", data, &work.NewJobs{}, func(_, _ string, raw json.RawMessage) error {
		all = raw
		return nil
	})
	if err != nil {
		return nil, err
	}

	var jobs []job.Job
	for raw := range rawjson.Elements(all) {
		if len(jobs) == job.MaxBatch {
			return nil, &invalid.Error{Field: "jobs", Problem: fmt.Sprintf("more than %d jobs; send them in several batches", job.MaxBatch)}
		}

		if ctx.Err() != nil {
			return nil, outOfTime(len(jobs), ctx.Err())
		}

		j, err := a.newJob(fmt.Sprintf("jobs[%d]", len(jobs)), raw, keyed)
		if err != nil {
			return nil, err
		}

		jobs = append(jobs, j)
	}

	if len(jobs) == 0 {
		return nil, &invalid.Error{Field: "jobs", Problem: "must name at least one job"}
	}

	return jobs, nil
}

// outOfTime is the error of a request whose time ended after some of its jobs
// were read. A client that has left gets no answer.
func outOfTime(read int, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return web.Fail(web.RulesTooSlow, fmt.Sprintf(
			"the rules got through only %d of the jobs in time, so nothing was enqueued; send fewer in a request", read))
	}

	return err
}

// newJob reads a job and has the configuration admit it. path is where the job
// is in the body, for error messages; keyed says that the request has an
// idempotency key.
func (a *API) newJob(path string, data json.RawMessage, keyed bool) (job.Job, error) {
	in := work.NewJob{Queue: "default", Payload: apitype.Payload("null")}
	var patch retry.Patch

	err := decode(path, data, &in, func(member, path string, _ json.RawMessage) (err error) {
		switch member {
		case "policy":
			patch, err = wire.DecodePatch(in.Policy)
			err = within(path, err)
		case "ttr":
			err = longerThanZero(in.TTR)
		case "trace_id":
			err = checkTraceID(*in.TraceID)
		}

		return err
	})
	if err != nil {
		return job.Job{}, err
	}

	now := time.Now()

	j := job.Job{Type: in.Type, Queue: in.Queue, Priority: in.Priority, Payload: in.Payload, Meta: json.RawMessage(in.Meta)}
	if in.TTR != nil {
		j.Timeout = time.Duration(*in.TTR)
	}

	if in.TraceID != nil {
		j.TraceID = *in.TraceID
	}

	if keyed { // before the rules: they may be others when the request is repeated
		j.Content = contentOf(j)
	}

	when := times{
		runAt: momentOf(in.RunAt), delay: endOf(in.Delay, now),
		expiresAt: momentOf(in.ExpiresAt), expiresIn: endOf(in.ExpiresIn, now),
	}
	if err = checkJob(j); err == nil {
		err = when.set(&j, now)
	}

	if err == nil {
		err = a.Config.Admit(&j, patch)
	}

	return j, within(path, err)
}

// checkJob checks the type, the queue and the priority of a job.
func checkJob(j job.Job) error {
	return cmp.Or(job.CheckType(j.Type), job.CheckQueue(j.Queue), checkPriority(j.Priority))
}

// checkTraceID checks an id that other systems made, so only its length counts.
func checkTraceID(id string) error {
	if id == "" || len(id) > job.MaxTraceID {
		return fmt.Errorf("must have 1 to %d bytes", job.MaxTraceID)
	}
	return nil
}

// checkPriority refuses priorities outside the range that the API documents.
func checkPriority(p int) error {
	if p < -job.MaxPriority || p > job.MaxPriority {
		return &invalid.Error{Field: "priority", Problem: fmt.Sprintf("%d is not between %d and %d", p, -job.MaxPriority, job.MaxPriority)}
	}
	return nil
}

// Envelopes of BabelQueue are handed over by a bridge that took them off a
// queue. The bridge has no sender to return them to, so no envelope is ever
// refused for its content: one that cannot be read, or that a rule refuses, is a
// dead letter at once, and its bytes are kept as they came. A request that is too
// large, or that holds no envelope, is refused as a whole, before anything is
// written.

// enqueueEnvelopes is POST /queues/{name}/envelopes: one envelope, or one on
// each line.
func (a *API) enqueueEnvelopes(c echo.Context) error {
	queue := c.Param("name")
	if err := job.CheckQueue(queue); err != nil {
		return web.InAddress(err)
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

	return web.JSON(c, createdUnless(allRepeat(done)), takenEnvelopes(c, done))
}

// envelopesOf returns the envelopes of a request, each as it was sent.
func envelopesOf(c echo.Context) ([][]byte, error) {
	const none = "the body holds no envelope"
	var all [][]byte

	if bodiless(c.Request()) {
		return nil, web.Fail(web.Malformed, none)
	}

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
		data, err := web.Received(c, MaxBatch)
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
		return nil, web.Fail(web.Malformed, none)
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
				fmt.Sprintf("%d bytes; the maximum is %d. Nothing of this request was stored", len(line), job.MaxPayload))
		case len(all) == job.MaxBatch:
			return nil, &invalid.Error{Field: fmt.Sprintf("line %d", number),
				Problem: fmt.Sprintf("exceeds the %d envelopes that a request may have; send several requests", job.MaxBatch)}
		}

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
		return a.deadOnArrival(j, retry.RuleDecided, job.ErrorInfo{Type: "rule.refused", Message: web.RefusedBy("", refused).Text})
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
		return web.Fail(web.NotFound,
			"this job is not from a BabelQueue envelope; GET /jobs/"+d.Job.ID+"/payload sends its payload")
	}

	data := d.Job.Envelope
	switch original := c.QueryParam("original"); original {
	case "", "0":
		data = asLeft(d)
	case "1":
	default:
		return web.FailIn(web.BadParameter, "original", fmt.Sprintf("%q is neither 1 nor 0", clip.Text(original, 64)))
	}

	return web.Download(c, d.Job.ID, "application/json", data)
}

// asLeft is the envelope with the attempts of the run, and with the block
// dead_letter if the run ended in the dead-letter queue or should have. An
// envelope that cannot be annotated is returned as it came.
func asLeft(d history.Detail) []byte {
	raw := d.Job.Envelope
	i := slices.IndexFunc(d.DeadLetters, func(l job.DeadLetter) bool { return l.Run == d.Job.Run })
	if d.Job.DeadLetter == job.NoDeadLetter || i < 0 {
		if tried, ok := envelope.Tried(raw, d.Job.Attempts); ok {
			return tried
		}
		return raw
	}

	letter := d.DeadLetters[i]
	if d.Job.Attempts == 0 { // it never ran here: its attempts are its own
		e, _ := envelope.Parse(raw)
		letter.Attempts = e.Attempts
	}

	if annotated, ok := envelope.Annotate(raw, letter); ok {
		return annotated
	}

	return raw
}
