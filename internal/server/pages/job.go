package pages

import (
	"encoding/json"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/server/web"
	"redrive/web/templates"
)

const previewLimit = 64 << 10 // bytes of a payload on a page

// job is the page /jobs/{id}.
func (p *Pages) job(c echo.Context) error {
	d, err := p.Job(c)
	if errors.Is(err, job.ErrNotFound) {
		return p.gone(c, err)
	}
	if err != nil {
		return err
	}
	return p.jobPage(c, d, false)
}

// jobPage draws a job, redacted unless somebody was allowed to see it.
func (p *Pages) jobPage(c echo.Context, d history.Detail, revealed bool) (err error) {
	j := d.Job
	v := templates.JobPage{
		Frame: p.frame(c, j.Type+" "+j.ID[len(j.ID)-8:], "jobs"), Detail: d,
		DeadLetters: p.Config.DeadLetters(j.Queue), ForwardedTo: p.WebhookHost(j.Queue), NoHandler: !p.Engine.Knows(j.Type), Preview: min(len(j.Payload), previewLimit),
	}
	if since, until, ok := p.Engine.Waiting(j.ID); ok && j.State == job.Active {
		v.Waits, v.StuckSince, v.StuckUntil = true, since.UTC(), until.UTC()
	}
	v.Revealed = revealed
	if v.Trail, err = p.Trail(c, j.ID); err != nil {
		return err
	}
	if v.PausedAt, v.PausedBy, err = p.View.Paused(c.Request().Context(), j.Queue); err != nil {
		return err
	}
	v.Recent, err = p.View.Recent(c.Request().Context(), j.Type, templates.RecentJobs)
	if v.RecentSlow, err = web.Tolerate(err); err != nil {
		return err
	}
	return p.Show(c, http.StatusOK, v.Page())
}

// payload sends the exact bytes that a job was given, to be kept as a file.
func (p *Pages) payload(c echo.Context) error {
	d, err := p.Job(c)
	if err != nil {
		return err
	}
	kind, suffix := "application/octet-stream", ".bin"
	if json.Valid(d.Job.Payload) {
		kind, suffix = "text/plain; charset=utf-8", ".json"
	}
	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+d.Job.ID+suffix+`"`)
	return c.Blob(http.StatusOK, kind, d.Job.Payload)
}

// gone is the page of a job that was removed, or the error of one that nobody
// knows.
func (p *Pages) gone(c echo.Context, missing error) error {
	id, err := web.ParamID(c)
	if err != nil {
		return err
	}
	entries, err := p.Trail(c, id)
	if err != nil || len(entries) == 0 {
		return errors.Join(missing, err)
	}
	return p.Show(c, http.StatusGone, templates.Gone{Frame: p.frame(c, "Gone", "jobs"), ID: id, Entries: entries}.Page())
}

// reveal answers with the job's page, this once with nothing hidden.
func (p *Pages) reveal(c echo.Context) error {
	if err := web.ReadForm(c); err != nil {
		return err
	}
	d, err := p.api.Reveal(c)
	if err != nil {
		return err
	}
	if !web.WantsJSON(c.Request()) {
		return p.jobPage(c, d, true)
	}
	says, err := p.api.Detail(c, d)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, says.Encode())
}
