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

	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/usage"
)

// listCommand is dashboard list: it lists the jobs that a filter selects.
type listCommand struct {
	Filter []string `arg:"" optional:"" help:"Filter, written as in the search box, for example 'queue:orders since:2h' (all jobs)."`
	Limit  int      `help:"Maximum number of jobs, newest first; 0 lists all (${default})." default:"50" placeholder:"N"`
	JSON   bool     `name:"json" help:"Print the jobs as JSON, one per line."`
	reach.Dashboard
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
func (l *listCommand) Run(c console.Console) error {
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

	dashboard, err := l.Connect()
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
func (l *listCommand) printer(c console.Console, f filter.Filter) func(jobsPage) error {
	w := tabwriter.NewWriter(c.Stdout, 0, 0, 2, ' ', 0)
	if !l.JSON {
		fmt.Fprintln(w, "ID\tSTATE\tTYPE\tQUEUE\tATTEMPTS\t"+timeColumn(f)+"\tERROR")
	}

	return func(page jobsPage) error {
		for _, raw := range page.Jobs {
			if l.JSON {
				if err := c.PrintJSON(raw); err != nil {
					return err
				}
				continue
			}

			var j shownJob
			if err := json.Unmarshal(raw, &j); err != nil {
				return fmt.Errorf("read the dashboard's answer: %w", err)
			}

			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", j.ID, j.state(), console.Printable(j.Type), console.Printable(j.Queue),
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
		return console.ToTheSecond(j.RunAt.Time)
	case !f.ByEnqueueing():
		return console.ToTheSecond(j.ChangedAt.Time)
	case j.foreign():
		return "added " + console.ToTheSecond(j.AddedAt.Time)
	}

	return console.ToTheSecond(j.EnqueuedAt.Time)
}
