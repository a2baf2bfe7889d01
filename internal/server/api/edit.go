package api

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Change is what somebody wants the next run of a job to be like, as it was read
// and before it is compared with the job. Zero fields keep what there is.
type Change struct {
	Payload  []byte
	Queue    string
	Priority *int
	RunAt    time.Time
	Patch    retry.Patch
}

func (w Change) empty() bool {
	return w.Payload == nil && w.Queue == "" && w.Priority == nil && w.RunAt.IsZero() && w.Patch == (retry.Patch{})
}

// readChange reads the body of a replay: the run that the caller looked at, and
// what shall be different.
func readChange(c echo.Context) (run int, w Change, err error) {
	data, err := readBody(c, maxBody)
	if err != nil {
		return 0, w, err
	}
	var when times
	err = fields{
		"run":     value(&run, "a whole number"),
		"payload": payload(&w.Payload),
		"queue": func(path string, raw json.RawMessage) error {
			if err := value(&w.Queue, aString)(path, raw); err != nil {
				return err
			}
			return job.CheckQueue(w.Queue)
		},
		"priority": func(path string, raw json.RawMessage) error {
			w.Priority = new(int)
			return value(w.Priority, "a whole number")(path, raw)
		},
		"run_at": moment(&when.runAt),
		"delay":  wait(&when.delay),
		"policy": policy(&w.Patch),
	}.read("", data)
	if err == nil {
		err = checkRun(run)
	}
	if err == nil {
		var j job.Job
		err = when.set(&j, time.Now())
		w.RunAt = j.RunAt
	}
	return run, w, err
}

// Edit compares what is wanted with the job, of which nothing is hidden. Each
// error is about one field.
func (a *API) Edit(original job.Job, w Change) (e job.Edit, wrong []error) {
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	e = job.Edit{RunAt: w.RunAt.UTC().Truncate(time.Microsecond), Priority: w.Priority}
	var err error
	if w.Payload != nil {
		e.Body, e.Paths, err = a.View.Rewrite(original, w.Payload)
		note(err)
	}
	if w.Queue != "" {
		e.Queue = w.Queue
		note(a.checkKnown(w.Queue))
	}
	if w.Priority != nil {
		note(checkPriority(*w.Priority))
	}
	note(a.editPolicy(&e, original, w.Patch))
	return e, wrong
}

// checkKnown refuses queues that nobody has: a job is not lost by a slip of the
// pen.
func (a *API) checkKnown(queue string) error {
	if err := job.CheckQueue(queue); err != nil {
		return err
	}
	if !slices.Contains(a.QueueNames(), queue) {
		return &invalid.Error{Field: "queue", Problem: fmt.Sprintf(
			"%q is unknown: no job was ever in it, and the configuration does not mention it", clip.Text(queue, 64))}
	}
	return nil
}

// editPolicy sets the policy: an envelope that can be read now has that of its
// type, and whatever else is said goes before it.
func (a *API) editPolicy(e *job.Edit, j job.Job, patch retry.Patch) error {
	if e.Body != nil && e.Body.Type != j.Type {
		j.Type, j.Timeout = e.Body.Type, 0
		if e.Queue != "" {
			j.Queue = e.Queue
		}
		if err := a.Config.Complete(&j); err != nil {
			return err
		}
		e.Policy, e.Origins, e.Timeout = &j.Policy, j.Origins, j.Timeout
	}
	if patch == (retry.Patch{}) {
		return nil
	}
	policy, origins, err := a.Config.Override(j, patch)
	e.Policy, e.Origins = &policy, origins
	return err
}
