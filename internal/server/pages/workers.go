package pages

import (
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/job"
	"redrive/web/templates/queuepage"
)

// workers is the page /workers: the jobs that workers have claimed, and handlers
// that do not return although their time is over.
func (p *Pages) workers(c echo.Context) error {
	v := queuepage.Workers{
		Frame: p.frame(c, "Workers", "workers"), Name: p.Engine.Worker, Since: p.began.UTC(), Stuck: p.Engine.Stuck(), Waits: map[string]bool{},
	}
	for _, name := range p.QueueNames() {
		v.Total++
		if job.SourceOf(name) != "" {
			v.Foreign++
			continue
		}

		v.Places += p.Config.Workers(name)
	}

	// The table has the queues that matter most; the totals above it are of all.
	all, err := p.WorkerQueues(c.Request().Context(), queuesLimit)
	if err != nil {
		return err
	}

	running := p.Engine.Running()
	for _, q := range all {
		v.Queues = append(v.Queues, queuepage.WorkerQueue{
			Name: q.Name, Workers: p.Config.Workers(q.Name), Running: running[q.Name],
			Waiting: q.Depths[job.Status(job.Available)], PausedAt: q.PausedAt,
		})
	}

	claimed, more, slow, err := p.Claimed(c.Request().Context())
	if err != nil {
		return err
	}

	for _, j := range claimed {
		v.Waits[j.ID] = j.Waits
		v.Jobs = append(v.Jobs, j.Job)
	}

	v.More, v.Slow = more, slow

	return p.Show(c, http.StatusOK, v.Page())
}
