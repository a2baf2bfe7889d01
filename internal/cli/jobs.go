package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/usage"
)

// listCommand is dashboard list: it lists the jobs that a filter selects.
type listCommand struct {
	Filter []string `arg:"" optional:"" help:"Filter, written as in the search box, for example 'queue:orders since:2h' (all jobs)."`
	Limit  int      `help:"Maximum number of jobs, newest first; 0 lists all (${default})." default:"50" placeholder:"N"`
	JSON   bool     `name:"json" help:"Print the jobs as JSON, one per line."`
	dashboardFlags
}

// jobsPage is one page of the list of jobs, as the API answers it.
type jobsPage struct {
	Jobs       []json.RawMessage
	Next       string
	Incomplete bool
}

// maxPage is how many jobs are asked for at once.
const maxPage = 200

// Run lists the jobs, page by page.
func (l *listCommand) Run(c Console) error {
	q := strings.Join(l.Filter, " ")
	if l.Limit < 0 {
		return usage.Errorf("--limit must be 0 or more")
	}

	// The server reads the filter, too. Here it tells what is wrong at once, and by what the list
	// is sorted.
	var wrong *invalid.Error
	f, err := filter.Parse(q, time.Now()) // returns no other error
	if errors.As(err, &wrong) {
		return usage.Errorf("%s", wrong.Problem)
	}

	dashboard, err := l.connect()
	if err != nil {
		return err
	}

	// Ask for one page after another, until the list ends or has as many as the user wants.
	show := l.printer(c, f)
	listed, after := 0, ""
	for {
		size := maxPage
		if l.Limit > 0 {
			size = min(size, l.Limit-listed)
		}

		ask := url.Values{"q": {q}, "limit": {strconv.Itoa(size)}}
		if after != "" {
			ask.Set("after", after)
		}

		var page jobsPage
		if err := dashboard.Call(context.Background(), http.MethodGet, "jobs?"+ask.Encode(), nil, &page); err != nil {
			return err
		}

		if err := show(page); err != nil {
			return err
		}

		listed, after = listed+len(page.Jobs), page.Next
		switch {
		case after == "":
			return nil
		case l.Limit > 0 && listed == l.Limit:
			fmt.Fprintln(c.Stderr, "There are more jobs; add --limit 0 to list all.")
			return nil
		}
	}
}

// printer returns a function that prints a page.
func (l *listCommand) printer(c Console, f filter.Filter) func(jobsPage) error {
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	if !l.JSON {
		fmt.Fprintln(w, "ID\tSTATE\tTYPE\tQUEUE\tATTEMPTS\t"+timeColumn(f)+"\tERROR")
	}

	return func(page jobsPage) error {
		for _, raw := range page.Jobs {
			if l.JSON {
				if err := printLine(c, raw); err != nil {
					return err
				}
				continue
			}

			var j shownJob
			if err := json.Unmarshal(raw, &j); err != nil {
				return fmt.Errorf("read the dashboard's answer: %w", err)
			}

			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", j.ID, j.state(), printable(j.Type), printable(j.Queue),
				j.tries("/"), j.sortedBy(f), errorLine(j.Error, 60))
		}

		// What is not a job goes to stderr, so that a program can read stdout.
		if page.Incomplete {
			fmt.Fprintln(c.Stderr, "warning: the search took too long, so jobs may be missing; narrow the filter, for example with since:")
		}

		// The columns are aligned within a page, so that its rows are seen before the next page
		// comes.
		return w.Flush()
	}
}

// shownJob adds to a job, as the API answers it, what tables show.
type shownJob struct{ work.FullJob }

// foreign reports whether the job is one of a source, which may leave any of its facts out.
func (j shownJob) foreign() bool { return job.SourceOf(j.Queue) != "" }

// state is where the job stands, as far as it is known.
func (j shownJob) state() string {
	switch {
	case j.ReplayUnknown:
		return "unknown"
	case j.Returned:
		return "returned"
	case j.AtSource:
		return "at " + job.SourceOf(j.Queue)
	}

	return string(j.Status)
}

// heldBySource says since when the source of a job has it, and what it may still report.
func (j shownJob) heldBySource(reports string) string {
	since, until, name := toTheSecond(j.ChangedAt.Time), toTheSecond(j.ReturnedUntil.Time), job.SourceOf(j.Queue)
	switch {
	case !j.AtSource:
		return "-"
	case j.Returned:
		return since + ", and not back: it succeeded there, still waits, or was removed"
	case reports == "failures":
		return fmt.Sprintf("%s; %s reports only failures: if the job is not back by %s, it counts as returned", since, name, until)
	case reports != "":
		return fmt.Sprintf("%s; %s reports %s: if neither is known by %s, the job counts as returned", since, name, reports, until)
	}

	return since
}

// tries are the attempts made and allowed, with a separator between them, as in "3/25"; a dash
// where the source of the job does not say how many were made.
func (j shownJob) tries(separator string) string {
	attempts, most := numberOrZero(j.Attempts), numberOrZero(j.MaxAttempts)
	switch {
	case j.foreign() && attempts == 0:
		return "–"
	case most == 0:
		return strconv.Itoa(attempts)
	}

	return strconv.Itoa(attempts) + separator + strconv.Itoa(most)
}

// numberOrZero is a number of an answer that may leave it out, zero then.
func numberOrZero(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// timeColumn names the time by which a list is sorted.
func timeColumn(f filter.Filter) string {
	switch {
	case f.Order() == filter.Next:
		return "NEXT RUN"
	case f.ByEnqueueing():
		return "ENQUEUED"
	}

	return "SINCE"
}

// sortedBy is the time of the job by which a list is sorted. In the order of enqueueing, a job
// of a source has its place by when Redrive saw it first.
func (j shownJob) sortedBy(f filter.Filter) string {
	switch {
	case f.Order() == filter.Next:
		return toTheSecond(j.RunAt.Time)
	case !f.ByEnqueueing():
		return toTheSecond(j.ChangedAt.Time)
	case j.foreign():
		return "added " + toTheSecond(j.AddedAt.Time)
	}

	return toTheSecond(j.EnqueuedAt.Time)
}

// errorLine is an error on one line of at most so many characters.
func errorLine(e *work.Error, most int) string {
	if e == nil {
		return "-"
	}

	failure := job.Failure{ErrorInfo: job.ErrorInfo{Type: e.Type, Message: e.Message}}

	return printable(clip.Text(clip.Line(failure.Error()), most))
}

// toTheSecond is a time in UTC, exact to the second, or a dash for the zero time.
func toTheSecond(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
