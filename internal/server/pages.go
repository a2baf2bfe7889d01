package server

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/a-h/templ"
	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/web/static"
	"redrive/web/templates"
	"redrive/web/templates/jobpage"
	"redrive/web/templates/listpage"
	"redrive/web/templates/queuepage"
)

const (
	failingLimit = 12       // rows of the overview
	refusedLimit = 20       // jobs whose dead letter was refused, above a list
	previewLimit = 64 << 10 // bytes of a payload on a page
)

// overview is the page /.
func (s *Server) overview(c echo.Context) error {
	ctx, now := c.Request().Context(), time.Now()
	v := templates.Overview{Frame: s.frame(c, "Overview", "overview")}
	var err error
	if v.LastHour, err = s.Store.LastHour(ctx, now); err != nil {
		return err
	}
	if v.Queues, err = s.Store.Queues(ctx, now); err != nil {
		return err
	}
	if v.Reasons, err = s.Store.Reasons(ctx); err != nil {
		return err
	}
	if v.Letters, err = s.letterRoom(ctx, now); err != nil {
		return err
	}
	if v.Operations, err = s.openOperations(ctx); err != nil {
		return err
	}
	v.Groups, err = s.Store.TopGroups(ctx, now, causesLimit)
	slowGroups, err := tolerate(err)
	if err != nil {
		return err
	}
	var slowFailing, slowRefused bool
	if v.Failing, slowFailing, err = s.failing(ctx, ""); err != nil {
		return err
	}
	if v.Refused, slowRefused, err = s.refused(ctx, filter.Filter{}); err != nil {
		return err
	}
	v.Slow = slowGroups || slowFailing || slowRefused
	v.FirstRun = v.Snapshot.Depths.Jobs() == 0 && v.Snapshot.Totals == job.Totals{}
	return s.page(c, http.StatusOK, v.Page())
}

// failing are the newest jobs that wait for a retry or ended without success, of
// one queue or of all.
func (s *Server) failing(ctx context.Context, queue string) (all []job.Job, slow bool, err error) {
	for _, state := range []job.State{job.Retryable, job.Discarded} {
		page, err := s.Store.Jobs(ctx, filter.Filter{Status: job.Status(state), Queue: queue}, filter.Cursor{}, failingLimit)
		late, err := tolerate(err)
		if err != nil {
			return nil, false, err
		}
		all, slow = append(all, page.Jobs...), slow || late
	}
	slices.SortFunc(all, func(a, b job.Job) int {
		return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.Seq, a.Seq))
	})
	return all[:min(len(all), failingLimit)], slow, nil
}

// refused are the newest jobs whose dead letter was refused, and why it was.
func (s *Server) refused(ctx context.Context, f filter.Filter) (all []templates.Refused, slow bool, err error) {
	if s.Store.Snapshot().Depths[job.StatusDLQFailed] == 0 {
		return nil, false, nil
	}
	f.Status = job.StatusDLQFailed
	page, err := s.Store.Jobs(ctx, f, filter.Cursor{}, refusedLimit)
	if slow, err = tolerate(err); err != nil || len(page.Jobs) == 0 {
		return nil, slow, err
	}
	problems, err := s.Store.Problems(ctx, page.Jobs)
	for _, j := range page.Jobs {
		all = append(all, templates.Refused{Job: j, Problem: problems[j.Seq]})
	}
	return all, slow, err
}

// letterRoom is how full the dead-letter queue is.
func (s *Server) letterRoom(ctx context.Context, now time.Time) (templates.LetterUsage, error) {
	f, err := s.Store.Fill(ctx, now)
	return templates.LetterUsage{Usage: f, Limits: s.Config.Retention()}, err
}

