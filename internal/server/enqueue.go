package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

const (
	maxBody  = job.MaxPayload + job.MaxMeta + 512<<10 // of one job: all its limits, with room
	maxBatch = 64 << 20                               // of a batch, in bytes

	headerKey = "Idempotency-Key"
)

// enqueue is POST /jobs.
func (s *Server) enqueue(c echo.Context) error {
	data, err := body(c, maxBody)
	if err != nil {
		return err
	}
	j, err := s.newJob("", data)
	if err != nil {
		return err
	}
	if j.Key, err = key(c); err != nil {
		return err
	}
	done, err := s.View.Enqueue(c.Request().Context(), time.Now(), []job.Job{j})
	if err != nil {
		return err
	}
	status := http.StatusCreated
	if done[0].Repeat {
		status = http.StatusOK
	}
	c.Response().Header().Set("Location", "/api/v1/jobs/"+done[0].Job.ID)
	return c.JSONBlob(status, object("job", encodeJob(done[0].Job, true)))
}

// enqueueBatch is POST /jobs/batch: all of them or none. With an idempotency
// key a repeat of the whole batch returns the first jobs. The answer leaves
// the payloads out.
func (s *Server) enqueueBatch(c echo.Context) error {
	release, err := s.admit(c.Request())
	if err != nil {
		return err
	}
	defer release()
	data, err := body(c, maxBatch)
	if err != nil {
		return err
	}
	jobs, err := s.newJobs(c.Request().Context(), data)
	if err != nil {
		return err
	}
	key, err := key(c)
	if err != nil {
		return err
	}
	for i := range jobs {
		if key != "" {
			jobs[i].Key = fmt.Sprintf("%s\n%d", key, i) // no header holds a line break, so no single job's key is like it
		}
	}
	done, err := s.View.Enqueue(c.Request().Context(), time.Now(), jobs)
	if err != nil {
		return err
	}
	status := http.StatusOK
	all := make([][]byte, len(done))
	for i, d := range done {
		all[i] = encodeJob(d.Job, false)
		if !d.Repeat {
			status = http.StatusCreated
		}
	}
	return c.JSONBlob(status, object("jobs", list(all)))
}

