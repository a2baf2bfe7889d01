package server

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/filter"
	"redrive/internal/history"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/live"
	"redrive/internal/queues"
	"redrive/internal/wire"
)

const (
	pageLimit = 50  // of a list, unless the request names another
	maxLimit  = 200 // of a list
	maxSmall  = 64 << 10
)

// listJobs is GET /jobs. Lists leave payloads out: GET /jobs/{id} has them.
func (s *Server) listJobs(c echo.Context) error {
	values := c.QueryParams()
	f, after, wrong := query(values)
	limit, err := asked(values, wrong)
	if err != nil {
		return err
	}
	page, err := s.View.Jobs(c.Request().Context(), f, after, limit)
	slow, err := tolerate(err)
	if err != nil {
		return err
	}
	all := make([][]byte, len(page.Jobs))
	for i, j := range page.Jobs {
		all[i] = encodeJob(s.sinceItBegan(j), false)
	}
	return s.listed(c, "jobs", all, f, page.Next, slow)
}

// showJob is GET /jobs/{id}.
func (s *Server) showJob(c echo.Context) error {
	d, err := s.detail(c)
	if err != nil {
		return err
	}
	return s.answerDetail(c, d)
}

// answerDetail answers with everything about a job, and what people did to it.
func (s *Server) answerDetail(c echo.Context, d history.Detail) error {
	trail, err := s.trail(c, d.Job.ID)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("job", encodeJob(d.Job, true), "attempts", encodeAttempts(d),
		"dead_letters", encodeLetters(d.Letters), "replays", encodeReplays(d.Replays), "operations", encodeBulkActs(d.Bulk),
		"group", encode(d.Group.Fingerprint), "trail", encodeEntries(trail)))
}

// detail is everything about the job that the address names.
func (s *Server) detail(c echo.Context) (history.Detail, error) {
	id, err := paramID(c)
	if err != nil {
		return history.Detail{}, err
	}
	d, err := s.View.Job(c.Request().Context(), id)
	d.Job = s.sinceItBegan(d.Job)
	return d, err
}

// sinceItBegan is a job that runs since its execution began. The store knows
// when it was claimed.
func (s *Server) sinceItBegan(j job.Job) job.Job {
	if j.State == job.Active {
		if at, ok := s.Began(j.Token); ok {
			j.StartedAt = at.UTC()
		}
	}
	return j
}

func paramID(c echo.Context) (string, error) {
	id, err := job.ParseID(c.Param("id"))
	return id, inAddress(err)
}

// paramQueue is the queue that the address names. One that had no job yet must
// be configured: a queue is not made by a slip of the pen.
func (s *Server) paramQueue(c echo.Context) (string, error) {
	name := c.Param("name")
	if err := job.CheckQueue(name); err != nil {
		return "", inAddress(err)
	}
	if !slices.Contains(s.View.QueueNames(), name) && !slices.Contains(s.Config.Queues(), name) {
		return "", job.ErrNotFound
	}
	return name, nil
}

// showFill is GET /dead-letters/fill: how full the dead-letter queue is. It is
// apart from the counters because it is no total: it falls as letters are
// replayed, discarded and pruned.
func (s *Server) showFill(c echo.Context) error {
	now := time.Now()
	f, err := s.View.Usage(c.Request().Context(), now)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, append(encode(fillOf(f, s.Config.Retention(), now)), '\n'))
}

// showCounters is GET /counters.
func (s *Server) showCounters(c echo.Context) error {
	return c.JSON(http.StatusOK, s.View.Snapshot().Totals)
}

// listQueues is GET /queues.
func (s *Server) listQueues(c echo.Context) error {
	queues, err := s.View.Queues(c.Request().Context(), time.Now())
	if err != nil {
		return err
	}
	running := s.Running()
	all := make([][]byte, len(queues))
	for i, q := range queues {
		all[i] = encode(s.shapeQueue(q, running))
	}
	return c.JSONBlob(http.StatusOK, object("queues", list(all)))
}

// showQueue is GET /queues/{name}. One that is only configured has had no job.
func (s *Server) showQueue(c echo.Context) error {
	name, err := s.paramQueue(c)
	if err != nil {
		return err
	}
	all, err := s.View.Queues(c.Request().Context(), time.Now())
	if err != nil {
		return err
	}
	q := queues.Info{Name: name}
	if i := slices.IndexFunc(all, func(q queues.Info) bool { return q.Name == name }); i >= 0 {
		q = all[i]
	}
	return c.JSONBlob(http.StatusOK, object("queue", encode(s.shapeQueue(q, s.Running()))))
}

func (s *Server) shapeQueue(q queues.Info, running map[string]int) queueShape {
	depths := job.Depths{}
	for _, status := range job.Statuses() {
		depths[status] = q.Depths[status]
	}
	return queueShape{
		Name: q.Name, Totals: q.Totals, States: depths,
		Workers: s.Config.Workers(q.Name), Running: running[q.Name], DeadLetter: s.Config.DeadLetters(q.Name), Forward: s.forwardHost(q.Name),
		Oldest: wire.FormatTime(q.Oldest), PausedAt: wire.FormatTime(q.PausedAt), PausedBy: q.PausedBy,
	}
}

