package api

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype/work"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/limit"
	"redrive/internal/server/web"
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

	// A caller that may enqueue jobs and not look at them gets a receipt.
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

	// Each job of the batch gets a key of its own, from which a repeat is known.
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
		// The warning about a repeat was given when its job came first.
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
// is called. A body that declares a small size needs no place.
func (a *API) admit(c echo.Context) (release func(), err error) {
	if r := c.Request(); r.ContentLength >= 0 && r.ContentLength <= maxBody {
		return func() {}, nil
	}

	if body, ok := c.Request().Body.(*limit.Body); ok {
		body.Free()
	}

	return a.Limits.Turn(c, web.LimitBatches, a.Limits.Large, "other large batches are being read; nothing was changed, try again")
}

// Envelopes of BabelQueue are sent by a bridge that took them off a
// queue. The bridge has no sender to return them to, so no envelope is ever
// refused for its content: one that cannot be read, or that a rule refuses, is a
// dead letter at once, and its bytes are kept as they came. A request that is too
// large, or that holds no envelope, is refused as a whole, before anything is
// written.
