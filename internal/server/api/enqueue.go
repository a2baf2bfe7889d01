package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/web"
)

const headerKey = "Idempotency-Key"

// enqueue is POST /jobs.
func (a *API) enqueue(c echo.Context) error {
	data, err := readBody(c, maxBody)
	if err != nil {
		return err
	}
	j, err := a.newJob("", data)
	if err != nil {
		return err
	}
	if j.Key, err = key(c); err != nil {
		return err
	}
	done, err := a.View.Enqueue(c.Request().Context(), time.Now(), []job.Job{j})
	if err != nil {
		return err
	}
	c.Response().Header().Set("Location", v1+"/jobs/"+done[0].Job.ID)
	return c.JSONBlob(createdUnless(done[0].Repeat), web.Object{"job", encodeJob(done[0].Job, true)}.Encode())
}

// enqueueBatch is POST /jobs/batch: all of them or none. With an idempotency
// key a repeat of the whole batch returns the first jobs. The answer leaves
// the payloads out.
func (a *API) enqueueBatch(c echo.Context) error {
	release, err := a.admit(c.Request())
	if err != nil {
		return err
	}
	defer release()
	data, err := readBody(c, maxBatch)
	if err != nil {
		return err
	}
	jobs, err := a.newJobs(c.Request().Context(), data)
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
	done, err := a.View.Enqueue(c.Request().Context(), time.Now(), jobs)
	if err != nil {
		return err
	}
	all := web.List(done, func(d job.Enqueued) web.Raw { return encodeJob(d.Job, false) })
	return c.JSONBlob(createdUnless(allRepeat(done)), web.Object{"jobs", all}.Encode())
}

// createdUnless is the status of an answer about what was made, or was there.
func createdUnless(repeat bool) int {
	if repeat {
		return http.StatusOK
	}
	return http.StatusCreated
}

func allRepeat(done []job.Enqueued) bool {
	return !slices.ContainsFunc(done, func(d job.Enqueued) bool { return !d.Repeat })
}

// admit bounds how many large bodies are held at once. The place is taken
// until release is called; a body that is known to be small needs none.
func (a *API) admit(r *http.Request) (release func(), err error) {
	if r.ContentLength >= 0 && r.ContentLength <= maxBody {
		return func() {}, nil
	}
	return a.large.Take(r.Context(), "other large batches are being read; nothing was changed, try again")
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
func (a *API) newJobs(ctx context.Context, data json.RawMessage) ([]job.Job, error) {
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
		j, err := a.newJob(fmt.Sprintf("jobs[%d]", len(jobs)), raw)
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
		return web.Fail(web.TooSlow, fmt.Sprintf(
			"only %d of the jobs were read and asked of the rules in time, and nothing was enqueued; send fewer in a request", read))
	}
	return err
}

// newJob reads a job that somebody sends; the configuration admits it. path is
// where it stands in the body.
func (a *API) newJob(path string, data json.RawMessage) (job.Job, error) {
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
	if err = checkJob(j); err == nil {
		err = when.set(&j, time.Now())
	}
	if err == nil {
		err = a.Config.Admit(&j, patch)
	}
	return j, within(path, err)
}

func checkJob(j job.Job) error {
	return cmp.Or(job.CheckType(j.Type), job.CheckQueue(j.Queue), checkPriority(j.Priority))
}

func checkPriority(p int) error {
	if p < -job.MaxPriority || p > job.MaxPriority {
		return &invalid.Error{Field: "priority", Problem: fmt.Sprintf("%d is not between %d and %d", p, -job.MaxPriority, job.MaxPriority)}
	}
	return nil
}
