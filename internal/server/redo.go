package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/envelope"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
	"redrive/web/templates/jobpage"
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
		r.Body, r.Paths, err = s.rewrite(j, w.payload)
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
	if !slices.Contains(s.Store.QueueNames(), queue) && !slices.Contains(s.Config.Queues(), queue) {
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

// rewrite is the body of a job with a payload that somebody edited as it was
// shown, and where it differs from that; nil when it does not. What was hidden is
// put back. It is never compared with what was typed in its place: that differs
// from its mask, whether it was guessed or not.
func (s *Server) rewrite(j job.Job, edited []byte) (*job.Body, []string, error) {
	if problem := notJSON(edited); problem != "" && json.Valid(j.Payload) {
		return nil, nil, &invalid.Error{Field: "payload", Problem: problem}
	}
	redactor := s.Store.redactor.For(j.Type)
	shown := redactor.Payload(j.Payload)
	if bytes.Equal(compact(edited), compact(shown)) {
		return nil, nil, nil
	}
	merged, err := redactor.Merge(edited, j.Payload)
	if err != nil {
		return nil, nil, &invalid.Error{Field: "payload", Problem: err.Error()}
	}
	b, err := rewrite(j, merged)
	if err != nil {
		return nil, nil, err
	}
	if b.Type != j.Type {
		return b, []string{"$"}, nil
	}
	return b, changedPaths(shown, edited), nil
}

// rewrite is the body of a job with another payload. An envelope gets the payload
// as its data; one that could not be read is read again.
func rewrite(j job.Job, edited []byte) (*job.Body, error) {
	wrong := func(problem string) error { return &invalid.Error{Field: "payload", Problem: problem} }
	b := j.Body()
	isJSON := json.Valid(j.Payload)
	switch {
	case len(edited) > job.MaxPayload:
		return nil, wrong(fmt.Sprintf("has %d bytes, at most %d are kept", len(edited), job.MaxPayload))
	case j.Type == envelope.Unread && j.Envelope != nil:
		e, poison := envelope.Parse(edited)
		if poison != nil {
			return nil, wrong("is still no envelope that can be read: " + poison.Problem)
		}
		return &job.Body{Type: e.URN, TraceID: e.TraceID, MessageID: e.ID, Meta: e.Meta, Payload: e.Data, Envelope: edited}, nil
	case isJSON || j.Envelope != nil:
		if problem := notJSON(edited); problem != "" {
			return nil, wrong(problem)
		}
		edited = laidOut(edited, j.Payload)
	}
	b.Payload = edited
	if j.Envelope != nil {
		given, ok := envelope.WithData(j.Envelope, edited)
		if !ok {
			return nil, wrong("cannot be changed: the envelope that it came in has no place for it")
		}
		e, poison := envelope.Parse(given)
		if poison != nil {
			return nil, wrong("does not fit into the envelope: " + poison.Problem)
		}
		b.Payload, b.Envelope = e.Data, given
	}
	return &b, nil
}

// laidOut is JSON in the layout of the original: in one line if that was, and
// byte for byte the original where only the layout differs. Nothing but white
// space between tokens is ever touched.
func laidOut(edited, original []byte) []byte {
	one, was := compact(edited), compact(original)
	switch {
	case bytes.Equal(one, was):
		return original
	case bytes.Equal(was, original):
		return one
	}
	return edited
}

func compact(data []byte) []byte {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return data
	}
	return b.Bytes()
}

// notJSON says why a text is not one JSON value, and in which line, or nothing.
func notJSON(text []byte) string {
	if !utf8.Valid(text) {
		return "is not valid UTF-8"
	}
	if rawjson.Depth(text) > job.MaxDepth {
		return fmt.Sprintf("is nested deeper than %d levels", job.MaxDepth)
	}
	err := json.Unmarshal(text, new(json.RawMessage))
	if at := new(json.SyntaxError); errors.As(err, &at) {
		line := 1 + bytes.Count(text[:min(max(0, int(at.Offset)-1), len(text))], []byte("\n"))
		return fmt.Sprintf("is not JSON: %v, in line %d", err, line)
	}
	if err != nil {
		return "is not JSON: " + err.Error()
	}
	if half := rawjson.HalfPair(text); half != "" {
		return fmt.Sprintf("holds half of a surrogate pair, %s, which is no character", half)
	}
	return ""
}

// typed is a text as a form sent it: browsers end each line with two
// characters. One that is as the editor showed it changes nothing.
func typed(text string, j job.Job) []byte {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shown, _ := jobpage.EditorText(j.Payload)
	if text == shown || bytes.Equal(compact([]byte(text)), compact([]byte(shown))) {
		return j.Payload
	}
	return []byte(text)
}
