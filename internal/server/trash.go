package server

import (
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
	"redrive/web/templates/listpage"
)

// trashRoutes are the trash, and the ways out of it.
func (s *Server) trashRoutes() {
	const v1 = "/api/v1"
	s.get("/trash", access.View, s.trash)
	s.get(v1+"/trash", access.View, s.listTrash)
	s.post("/jobs/:id/restore", access.Operate, s.restoreForm)
	s.post(v1+"/jobs/:id/restore", access.Operate, s.restoreJob)
}

// trashQuery reads the filter of the trash, which has one state only.
func trashQuery(values url.Values) (f filter.Filter, after filter.Cursor, wrong []*invalid.Error) {
	f, after, wrong = query(values)
	if f.Status != "" && f.Status != job.StatusTrashed {
		wrong = append(wrong, &invalid.Error{Field: "q", Problem: fmt.Sprintf(
			"state: every row here is a discarded job; look for %s jobs in the list of jobs", f.Status)})
	}
	f.Status = job.StatusTrashed
	return f, after, wrong
}

// trash is the page /trash.
func (s *Server) trash(c echo.Context) error {
	v := listpage.Trash{Frame: s.frame(c, "Trash", "trash"), Keeps: s.Config.Retention().Trash, After: c.QueryParam("after")}
	filter, after, wrong := trashQuery(c.QueryParams())
	v.Filter, v.Errors, v.Search = filter, byField(wrong), c.QueryParam("q")
	var err error
	if v.Query, err = s.queryAbove(c, filter, v.Errors); err != nil {
		return err
	}
	if len(wrong) > 0 {
		return s.page(c, http.StatusBadRequest, v.Page())
	}
	v.List, err = s.Store.Jobs(c.Request().Context(), filter, after, pageLimit)
	if v.Slow, err = tolerate(err); err != nil {
		return err
	}
	if v.Was, err = s.Store.Trashed(c.Request().Context(), v.List.Jobs); err != nil {
		return err
	}
	return s.page(c, http.StatusOK, v.Page())
}

// trashShape is a job in the trash.
type trashShape struct {
	JobID       string     `json:"job_id"`
	Run         int        `json:"run"`
	Type        string     `json:"type"`
	Queue       string     `json:"queue"`
	Status      job.Status `json:"was"` // where it was
	DiscardedAt string     `json:"discarded_at"`
	DiscardedBy string     `json:"discarded_by"`
	PurgedAt    string     `json:"purged_at,omitempty"`
}

// listTrash is GET /trash: what was discarded, and when it will be purged.
func (s *Server) listTrash(c echo.Context) error {
	f, after, wrong := trashQuery(c.QueryParams())
	limit, err := asked(c.QueryParams(), wrong)
	if err != nil {
		return err
	}
	page, err := s.Store.Jobs(c.Request().Context(), f, after, limit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	was, err := s.Store.Trashed(c.Request().Context(), page.Jobs)
	if err != nil {
		return err
	}
	all := make([][]byte, len(page.Jobs))
	for i, j := range page.Jobs {
		w := was[j.Seq]
		shape := trashShape{
			JobID: j.ID, Run: j.Run, Type: j.Type, Queue: j.Queue, Status: job.Job{State: w.State, Letter: w.Letter}.Status(),
			DiscardedAt: wire.FormatTime(w.At), DiscardedBy: w.By,
		}
		if keeps := s.Config.Retention().Trash; keeps > 0 {
			shape.PurgedAt = wire.FormatTime(w.At.Add(keeps))
		}
		all[i] = encode(shape)
	}
	return c.JSONBlob(http.StatusOK, object("trash", list(all), endOf(page.Next.String(), slow)...))
}

// restoreForm takes the run that the page showed out of the trash.
func (s *Server) restoreForm(c echo.Context) error {
	return s.actOnJob(c, func(id string) (job.Job, string, error) {
		run, err := formRun(c)
		if err != nil {
			return job.Job{}, "", err
		}
		j, err := s.Store.Restore(c.Request().Context(), time.Now(), id, run, s.actor("dashboard", c))
		return j, "Restored · " + string(j.Status()), err
	})
}

// restoreJob is POST /jobs/{id}/restore.
func (s *Server) restoreJob(c echo.Context) error {
	id, run, err := s.runAct(c)
	if err != nil {
		return err
	}
	j, err := s.Store.Restore(c.Request().Context(), time.Now(), id, run, s.actor("api", c))
	return answerJob(c, j, err)
}
