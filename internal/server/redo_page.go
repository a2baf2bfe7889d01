package server

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
	"redrive/web/templates/jobpage"
)

// maxRedo bounds the form that replays with changes: the editor's text can take
// six bytes for each of its own.
const maxRedo = 6*jobpage.MaxEditor + maxSmall

// redoPage is the page /jobs/{id}/replay.
func (s *Server) redoPage(c echo.Context) error {
	d, err := s.detail(c)
	if err != nil {
		return err
	}
	return s.page(c, http.StatusOK, s.redoView(c, d.Job, nil).Page())
}

// redoForm is the form of that page: it replays the run with changes, or says
// what would be wrong and what would be different. Whatever comes of it, what
// was typed stays.
func (s *Server) redoForm(c echo.Context) error {
	id, err := paramID(c)
	if err != nil {
		return err
	}
	run, err := formRun(c)
	if err != nil {
		return err
	}
	d, err := s.Store.original(c.Request().Context(), id)
	if err != nil {
		return err
	}
	v := s.redoView(c, s.Store.job(d.Job), c.Request().PostForm)
	redo := s.readRedoForm(&v, d.Job, c.Request().PostForm)
	switch {
	case len(v.Errors) > 0:
		return s.redoAnswer(c, http.StatusUnprocessableEntity, v, nil)
	case c.FormValue("do") == "check":
		v.Checked = true
		return s.redoAnswer(c, http.StatusOK, v, nil)
	}
	j, err := s.Store.ReplayWith(c.Request().Context(), time.Now(), id, run, redo, s.actor("dashboard", c))
	if first := new(job.Conflict); errors.As(err, &first) {
		v.Conflict = first.Problem
		return s.redoAnswer(c, http.StatusConflict, v, err)
	}
	if err != nil {
		return err
	}
	return done(c, fmt.Sprintf("/jobs/%s#run-%d", id, j.Run), "job", encodeJob(j, true),
		"text", encode(fmt.Sprintf("Replayed, run %d · %s", j.Run, j.Status())))
}

// redoAnswer shows the page again, or tells a program what is wrong.
func (s *Server) redoAnswer(c echo.Context, status int, v jobpage.Edit, err error) error {
	if !wantsJSON(c.Request()) {
		return s.page(c, status, v.Page())
	}
	if err != nil {
		return err
	}
	for _, field := range v.Fields() {
		if problem := v.Errors[field]; problem != "" {
			return &invalid.Error{Field: field, Problem: problem}
		}
	}
	return c.JSONBlob(http.StatusOK, object("valid", []byte("true"), "changed", encode(v.Paths)))
}

// redoView is the page with what stands in its form: nil for what the job has.
func (s *Server) redoView(c echo.Context, j job.Job, form url.Values) jobpage.Edit {
	v := jobpage.Edit{
		Frame: s.frame(c, "Replay "+j.Type, "jobs"), Job: j, Form: map[string]string{}, Errors: map[string]string{},
		Policy: j.Policy, Uses: s.policyNames(),
	}
	v.Queues = slices.Compact(slices.Sorted(slices.Values(append(s.Config.Queues(), s.Store.QueueNames()...))))
	v.Was, v.Fixed = jobpage.EditorText(j.Payload)
	v.Locked, v.Token = strings.Count(v.Was, redact.Hidden), redact.Hidden
	v.Form["payload"], v.Form["queue"], v.Form["priority"] = v.Was, j.Queue, strconv.Itoa(j.Priority)
	for _, field := range v.Fields() {
		if form.Has(field) {
			v.Form[field] = strings.ToValidUTF8(strings.ReplaceAll(form.Get(field), "\r\n", "\n"), "\uFFFD")
		}
	}
	v.Will = v.Form["payload"]
	return v
}

// policyNames are the policies that a replay can name.
func (s *Server) policyNames() []string {
	names := retry.Presets()
	for _, named := range s.Config.NamedPolicies() {
		names = append(names, named.Name)
	}
	return names
}

// readRedoForm reads the form into a change, and notes what is wrong beside its
// field.
func (s *Server) readRedoForm(v *jobpage.Edit, j job.Job, form url.Values) job.Edit {
	q := whatIf{values: said(form), wrong: v.Errors}
	w := wanted{queue: strings.TrimSpace(form.Get("queue")), patch: q.patch()}
	w.patch.Use = strings.TrimSpace(form.Get("use"))
	if action := retry.Action(form.Get("on_exhaustion")); action != "" {
		w.patch.OnExhaustion = &action
	}
	w.priority = read(q, "priority", wholeNumber)
	w.runAt = startOf(q, time.Now())
	if form.Has("payload") && v.Fixed == "" {
		w.payload = typed(form.Get("payload"), v.Job)
	}
	redo, wrong := s.redo(j, w)
	for _, err := range wrong {
		q.noteField(err)
	}
	v.Paths, v.RunAt = redo.Paths, redo.RunAt
	if redo.Policy != nil {
		v.Policy = *redo.Policy
	}
	if redo.Body != nil {
		v.Type = redo.Body.Type
		if text, fixed := jobpage.EditorText(s.Store.body(j.Type, *redo.Body).Payload); fixed == "" && redo.Body.Type == j.Type {
			v.Will = text
		}
	} else if v.Errors["payload"] == "" {
		v.Will = v.Was
	}
	return redo
}

// said leaves out the fields of a form that are empty: they keep what there is.
func said(form url.Values) url.Values {
	all := url.Values{}
	for name, values := range form {
		if len(values) > 0 && strings.TrimSpace(values[0]) != "" {
			all[name] = values
		}
	}
	return all
}

// startOf reads when the next run may begin: after a while, at a time in UTC,
// or at once.
func startOf(q whatIf, now time.Time) time.Time {
	delay, at := read(q, "delay", spokenDuration), read(q, "run_at", localMoment)
	switch {
	case delay != nil && at != nil:
		q.wrong["delay"] = "cannot stand beside a time; fill one of them"
	case delay != nil:
		return now.Add(*delay)
	case at != nil:
		return *at
	}
	return time.Time{}
}

// localMoment reads a time as a browser's field for times writes it, as UTC, or
// as the API does.
func localMoment(s string) (time.Time, error) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02 15:04:05", time.RFC3339} {
		if t, err := time.Parse(layout, s); err == nil && t.Year() >= 0 && t.Year() <= 9999 {
			return t.UTC(), nil
		}
	}
	return time.Time{}, fmt.Errorf("%q is not a time as 2026-01-31 15:04", clip.Text(s, 32))
}
