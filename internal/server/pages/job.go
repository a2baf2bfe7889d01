package pages

import (
	"cmp"
	"errors"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retention"
	"redrive/internal/server/web"
	"redrive/web/templates/adminpage"
	"redrive/web/templates/jobpage"
)

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
