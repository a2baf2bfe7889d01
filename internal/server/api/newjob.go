package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
	"redrive/internal/server/problem"
	"redrive/internal/wire"
)

// newJobs reads the jobs of a batch. Rules may take long for so many; when the
// request runs out of time, nothing has been enqueued.
func (a *API) newJobs(ctx context.Context, data json.RawMessage, keyed bool) ([]job.Job, error) {
	var all json.RawMessage

	// The list is kept as it came. Each job is read from it below, so that an error names its
	// place: jobs[3].
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
		return problem.New(problem.RulesTooSlow, fmt.Sprintf(
			"the rules got through only %d of the jobs in time, so nothing was enqueued; send fewer in a request", read))
	}

	return err
}

// newJob reads a job and has the configuration admit it. path is where the job
// is in the body, for error messages; keyed says that the request has an
// idempotency key.
func (a *API) newJob(path string, data json.RawMessage, keyed bool) (job.Job, error) {
	// What a request leaves out: the queue is default, and the payload is null.
	in := work.NewJob{Queue: "default", Payload: apitype.Payload("null")}
	var patch retry.Patch

	err := decode(path, data, &in, func(member, path string, _ json.RawMessage) (err error) {
		switch member {
		// The policy can be the name of one, or fields of it.
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

	err = checkJob(j)
	if err == nil {
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
