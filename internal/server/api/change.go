package api

import (
	"cmp"
	"encoding/json"
	"fmt"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/wire"
)

// Change is what a caller wants to be different in the next run of a job, before
// it is compared with the job. Zero fields keep what the job has.
type Change struct {
	Payload  []byte
	Queue    string
	Priority *int
	RunAt    time.Time
	Patch    retry.Patch
	Mode     source.Mode // at a source; empty: once
}

// empty reports whether the next run should be like the last one.
func (w Change) empty() bool {
	return w.Payload == nil && w.Queue == "" && w.Priority == nil && w.RunAt.IsZero() && w.Patch == (retry.Patch{}) && w.Mode == ""
}

// readChange reads the body of a replay: the run that the caller looked at, and
// what should be different.
func readChange(c echo.Context) (run int, w Change, err error) {
	data, err := readBody(c, maxBody)
	if err != nil {
		return 0, w, err
	}

	var in work.ReplayRequest
	err = decode("", data, &in, func(member, path string, _ json.RawMessage) (err error) {
		switch member {
		case "queue":
			err = job.CheckQueue(*in.Queue)
		case "policy":
			w.Patch, err = wire.DecodePatch(in.Policy)
			err = within(path, err)
		case "mode":
			w.Mode, err = ReadMode(string(*in.Mode))
		}

		return err
	})
	if err := cmp.Or(err, checkRun(in.Run)); err != nil {
		return in.Run, w, err
	}

	w.Payload, w.Priority = in.Payload, in.Priority
	if in.Queue != nil {
		w.Queue = *in.Queue
	}

	now := time.Now()
	var j job.Job

	// The two ways to name the time are one field of a job, as at enqueueing.
	err = times{runAt: momentOf(in.RunAt), delay: endOf(in.Delay, now)}.set(&j, now)
	w.RunAt = j.RunAt

	return in.Run, w, err
}

// Edit compares what is wanted with the original job, which must not be
// redacted. It returns every error, each about one field, so that a form can
// show them all.
func (a *API) Edit(original job.Job, w Change) (e job.Edit, wrong []error) {
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}

	e = job.Edit{RunAt: w.RunAt.UTC().Truncate(time.Microsecond), Priority: w.Priority, Mode: string(w.Mode)}
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

// ReadMode reads a mode of a replay.
func ReadMode(text string) (source.Mode, error) {
	switch m := source.Mode(text); m {
	case source.Once, source.Fresh, source.New:
		return m, nil
	}

	return "", fmt.Errorf("%q is unknown; use once, fresh or new", clip.Text(text, 64))
}

// checkKnown refuses a queue that is not in use: no worker would ever take the
// job, so a typing mistake would hide it.
func (a *API) checkKnown(queue string) error {
	if err := job.CheckQueue(queue); err != nil {
		return err
	}

	if !a.KnowsQueue(queue) {
		return &invalid.Error{Field: "queue", Problem: fmt.Sprintf(
			"%q is unknown: the queue has never had a job, and the configuration does not name it", clip.Text(queue, 64))}
	}

	return nil
}

// editPolicy sets the policy of the next run. An envelope that has become
// readable gets the policy of its type; what the caller says goes on top of
// that.
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
