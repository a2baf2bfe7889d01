package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/view"
	"redrive/web/templates"
)

// wanted is what somebody wants the next run of a job to be like, as it was
// read and before it is compared with the job. Zero fields keep what there is.
type wanted struct {
	payload  []byte
	queue    string
	priority *int
	runAt    time.Time
	patch    retry.Patch
}

func (w wanted) empty() bool {
	return w.payload == nil && w.queue == "" && w.priority == nil && w.runAt.IsZero() && w.patch == (retry.Patch{})
}

// readRedo reads the body of a replay: the run that the caller looked at, and
// what shall be different.
func readRedo(c echo.Context) (run int, w wanted, err error) {
	data, err := body(c, maxBody)
	if err != nil {
		return 0, w, err
	}
	var priority int
	var when times
	then := func(read func(string, json.RawMessage) error, check func() error) func(string, json.RawMessage) error {
		return func(path string, raw json.RawMessage) error {
			if err := read(path, raw); err != nil {
				return err
			}
			return check()
		}
	}
	err = fields{
		"run":      value(&run, "a whole number"),
		"payload":  payload(&w.payload),
		"queue":    then(value(&w.queue, "a string"), func() error { return job.CheckQueue(w.queue) }),
		"priority": then(value(&priority, "a whole number"), func() error { w.priority = &priority; return nil }),
		"run_at":   moment(&when.runAt),
		"delay":    wait(&when.delay),
		"policy":   policy(&w.patch),
	}.read("", data)
	if err == nil {
		err = checkRun(run)
	}
	if err == nil {
		var j job.Job
		err = when.set(&j, time.Now())
		w.runAt = j.RunAt
	}
	return run, w, err
}

// redo compares what is wanted with the job, of which nothing is hidden. Each error is about one field.
func (s *Server) redo(j job.Job, w wanted) (r job.Edit, wrong []error) {
	note := func(err error) {
		if err != nil {
			wrong = append(wrong, err)
		}
	}
	r = job.Edit{RunAt: w.runAt.UTC().Truncate(time.Microsecond), Priority: w.priority}
	var err error
	if w.payload != nil {
		r.Body, r.Paths, err = s.View.Rewrite(j, w.payload)
		note(err)
	}
	if w.queue != "" {
		r.Queue = w.queue
		note(s.checkKnown(w.queue))
	}
	if p := w.priority; p != nil && (*p < -job.MaxPriority || *p > job.MaxPriority) {
		note(&invalid.Error{Field: "priority", Problem: fmt.Sprintf("%d is not between %d and %d", *p, -job.MaxPriority, job.MaxPriority)})
	}
	note(s.redoPolicy(&r, j, w.patch))
	return r, wrong
}

// checkKnown refuses queues that nobody has: a job is not lost by a slip of the
// pen.
func (s *Server) checkKnown(queue string) error {
	if err := job.CheckQueue(queue); err != nil {
		return err
	}
	if !slices.Contains(s.View.QueueNames(), queue) && !slices.Contains(s.Config.Queues(), queue) {
		return &invalid.Error{Field: "queue", Problem: fmt.Sprintf(
			"%q is unknown: no job was ever in it, and the configuration does not mention it", clip.Text(queue, 64))}
	}
	return nil
}

// redoPolicy sets the policy: an envelope that can be read now has that of its
// type, and whatever else is said goes before it.
func (s *Server) redoPolicy(r *job.Edit, j job.Job, patch retry.Patch) error {
	if r.Body != nil && r.Body.Type != j.Type {
		j.Type, j.Timeout = r.Body.Type, 0
		if r.Queue != "" {
			j.Queue = r.Queue
		}
		if err := s.Config.Complete(&j); err != nil {
			return err
		}
		r.Policy, r.Origins, r.Timeout = &j.Policy, j.Origins, j.Timeout
	}
	if patch == (retry.Patch{}) {
		return nil
	}
	policy, origins, err := s.Config.Override(j, patch)
	r.Policy, r.Origins = &policy, origins
	return err
}

// typed is a text as a form sent it: browsers end each line with two
// characters. One that is as the editor showed it changes nothing.
func typed(text string, j job.Job) []byte {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shown, _ := templates.EditorText(j.Payload)
	if text == shown || view.SameJSON([]byte(text), []byte(shown)) {
		return j.Payload
	}
	return []byte(text)
}