// tolerate turns the end of a list's deadline into a fact about the page: what
// was found is shown.
func tolerate(err error) (slow bool, _ error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// jobs is the page /jobs. The search field of every page leads here, with an
// id or with a filter.
func (s *Server) jobs(c echo.Context) error {
	values := c.QueryParams()
	if id, err := job.ParseID(strings.TrimSpace(values.Get("q"))); err == nil {
		return c.Redirect(http.StatusSeeOther, "/jobs/"+id)
	}
	v := listpage.Jobs{Frame: s.frame(c, "Jobs", "jobs"), After: values.Get("after")}
	filter, after, wrong := query(values)
	v.Filter, v.Errors, v.Search = filter, byField(wrong), values.Get("q")
	var err error
	if v.Query, err = s.queryAbove(c, filter, v.Errors); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return s.page(c, http.StatusBadRequest, v.Page())
	}
	if v.Chart, err = s.chart(c.Request().Context(), time.Now(), filter); err != nil {
		return err
	}
	v.List, err = s.Store.Jobs(c.Request().Context(), filter, after, pageLimit)
	if v.Slow, err = tolerate(err); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// byField arranges what is wrong with a filter beside its fields.
func byField(wrong []*invalid.Error) map[string]string {
	all := map[string]string{}
	for _, w := range wrong {
		all[w.Field] = w.Problem
	}
	return all
}

// deadLetters is the page /dead-letters.
func (s *Server) deadLetters(c echo.Context) error {
	ctx, now, values := c.Request().Context(), time.Now(), c.QueryParams()
	v := listpage.DeadLetters{Frame: s.frame(c, "Dead letters", "dead-letters"), After: values.Get("after")}
	f, after, wrong := lettersQuery(values)
	v.Filter, v.Errors, v.Search = f, byField(wrong), values.Get("q")
	dead := f
	dead.Status = job.StatusDeadLetter
	var err error
	if v.Query, err = s.queryAbove(c, dead, v.Errors); err != nil {
		return err
	}
	if v.Letters, err = s.letterRoom(ctx, now); err != nil {
		return err
	}
	v.Configs = s.queueConfigs(s.Store.QueueNames()...)
	if len(wrong) > 0 {
		return s.page(c, http.StatusBadRequest, v.Page())
	}
	var slow bool
	if v.Refused, slow, err = s.refused(ctx, filter.Filter{Queue: f.Queue, Type: f.Type}); err != nil {
		return err
	}
	v.List, err = s.Store.Letters(ctx, f, after, pageLimit)
	if v.Slow, err = tolerate(err); err != nil {
		return err
	}
	v.Slow = v.Slow || slow
	if v.Groups, err = s.Store.GroupsOf(ctx, v.List.Letters); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// queues is the page /queues. It shows the queues that exist and those that
// are only configured.
func (s *Server) queues(c echo.Context) error {
	ctx, now := c.Request().Context(), time.Now()
	v := queuepage.List{Frame: s.frame(c, "Queues", "queues")}
	var err error
	if v.Queues, err = s.Store.Queues(ctx, now); err != nil {
		return err
	}
	if v.Held, err = s.Store.Held(ctx); err != nil {
		return err
	}
	known := map[string]bool{}
	for _, q := range v.Queues {
		known[q.Name] = true
	}
	for _, name := range s.Config.Queues() {
		if !known[name] {
			v.Queues = append(v.Queues, queues.Info{Name: name})
		}
	}
	slices.SortFunc(v.Queues, func(a, b queues.Info) int { return cmp.Compare(a.Name, b.Name) })
	v.Configs = s.queueConfigs(namesOf(v.Queues)...)
	return s.page(c, http.StatusOK, v.Page())
}

// queueConfigs is what the configuration says about these queues.
func (s *Server) queueConfigs(queues ...string) map[string]templates.QueueConfig {
	all, running := map[string]templates.QueueConfig{}, s.Running()
	for _, name := range queues {
		all[name] = templates.QueueConfig{
			Workers: s.Config.Workers(name), Running: running[name], Policy: s.Config.Policy(name),
			DeadLetters: s.Config.DeadLetters(name), ForwardedTo: s.forwardHost(name),
		}
	}
	return all
}

func namesOf(queues []queues.Info) []string {
	names := make([]string, len(queues))
	for i, q := range queues {
		names[i] = q.Name
	}
	return names
}

// job is the page /jobs/{id}.
func (s *Server) job(c echo.Context) error {
	d, err := s.detail(c)
	if errors.Is(err, job.ErrNotFound) {
		return s.gone(c, err)
	}
	if err != nil {
		return err
	}
	return s.jobPage(c, d, false)
}

// jobPage draws a job, redacted unless somebody was allowed to see it.
func (s *Server) jobPage(c echo.Context, d history.Detail, revealed bool) (err error) {
	j := d.Job
	v := jobpage.View{
		Frame: s.frame(c, j.Type+" "+j.ID[len(j.ID)-8:], "jobs"), Detail: d,
		DeadLetters: s.Config.DeadLetters(j.Queue), ForwardedTo: s.forwardHost(j.Queue), NoHandler: !s.Knows(j.Type), Preview: min(len(j.Payload), previewLimit),
	}
	if since, until, ok := s.Waiting(j.ID); ok && j.State == job.Active {
		v.Waits, v.StuckSince, v.StuckUntil = true, since.UTC(), until.UTC()
	}
	v.Revealed = revealed
	if v.Trail, err = s.trail(c, j.ID); err != nil {
		return err
	}
	if v.PausedAt, v.PausedBy, err = s.Store.Paused(c.Request().Context(), j.Queue); err != nil {
		return err
	}
	v.Recent, err = s.Store.Recent(c.Request().Context(), j.Type, jobpage.RecentJobs)
	if v.RecentSlow, err = tolerate(err); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// payload sends the exact bytes that a job was given, to be kept as a file.
func (s *Server) payload(c echo.Context) error {
	d, err := s.detail(c)
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

// static sends an embedded file. Its address changes with its content, so it
// may be kept for ever.
func (s *Server) static(c echo.Context) error {
	name := path.Clean(c.Param("*"))
	data, err := fs.ReadFile(static.FS(), name)
	if err != nil || "/static/"+c.Param("hash")+"/" != static.Prefix() {
		return echo.ErrNotFound
	}
	c.Response().Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	return c.Blob(http.StatusOK, cmp.Or(mime.TypeByExtension(path.Ext(name)), "application/octet-stream"), data)
}

// frame is what surrounds a page.
func (s *Server) frame(c echo.Context, title, section string) templates.Frame {
	who := callerOf(c)
	if !who.role.May(access.View) { // what the product shows is nothing for strangers
		return templates.Frame{Title: title, Now: time.Now().UTC(), Stranger: true, User: who.name, LogOut: who.means == bySession}
	}
	f := templates.Frame{
		Title: title, Section: section, Now: time.Now().UTC(), Snapshot: s.Store.Snapshot(),
		QueueCount: len(s.Store.QueueNames()),
		Insecure:   s.Insecure && s.open(), Problem: s.problem(), Acted: s.acted(c), Here: here(c.Request()),
		User: who.name, LogOut: who.means == bySession, Paused: s.rest.now(),
	}
	if who.means != byOpenness {
		f.Role = who.role
	}
	if s.Demo != nil {
		f.Demo = &templates.Demo{Faults: s.Demo.Faults(), Until: "The database of this demo is deleted when the demo stops."}
	}
	return f
}

// problem says why nothing can be changed, or nothing.
func (s *Server) problem() string {
	if file := s.Store.Problem(); file != nil {
		text := file.Advice()
		return strings.ToUpper(text[:1]) + text[1:] + "."
	}
	return ""
}

// page renders into a buffer first, so that an error never arrives after half
// a page. What is to be shown is there by now, so the request's deadline no
// longer matters.
func (s *Server) page(c echo.Context, status int, page templ.Component) error {
	b, ok := s.buffers.Get().(*bytes.Buffer)
	if !ok {
		b = new(bytes.Buffer)
	}
	defer s.buffers.Put(b)
	b.Reset()
	if err := page.Render(context.WithoutCancel(c.Request().Context()), b); err != nil {
		return fmt.Errorf("render %s: %w", c.Path(), err)
	}
	return c.HTMLBlob(status, rebased(s.BasePath, b.Bytes()))
}
