package pages

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
	"redrive/internal/server/api"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/web/templates/jobpage"
)

// maxEdit bounds the form that replays with changes: the editor's text can take
// six bytes for each of its own.
const maxEdit = 6*jobpage.MaxEditor + web.MaxSmall

// edit is the page /jobs/{id}/replay.
func (p *Pages) edit(c echo.Context) error {
	d, err := p.Job(c)
	if err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, p.editor(c, d.Job, nil).Page())
}

// replay answers the form that replays a job, as it was or as its editor says.
func (p *Pages) replay(act api.Act) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := web.ReadFormOf(c, maxEdit); err != nil {
			return err
		}
		if c.FormValue("changes") != "" {
			return p.replayEdited(c)
		}
		return p.act(c, act)
	}
}

// replayEdited is the form of the editor: it replays the run with changes, or says
// what would be wrong and what would be different. Whatever comes of it, what was
// typed stays.
func (p *Pages) replayEdited(c echo.Context) error {
	id, err := web.ParamID(c)
	if err != nil {
		return err
	}
	run, err := api.ReadRun(c)
	if err != nil {
		return err
	}
	d, err := p.View.Original(c.Request().Context(), id)
	if err != nil {
		return err
	}
	v := p.editor(c, p.View.HideJob(d.Job), c.Request().PostForm)
	edit := p.readEdit(&v, d.Job, c.Request().PostForm)
	switch {
	case len(v.Errors) > 0:
		return p.editorAgain(c, http.StatusUnprocessableEntity, v, nil)
	case c.FormValue("do") == "check":
		v.Checked = true
		return p.editorAgain(c, http.StatusOK, v, nil)
	}
	out, err := p.api.ReplayEdited(c, id, run, edit)
	if first := new(job.Conflict); errors.As(err, &first) {
		v.Conflict = first.Problem
		return p.editorAgain(c, http.StatusConflict, v, err)
	}
	if err != nil {
		return err
	}
	out.Job = "" // the editor does not come back to a list that would have to say what became of it
	return done(c, out)
}

// editorAgain shows the page again, or tells a program what is wrong.
func (p *Pages) editorAgain(c echo.Context, status int, v jobpage.Edit, err error) error {
	if !web.WantsJSON(c.Request()) {
		return p.Show(c, status, v.Page())
	}
	if err != nil {
		return err
	}
	for _, field := range v.Fields() {
		if problem := v.Errors[field]; problem != "" {
			return &invalid.Error{Field: field, Problem: problem}
		}
	}
	return c.JSONBlob(http.StatusOK, web.Object{"valid", true, "changed", v.Paths}.Encode())
}

// editor is the page with what stands in its form: nil for what the job has.
func (p *Pages) editor(c echo.Context, j job.Job, form url.Values) jobpage.Edit {
	v := jobpage.Edit{
		Frame: p.frame(c, "Replay "+j.Type, "jobs"), Job: j, Form: map[string]string{}, Errors: map[string]string{},
		Policy: j.Policy, Queues: p.QueueNames(), Uses: p.policyNames(),
	}
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
func (p *Pages) policyNames() []string {
	names := retry.Presets()
	for _, named := range p.Config.NamedPolicies() {
		names = append(names, named.Name)
	}
	return names
}

// readEdit reads the form into an edit, and notes what is wrong beside its
// field.
func (p *Pages) readEdit(v *jobpage.Edit, j job.Job, form url.Values) job.Edit {
	q := whatIf{values: said(form), wrong: v.Errors}
	w := api.Change{Queue: strings.TrimSpace(form.Get("queue")), Patch: q.patch()}
	w.Patch.Use = strings.TrimSpace(form.Get("use"))
	if action := retry.Action(form.Get("on_exhaustion")); action != "" {
		w.Patch.OnExhaustion = &action
	}
	w.Priority = read(q, "priority", wholeNumber)
	w.RunAt = startOf(q, time.Now())
	if form.Has("payload") && v.Fixed == "" {
		w.Payload = typed(form.Get("payload"), v.Job)
	}
	edit, wrong := p.api.Edit(j, w)
	for _, err := range wrong {
		q.noteField(err)
	}
	v.Paths, v.RunAt = edit.Paths, edit.RunAt
	if edit.Policy != nil {
		v.Policy = *edit.Policy
	}
	if edit.Body != nil {
		v.Type = edit.Body.Type
		if text, fixed := jobpage.EditorText(p.View.HideBody(j.Type, *edit.Body).Payload); fixed == "" && edit.Body.Type == j.Type {
			v.Will = text
		}
	} else if v.Errors["payload"] == "" {
		v.Will = v.Was
	}
	return edit
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

// typed is a text as a form sent it: browsers end each line with two
// characters. One that is as the editor showed it changes nothing.
func typed(text string, j job.Job) []byte {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shown, _ := jobpage.EditorText(j.Payload)
	if text == shown || view.SameJSON([]byte(text), []byte(shown)) {
		return j.Payload
	}
	return []byte(text)
}
