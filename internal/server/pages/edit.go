package pages

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retry"
	"redrive/internal/server/api"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/wire"
	"redrive/web/templates/jobpage"
)

// maxEdit bounds the form of the editor. A browser can need six bytes for each byte
// of the text.
const maxEdit = 6*jobpage.MaxEditor + web.MaxSmall

// edit is the page /jobs/{id}/replay, where the next run can be given another
// payload, queue, priority, time or policy.
func (p *Pages) edit(c echo.Context) error {
	d, err := p.Job(c, 0)
	if err != nil {
		return err
	}

	v, err := p.editor(c, d.Job, nil)
	if err != nil {
		return err
	}

	return p.Show(c, http.StatusOK, v.Page())
}

// replay answers the form that replays a job, unchanged or as the editor says.
func (p *Pages) replay(act api.Act) echo.HandlerFunc {
	return func(c echo.Context) error {
		if err := web.ReadFormOf(c, maxEdit); err != nil {
			return err
		}

		if c.FormValue("changes") != "" { // only the editor has this field
			return p.replayEdited(c)
		}

		return p.act(c, act)
	}
}

// replayEdited answers the form of the editor: it replays the run with changes,
// or says what is wrong and what would be different. The text that was typed is
// kept in every case.
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

	// The page is drawn from the redacted job, the edit is made from the original.
	v, err := p.editor(c, p.View.HideJob(d.Job), c.Request().PostForm)
	if err != nil {
		return err
	}

	edit := p.readEdit(&v, d.Job, c.Request().PostForm)
	switch {
	case len(v.Errors) > 0:
		return p.editorAgain(c, http.StatusUnprocessableEntity, v, nil)
	case c.FormValue("do") == "check":
		v.Checked = true
		return p.editorAgain(c, http.StatusOK, v, nil)
	}

	out, err := p.api.ReplayEdited(c, id, run, edit)

	// Another act came first. The page is drawn again with the text that was typed, and says
	// so.
	if first := new(job.Conflict); errors.As(err, &first) {
		v.Conflict = first.Problem
		return p.editorAgain(c, http.StatusConflict, v, err)
	}

	if err != nil {
		return err
	}

	out.Job = "" // the editor does not lead back to a list, so there is no row to account for

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

	// A program gets the first problem in the order of the form.
	for _, field := range v.Fields() {
		if problem := v.Errors[field]; problem != "" {
			return &invalid.Error{Field: field, Problem: problem}
		}
	}

	return web.JSON(c, http.StatusOK, apitype.Valid{Valid: true, Changed: v.Paths})
}

// editor is the page with the values of its form; a nil form means the values of
// the job.
func (p *Pages) editor(c echo.Context, j job.Job, form url.Values) (jobpage.Edit, error) {
	names, err := p.QueueChoices(c.Request().Context())
	if err != nil {
		return jobpage.Edit{}, err
	}

	v := jobpage.Edit{
		Frame: p.frame(c, "Replay "+j.Type, "jobs"), Job: j, Form: map[string]string{}, Errors: map[string]string{},
		Policy: j.Policy, Queues: names, Uses: p.policyNames(),
	}
	v.Was, v.Fixed = jobpage.EditorText(j.Payload)

	// Not every source takes another payload than the one that it has.
	if j.Source != "" {
		v.Origin = p.api.SourceOf(j)
		if v.Fixed == "" && (v.Origin == nil || !v.Origin.Profile.Edits) {
			v.Fixed = "The payload cannot be changed at this source. A replay keeps every byte."
		}
	}

	// How many values of the payload are redacted, and what stands in their place.
	v.Locked, v.Token = strings.Count(v.Was, redact.Hidden), redact.Hidden
	v.Form["payload"], v.Form["queue"], v.Form["priority"] = v.Was, j.Queue, strconv.Itoa(j.Priority)

	// What a person has typed replaces the values of the job. Browsers send line ends as
	// "\r\n".
	for _, field := range v.Fields() {
		if form.Has(field) {
			v.Form[field] = strings.ToValidUTF8(strings.ReplaceAll(form.Get(field), "\r\n", "\n"), "\uFFFD")
		}
	}

	v.Will = v.Form["payload"]

	return v, nil
}

// policyNames are the policies that a replay can name.
func (p *Pages) policyNames() []string {
	names := retry.Presets()
	for _, named := range p.Config.NamedPolicies() {
		names = append(names, named.Name)
	}

	return names
}

// readEdit reads the form into an edit, and notes what is wrong beside each
// field. The edit is made from the original job; only its redacted form goes
// back to the page.
func (p *Pages) readEdit(v *jobpage.Edit, j job.Job, form url.Values) job.Edit {
	q := formFields{values: filledIn(form), wrong: v.Errors}

	w := api.Change{Queue: strings.TrimSpace(form.Get("queue")), Patch: q.patch()}
	w.Patch.Use = strings.TrimSpace(form.Get("use"))
	if action := retry.Action(form.Get("on_exhaustion")); action != "" {
		w.Patch.OnExhaustion = &action
	}

	// An empty field is nil, which keeps what the job has.
	w.Priority = read(q, "priority", wholeNumber)
	if mode := read(q, "mode", api.ReadMode); mode != nil {
		w.Mode = *mode
	}

	w.RunAt = startOf(q, time.Now())

	// A payload that the page showed as fixed is left as it is, whatever the form sends.
	if form.Has("payload") && v.Fixed == "" {
		w.Payload = typed(form.Get("payload"), v.Job)
	}

	// What is wrong with a value is noted beside its field, like what cannot be read at all.
	edit, wrong := p.api.Edit(j, w)
	for _, err := range wrong {
		q.noteField(err)
	}

	v.Paths, v.RunAt = edit.Paths, edit.RunAt
	if edit.Policy != nil {
		v.Policy = *edit.Policy
	}
	// The page compares the old payload with the new one as it will be stored, in the
	// layout of the original, and redacted like everything on the page.
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

// filledIn leaves out the empty fields of a form: they keep what the job has.
func filledIn(form url.Values) url.Values {
	all := url.Values{}
	for name, values := range form {
		if len(values) > 0 && strings.TrimSpace(values[0]) != "" {
			all[name] = values
		}
	}

	return all
}

// startOf reads when the next run may begin: after a delay, at a time in UTC, or
// at once.
func startOf(q formFields, now time.Time) time.Time {
	delay, at := read(q, "delay", wire.ParseDuration), read(q, "run_at", api.LocalMoment)
	switch {
	case delay != nil && at != nil:
		q.wrong["delay"] = "cannot be used together with a time; fill in one of them"
	case delay != nil:
		return now.Add(*delay)
	case at != nil:
		return *at
	}

	return time.Time{}
}

// typed is the text of the editor. Browsers end each line with two characters. A
// text that says the same as the one that was shown changes nothing, so that a
// visit to the editor alone never rewrites a payload.
func typed(text string, j job.Job) []byte {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	shown, _ := jobpage.EditorText(j.Payload)
	if text == shown || view.SameJSON([]byte(text), []byte(shown)) {
		return j.Payload
	}

	return []byte(text)
}
