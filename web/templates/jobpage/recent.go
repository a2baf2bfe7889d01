package jobpage

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// RecentJobs is how many jobs of a type the page of one of them draws.
const RecentJobs = 60

// recentBar is one job: its colour says its status, a mark below that it
// failed, its height how long its newest attempt took.
type recentBar struct {
	class, x, y, height string
	failed, open        bool
	title               string
}

// recent is the chart of the newest jobs of a type.
type recent struct {
	bars  []recentBar
	words string
}

const (
	recentFloor  = 28.0 // of 32 pixels; below is the mark of a failure
	recentHeight = 26.0
)

// recentOf draws jobs, which come the newest first, with the newest on the right.
// The longest of them fills the height.
func recentOf(jobs []job.Job, now time.Time) recent {
	var r recent
	var succeeded, failed, cancelled, waiting int

	// Never zero, because the heights are divided by it.
	longest := time.Duration(1)
	for _, j := range jobs {
		longest = max(longest, spent(j, now))
	}

	step := 100 / float64(RecentJobs)
	for i, j := range jobs {
		// A job that took no time still has a bar of 2 pixels. With fewer jobs than the chart
		// has room for, the left side stays empty.
		height := max(2, recentHeight*float64(spent(j, now))/float64(longest))
		b := recentBar{
			class: "is-" + string(j.State), x: format.Percent(step * float64(RecentJobs-1-i)),
			y: format.Coord(recentFloor - height), height: format.Coord(height),
		}
		switch j.State {
		case job.Completed:
			succeeded++
			b.class = "is-succeeded"
		case job.Retryable, job.Discarded:
			failed++
			b.failed, b.class = true, "is-failed"
		case job.Cancelled:
			cancelled++
		default:
			waiting++
			b.open = true
		}

		// The title names the job, its status and how long its newest attempt took.
		b.title = format.ShortID(j.ID) + " " + templates.StyleOf(j.Status()).Word
		if took := spent(j, now); took > 0 {
			b.title += ", " + format.Duration(took)
		}

		r.bars = append(r.bars, b)
	}

	r.words = fmt.Sprintf("%s succeeded, %s failed, ", format.Number(succeeded), format.Number(failed))
	if cancelled > 0 {
		r.words += format.Number(cancelled) + " cancelled, "
	}

	r.words += format.Number(waiting) + " not finished"

	return r
}

// spent is how long the newest attempt took, or takes; a job that waits for its
// next attempt has none.
func spent(j job.Job, now time.Time) time.Duration {
	switch {
	case j.StartedAt.IsZero() || j.State == job.Scheduled || j.State == job.Available || j.State == job.Returning ||
		j.State == job.Returned:
		return 0
	case j.State == job.Active:
		return max(0, now.Sub(j.StartedAt))
	case !j.FinishedAt.IsZero():
		return max(0, j.FinishedAt.Sub(j.StartedAt))
	}

	return max(0, j.ChangedAt.Sub(j.StartedAt))
}