// live is /live: a websocket, or its polling twin when no upgrade is asked for.
func (s *Server) live(c echo.Context) error {
	if c.IsWebSocket() {
		who := callerOf(c)
		s.Hub.Serve(c.Response(), c.Request(), live.Pass{
			Address: c.RealIP(), Valid: func(ctx context.Context) bool { return s.stillAllowed(ctx, who, access.View) },
		})
		return nil
	}
	ids, err := paramIDs(c)
	if err != nil {
		return err
	}
	list, err := paramList(c)
	if err != nil {
		return err
	}
	data, err := s.Hub.Poll(c.Request().Context(), ids, list)
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, append(data, '\n'))
}

// paramList reads which list a page shows: its filter and its first row.
func paramList(c echo.Context) (l live.List, err error) {
	l.Filter = filter.Filter{Status: job.Status(c.QueryParam("state")), Queue: c.QueryParam("queue"), Type: c.QueryParam("type")}
	if err := l.Filter.Check(); err != nil {
		return l, inAddress(err)
	}
	l.First, err = filter.ParseCursor(c.QueryParam("first"))
	return l, inAddress(err)
}

// paramIDs reads the list of jobs that a page follows.
func paramIDs(c echo.Context) (ids []string, err error) {
	given := c.QueryParam("ids")
	if given == "" {
		return nil, nil
	}
	if n := strings.Count(given, ",") + 1; n > live.MaxIDs {
		return nil, &failure{badParameter, "ids", fmt.Sprintf("%d ids, at most %d are accepted", n, live.MaxIDs), nil}
	}
	for text := range strings.SplitSeq(given, ",") {
		id, err := job.ParseID(text)
		if err != nil {
			return nil, &failure{badParameter, "ids", err.Error(), nil}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// replayJob is POST /jobs/{id}/replay: the run that the caller saw is replayed,
// once, with the changes that the body names.
func (s *Server) replayJob(c echo.Context) error {
	id, err := paramID(c)
	if err != nil {
		return err
	}
	run, want, err := readRedo(c)
	if err != nil {
		return err
	}
	if want.empty() {
		j, err := s.View.Replay(c.Request().Context(), time.Now(), id, run, s.actor("api", c))
		return answerJob(c, j, err)
	}
	d, err := s.View.Original(c.Request().Context(), id)
	if err != nil {
		return err
	}
	redo, wrong := s.redo(d.Job, want)
	if len(wrong) > 0 {
		return wrong[0]
	}
	j, err := s.View.ReplayEdited(c.Request().Context(), time.Now(), id, run, redo, s.actor("api", c))
	return answerJob(c, j, err)
}

func checkRun(run int) error {
	if run < 1 {
		return &invalid.Error{Field: "run", Problem: "must name the run that you looked at, 1 or higher"}
	}
	return nil
}

// formRun is the run that a form names.
func formRun(c echo.Context) (int, error) {
	run, err := strconv.Atoi(c.FormValue("run"))
	if err != nil {
		run = 0
	}
	return run, checkRun(run)
}

// discardJob is POST /jobs/{id}/discard.
func (s *Server) discardJob(c echo.Context) error {
	id, run, err := s.runAct(c)
	if err != nil {
		return err
	}
	j, err := s.View.Discard(c.Request().Context(), time.Now(), id, run, s.actor("api", c))
	return answerJob(c, j, err)
}

// cancelJob is POST /jobs/{id}/cancel.
func (s *Server) cancelJob(c echo.Context) error {
	id, run, err := s.runAct(c)
	if err != nil {
		return err
	}
	j, err := s.View.Cancel(c.Request().Context(), time.Now(), id, run, s.actor("api", c))
	return answerJob(c, j, err)
}

// pauseQueue is POST /queues/{name}/pause.
func (s *Server) pauseQueue(c echo.Context) error {
	name, err := s.bareAct(c, s.paramQueue)
	if err != nil {
		return err
	}
	if err := s.View.Pause(c.Request().Context(), time.Now(), name, s.actor("api", c)); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("queue", encode(name), "paused", []byte("true")))
}

// resumeQueue is POST /queues/{name}/resume.
func (s *Server) resumeQueue(c echo.Context) error {
	name, err := s.bareAct(c, s.paramQueue)
	if err != nil {
		return err
	}
	if err := s.View.Resume(c.Request().Context(), time.Now(), name, s.actor("api", c)); err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("queue", encode(name), "paused", []byte("false")))
}

// bareAct reads an act that says everything in its address. A body may only be
// an empty object.
func (s *Server) bareAct(c echo.Context, param func(echo.Context) (string, error)) (string, error) {
	name, err := param(c)
	if err != nil {
		return "", err
	}
	data, err := optional(c)
	if err != nil {
		return "", err
	}
	return name, fields{}.read("", data)
}

func answerJob(c echo.Context, j job.Job, err error) error {
	if err != nil {
		return err
	}
	return c.JSONBlob(http.StatusOK, object("job", encodeJob(j, true)))
}