// key is the idempotency key of a request, or empty.
func key(c echo.Context) (string, error) {
	k := c.Request().Header.Get(headerKey)
	if len(k) > job.MaxKey-8 || !utf8.ValidString(k) {
		return "", &invalid.Error{Field: headerKey, Problem: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", job.MaxKey-8)}
	}
	return k, nil
}

// newJobs reads the jobs of a batch. Rules may work long on so many: the
// request's time ends that, and then nothing was enqueued.
func (s *Server) newJobs(ctx context.Context, data json.RawMessage) ([]job.Job, error) {
	var all json.RawMessage
	err := fields{"jobs": func(path string, raw json.RawMessage) error {
		if all = raw; first(raw) != '[' {
			return wrongType(path, "a list of jobs", raw)
		}
		return nil
	}}.read("", data)
	if err != nil {
		return nil, err
	}
	var jobs []job.Job
	for raw := range parts(all) {
		if len(jobs) == job.MaxBatch {
			return nil, &invalid.Error{Field: "jobs", Problem: fmt.Sprintf("more than %d jobs; send them in several batches", job.MaxBatch)}
		}
		if ctx.Err() != nil {
			return nil, outOfTime(len(jobs), ctx.Err())
		}
		j, err := s.newJob(fmt.Sprintf("jobs[%d]", len(jobs)), raw)
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

// outOfTime is the error of a request whose time ended after so many of its
// jobs were read. A client that left gets none.
func outOfTime(read int, err error) error {
	if errors.Is(err, context.DeadlineExceeded) {
		return &failure{slow, "", fmt.Sprintf(
			"only %d of the jobs were read and asked of the rules in time, and nothing was enqueued; send fewer in a request", read), nil}
	}
	return err
}

// newJob reads a job that somebody sends; the configuration admits it. path is
// where it stands in the body.
func (s *Server) newJob(path string, data json.RawMessage) (job.Job, error) {
	j := job.Job{Queue: "default", Payload: []byte("null")}
	var patch retry.Patch
	var when times
	err := fields{
		"type":     value(&j.Type, "a string"),
		"queue":    value(&j.Queue, "a string"),
		"priority": value(&j.Priority, "a whole number"),
		"payload":  payload(&j.Payload),
		"meta":     meta(&j.Meta),
		"policy":   policy(&patch),
		"ttr":      positive(&j.Timeout),
		"trace_id": traceID(&j.TraceID),

		"run_at":     moment(&when.runAt),
		"delay":      wait(&when.delay),
		"expires_at": moment(&when.expiresAt),
		"expires_in": wait(&when.expiresIn),
	}.read(path, data)
	if err != nil {
		return job.Job{}, err
	}
	if err := checkJob(j); err != nil {
		return job.Job{}, within(path, err)
	}
	if err := when.set(&j, time.Now()); err != nil {
		return job.Job{}, within(path, err)
	}
	if err := s.Config.Admit(&j, patch); err != nil {
		return job.Job{}, within(path, err)
	}
	return j, nil
}

func checkJob(j job.Job) error {
	if err := job.CheckType(j.Type); err != nil {
		return err
	}
	if err := job.CheckQueue(j.Queue); err != nil {
		return err
	}
	if j.Priority < -job.MaxPriority || j.Priority > job.MaxPriority {
		return &invalid.Error{Field: "priority", Problem: fmt.Sprintf("%d is not between %d and %d", j.Priority, -job.MaxPriority, job.MaxPriority)}
	}
	return nil
}

// times are what a request says about when its job may run.
type times struct{ runAt, delay, expiresAt, expiresIn time.Time }

// set checks the times against each other and hands them to the job.
func (t times) set(j *job.Job, now time.Time) error {
	switch {
	case !t.runAt.IsZero() && !t.delay.IsZero():
		return &invalid.Error{Field: "delay", Problem: "cannot stand beside run_at; send one of them"}
	case !t.expiresAt.IsZero() && !t.expiresIn.IsZero():
		return &invalid.Error{Field: "expires_in", Problem: "cannot stand beside expires_at; send one of them"}
	}
	j.RunAt, j.ExpiresAt = later(t.runAt, t.delay), later(t.expiresAt, t.expiresIn)
	field := "expires_at"
	if t.expiresAt.IsZero() {
		field = "expires_in"
	}
	if from := later(j.RunAt, now); !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(from) {
		return &invalid.Error{Field: field, Problem: fmt.Sprintf(
			"the job would expire at %s, not after %s, when it may run: it could never run", wire.FormatTime(j.ExpiresAt), wire.FormatTime(from))}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

func traceID(to *string) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		if err := value(to, "a string")(path, raw); err != nil {
			return err
		}
		if *to == "" || len(*to) > job.MaxTraceID {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("must have 1 to %d bytes", job.MaxTraceID)}
		}
		return nil
	}
}

func payload(to *[]byte) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		if len(raw) > job.MaxPayload {
			return &failure{tooLarge, path, fmt.Sprintf("%d bytes, at most %d are kept", len(raw), job.MaxPayload), nil}
		}
		*to = raw
		return nil
	}
}

func meta(to *json.RawMessage) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		if len(raw) > job.MaxMeta {
			return &failure{tooLarge, path, fmt.Sprintf("%d bytes, at most %d are kept", len(raw), job.MaxMeta), nil}
		}
		*to = raw
		return members(path, raw, func(string, string, json.RawMessage) error { return nil })
	}
}

func policy(to *retry.Patch) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var err error
		if first(raw) != '"' { // no name of a policy: each field once
			err = members(path, raw, func(_, path string, raw json.RawMessage) error { return whole(path, raw) })
		}
		if err == nil {
			*to, err = wire.DecodePatch(raw, wire.ParseDuration)
			err = within(path, err)
		}
		return err
	}
}

func positive(to *time.Duration) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		d, err := duration(path, raw)
		if err == nil && d <= 0 {
			err = &invalid.Error{Field: path, Problem: "must be longer than zero"}
		}
		*to = d
		return err
	}
}

func wait(to *time.Time) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		d, err := duration(path, raw)
		*to = time.Now().Add(d)
		return err
	}
}

func duration(path string, raw json.RawMessage) (time.Duration, error) {
	var s string
	if err := value(&s, `a duration in quotes, as "PT5M"`)(path, raw); err != nil {
		return 0, err
	}
	d, err := wire.ParseDuration(s)
	if err != nil {
		return 0, &invalid.Error{Field: path, Problem: err.Error()}
	}
	return d, nil
}

// rfc3339 is the shape of a time. Package time takes a comma, an hour of one
// digit and offsets of a day as well.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func moment(to *time.Time) func(string, json.RawMessage) error {
	return func(path string, raw json.RawMessage) error {
		var s string
		if err := value(&s, "a time in quotes")(path, raw); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil || !rfc3339.MatchString(s) {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("%q is not a time as 2026-01-31T15:04:05Z (RFC 3339)", clip.Text(s, 64))}
		}
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("%q is not within the years 0 to 9999 in UTC", s)}
		}
		*to = t
		return nil
	}
}
