package pages

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/redact"
	"redrive/internal/retention"
	"redrive/internal/retry"
	"redrive/internal/server/api"
	"redrive/internal/server/view"
	"redrive/internal/server/web"
	"redrive/internal/wire"
	"redrive/web/templates"
	"redrive/web/templates/adminpage"
	"redrive/web/templates/jobpage"
	"redrive/web/templates/listpage"
)

// jobs is the page /jobs. The search field of every page leads here, with an id
// or with a filter.
func (p *Pages) jobs(c echo.Context) error {
	values := c.QueryParams()
	if id, ok := pastedID(values); ok {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}

	v := listpage.Jobs{Frame: p.frame(c, "Jobs", "jobs"), After: values.Get("after")}
	filter, after, wrong := web.Query(values)
	v.Filter, v.Errors = filter, byField(wrong)
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, &v.Frame, filter, v.Errors))

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	into(&r, &v.Chart)(p.chart(c.Request().Context(), time.Now(), filter))
	inTime(&r, &v.List)(p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit))
	into(&r, &v.Hits)(p.View.Hits(c.Request().Context(), filter, v.List.Jobs))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// pastedID is the id of a job that stands alone in the search field of a list. It
// leads to the job, since a filter would find at most that one.
func pastedID(values url.Values) (string, bool) {
	id, err := job.ParseID(strings.TrimSpace(values.Get("q")))
	return id, err == nil
}

// byField arranges the errors of a filter by its fields, so that each is shown
// beside its own.
func byField(wrong []*invalid.Error) map[string]string {
	all := map[string]string{}
	for _, w := range wrong {
		all[w.Field] = w.Problem
	}

	return all
}

// deadLetters is the page /dead-letters. Above the list it shows the jobs whose
// dead letter was refused: they are in no list of letters, and wait for a person.
func (p *Pages) deadLetters(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	if id, ok := pastedID(values); ok {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}

	v := listpage.DeadLetters{Frame: p.frame(c, "Dead letters", "dead-letters"), After: values.Get("after")}
	f, after, wrong := web.DeadLettersQuery(values)
	v.Filter, v.Errors = f, byField(wrong)
	dead := f
	dead.Status = job.StatusDeadLetter
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, &v.Frame, dead, v.Errors))
	into(&r, &v.DeadLetterUsage)(p.letterUsage(ctx, now, v.Snapshot))

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	v.Refused = p.refused(ctx, &r, f)
	inTime(&r, &v.List)(p.View.DeadLetters(ctx, f, after, web.PageLimit))

	jobs := make([]job.Job, len(v.List.DeadLetters))
	for i, l := range v.List.DeadLetters {
		jobs[i] = l.Job
	}

	into(&r, &v.Hits)(p.View.Hits(ctx, f, jobs))

	var queues []string
	for _, refused := range v.Refused {
		queues = append(queues, refused.Job.Queue)
	}

	v.Configs = p.queueConfigs(queues...)
	into(&r, &v.Groups)(p.View.GroupsOf(ctx, v.List.DeadLetters))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// trash is the page /trash. A job stays there until it is purged, and until then
// it can be restored.
func (p *Pages) trash(c echo.Context) error {
	if id, ok := pastedID(c.QueryParams()); ok {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}

	v := listpage.Trash{Frame: p.frame(c, "Trash", "trash"), Keeps: p.Config.Retention().Trash, After: c.QueryParam("after")}
	filter, after, wrong := web.TrashQuery(c.QueryParams())
	v.Filter, v.Errors = filter, byField(wrong)
	var r reads
	into(&r, &v.Query)(p.queryAbove(c, &v.Frame, filter, v.Errors))

	if r.err == nil && len(wrong) > 0 {
		return p.Show(c, http.StatusBadRequest, v.Page())
	}

	inTime(&r, &v.List)(p.View.Jobs(c.Request().Context(), filter, after, web.PageLimit))
	into(&r, &v.Hits)(p.View.Hits(c.Request().Context(), filter, v.List.Jobs))
	into(&r, &v.Was)(p.View.Trashed(c.Request().Context(), v.List.Jobs))
	v.Slow = r.slow

	return p.show(c, r, v.Page())
}

// queryAbove is the search and its facets above a list, as of the totals of the frame,
// which it reads again. A query that cannot be read stays as it was typed.
func (p *Pages) queryAbove(c echo.Context, frame *templates.Frame, f filter.Filter, wrong map[string]string) (listpage.Query, error) {
	var r reads

	ctx, v := c.Request().Context(), listpage.Query{Queues: p.View.QueueNames()}
	if wrong["q"] != "" {
		v.Typed = c.QueryParam("q")
	}

	into(&r, &v.Tally)(p.tally(ctx, frame, f, len(wrong) == 0))
	frame.Now = time.Now().UTC() // all that was counted is from before, so that a selection of all has that number

	into(&r, &v.Dead)(p.View.Facets(ctx, filter.Filter{Status: job.StatusDeadLetter}))

	if f.Searches() {
		v.Indexing = p.View.Reindexing()
		into(&r, &v.Lag)(p.View.SearchLag(ctx))
	}

	return v, r.err
}

// What is not counted in advance is counted while the page is read, as long as that
// costs little.
const (
	tallyLimit = 10_000
	tallyTime  = 100 * time.Millisecond
)

// tally counts the jobs of a list, if its filter can be used.
func (p *Pages) tally(ctx context.Context, frame *templates.Frame, f filter.Filter, usable bool) (filter.Tally, error) {
	var known filter.Tally

	var complete bool
	err := p.steady(frame, func() (err error) {
		known, complete, err = p.View.Known(ctx, f)
		return err
	})
	if complete || err != nil {
		return known, err
	}

	known.More = true // until it is counted
	if !usable {
		return known, nil
	}

	ctx, cancel := context.WithTimeout(ctx, tallyTime)
	defer cancel()

	t, slow, err := web.InTime(p.View.Tally(ctx, f, tallyLimit))
	if slow || err != nil {
		return known, err
	}

	if !t.Whole {
		t.Facets = known.Facets
	}

	return t, nil
}

// Bytes of a payload on a page.
const (
	previewLimit = 12 << 10 // with so much noise the first paint takes 38 kB
	moreLimit    = 64 << 10 // when the reader asks for more, or for what is hidden
)

// job is the page /jobs/{id}. A job that was removed may still be in the audit
// log; then the page says so.
func (p *Pages) job(c echo.Context) error {
	d, err := p.Job(c, 0)
	if errors.Is(err, job.ErrNotFound) {
		return p.gone(c, err)
	}

	if err != nil {
		return err
	}

	if c.QueryParam("payload") == "more" {
		return p.jobPage(c, d, moreLimit, false)
	}

	return p.jobPage(c, d, previewLimit, false)
}

// attempts is the page /jobs/{id}/attempts, with attempts that the page of the job has no
// space for.
func (p *Pages) attempts(c echo.Context) error {
	before, err := web.Number(c, "after")
	if err != nil {
		return err
	}

	d, err := p.Job(c, before)
	if err != nil {
		return err
	}

	v := jobpage.View{Frame: p.frame(c, "Attempts "+d.Job.ID[len(d.Job.ID)-8:], "jobs"), Detail: d}

	return p.Show(c, http.StatusOK, v.EarlierAttempts())
}

// jobPage draws a job with so much of its payload. It is redacted unless its reader
// was allowed to reveal it.
func (p *Pages) jobPage(c echo.Context, d history.Detail, preview int, revealed bool) error {
	j := d.Job
	v := jobpage.View{
		Frame: p.frame(c, j.Type+" "+j.ID[len(j.ID)-8:], "jobs"), Detail: d,
		KeepsDeadLetters: p.Config.DeadLetters(j.Queue), ForwardedTo: p.WebhookHost(j.Queue), NoHandler: !p.Engine.Knows(j.Type),
		Origin:  p.api.SourceOf(j),
		Preview: min(len(j.Payload), preview), More: preview < moreLimit,
	}
	if since, until, ok := p.Engine.Waiting(j.ID); ok && j.State == job.Active {
		v.Waits, v.StuckSince, v.StuckUntil = true, since.UTC(), until.UTC()
	}

	var r reads
	into(&r, &v.Trail)(p.Trail(c, j.ID))
	inTime(&r, &v.Recent)(p.View.Recent(c.Request().Context(), j.Type, jobpage.RecentJobs))
	v.Revealed, v.RecentSlow = revealed, r.slow
	var err error
	v.PausedAt, v.PausedBy, err = p.View.Paused(c.Request().Context(), j.Queue)
	r.err = cmp.Or(r.err, err)

	return p.show(c, r, v.Page())
}

// payload sends the payload as a file: the bytes that the job was given, apart
// from what is redacted.
func (p *Pages) payload(c echo.Context) error {
	d, err := p.Job(c, 0)
	if err != nil {
		return err
	}

	return web.Download(c, d.Job.ID, "text/plain; charset=utf-8", d.Job.Payload)
}

// gone is the page of a job that was removed and of which retention or the audit
// log still knows something. Any other id is an error.
func (p *Pages) gone(c echo.Context, missing error) error {
	id, err := web.ParamID(c)
	if err != nil {
		return err
	}

	entries, err := p.Trail(c, id)
	removed, known := errors.AsType[*retention.Removed](missing)
	if err != nil || len(entries) == 0 && !known {
		return errors.Join(missing, err)
	}

	v := adminpage.Gone{Frame: p.frame(c, "Gone", "jobs"), ID: id, Entries: entries, Removed: removed}

	return p.Show(c, http.StatusGone, v.Page())
}

// reveal answers with the page of the job, this once with nothing hidden. It is
// a POST because it writes into the audit log, and so that no link and no
// history of a browser repeats it.
func (p *Pages) reveal(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}

	d, err := p.api.Reveal(c)
	if err != nil {
		return err
	}

	if !web.WantsJSON(c.Request()) {
		return p.jobPage(c, d, moreLimit, true)
	}

	says, err := p.api.Detail(c, d)
	if err != nil {
		return err
	}

	return web.JSON(c, http.StatusOK, says)
}

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

	return p.Show(c, http.StatusOK, p.editor(c, d.Job, nil).Page())
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

	for _, field := range v.Fields() {
		if problem := v.Errors[field]; problem != "" {
			return &invalid.Error{Field: field, Problem: problem}
		}
	}

	return web.JSON(c, http.StatusOK, apitype.Valid{Valid: true, Changed: v.Paths})
}

// editor is the page with the values of its form; a nil form means the values of
// the job.
func (p *Pages) editor(c echo.Context, j job.Job, form url.Values) jobpage.Edit {
	v := jobpage.Edit{
		Frame: p.frame(c, "Replay "+j.Type, "jobs"), Job: j, Form: map[string]string{}, Errors: map[string]string{},
		Policy: j.Policy, Queues: p.QueueChoices(), Uses: p.policyNames(),
	}
	v.Was, v.Fixed = jobpage.EditorText(j.Payload)
	if j.Source != "" {
		v.Origin = p.api.SourceOf(j)
		if v.Fixed == "" && (v.Origin == nil || !v.Origin.Profile.Edits) {
			v.Fixed = "The payload cannot be changed at this source. A replay keeps every byte."
		}
	}

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

	w.Priority = read(q, "priority", wholeNumber)
	if mode := read(q, "mode", api.ReadMode); mode != nil {
		w.Mode = *mode
	}

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
