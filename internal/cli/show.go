package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"text/tabwriter"
	"time"

	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/job"
	"redrive/internal/usage"
)

// showCommand is dashboard show: it shows one job with its attempts.
type showCommand struct {
	ID   string `arg:"" help:"The job's id."`
	JSON bool   `name:"json" help:"Print everything about the job as JSON, on one line."`
	reach.Dashboard
}

// Run shows the job.
func (s *showCommand) Run(c console.Console) error {
	id, err := job.ParseID(s.ID)
	if err != nil {
		return usage.Of(err)
	}

	dashboard, err := s.Connect()
	if err != nil {
		return err
	}

	var raw json.RawMessage
	if err := dashboard.Call(context.Background(), http.MethodGet, "jobs/"+id, nil, &raw); err != nil {
		return err
	}

	if s.JSON {
		return c.PrintJSON(raw)
	}

	var d work.JobDetail
	if err := json.Unmarshal(raw, &d); err != nil {
		return fmt.Errorf("read the dashboard's answer: %w", err)
	}

	return printJob(c.Stdout, d)
}

// printJob prints the job, what was decided about it, and its attempts.
func printJob(out io.Writer, d work.JobDetail) error {
	j, w := shownJob{d.Job}, tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	state := j.state()
	if j.ReplayUnknown {
		state = "unknown: it is not known whether " + job.SourceOf(j.Queue) + " took the replay"
	}

	if j.Reason != "" {
		state += ", " + string(j.Reason)
	}

	for _, line := range [][2]string{
		{"Job", j.ID}, {"Type", j.Type}, {"Queue", j.Queue}, {"State", state}, {"Handed over", j.heldBySource(d.SourceReports)},
		{"Run", fmt.Sprintf("%d, attempts %s", j.Run, j.tries(" of "))}, {"Policy", j.policy()},
		{"Enqueued", j.time(j.EnqueuedAt)}, {"Runs at", console.ToTheSecond(j.RunAt.Time)}, {"Finished", j.ended()},
		{"Error", errorLine(j.Error, 1000)}, {"Payload", string(j.Payload)},
	} {
		if line[1] != "-" {
			fmt.Fprintf(w, "%s\t%s\n", line[0], console.Printable(line[1]))
		}
	}

	if err := w.Flush(); err != nil || len(d.Attempts) == 0 {
		return err
	}

	// A source tells only when an attempt ended.
	when, at := "STARTED", func(a work.Attempt) time.Time { return a.StartedAt.Time }
	if j.foreign() {
		when, at = "ENDED", func(a work.Attempt) time.Time { return a.FinishedAt.Time }
	}

	fmt.Fprintln(w, "\nRUN\tATTEMPT\t"+when+"\tTOOK\tOUTCOME\tDECISION\tERROR")

	for _, a := range d.Attempts {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\n", a.Run, attemptNumber(a), console.ToTheSecond(at(a)), took(a),
			cmp.Or(a.Outcome, "running"), decision(a), errorLine(a.Error, 80))
	}

	if err := w.Flush(); err != nil || d.AttemptsNext == 0 {
		return err
	}

	_, err := fmt.Fprintf(out, "\nThese are the newest of %d attempts. Earlier ones: GET /api/v1/jobs/%s?attempts_after=%d\n",
		d.AttemptsTotal, j.ID, d.AttemptsNext)

	return err
}

// attemptNumber is the number of the attempt; an execution that counts as none has a dash.
func attemptNumber(a work.Attempt) string {
	if a.Number == 0 {
		return "-"
	}
	return strconv.Itoa(a.Number)
}

// took is how long the attempt ran. A source says when it ended, and not when it began.
func took(a work.Attempt) string {
	if a.FinishedAt.IsZero() || a.StartedAt.IsZero() {
		return "-"
	}
	return a.FinishedAt.Sub(a.StartedAt.Time).Round(time.Millisecond).String()
}

// decision is what was decided after the attempt, and by what.
func decision(a work.Attempt) string {
	if a.Action == "" {
		return "-"
	}

	text := string(a.Action)
	if a.DelayMS != nil && *a.DelayMS > 0 {
		text += " in " + (time.Duration(*a.DelayMS * float64(time.Millisecond))).Round(time.Millisecond).String()
	}

	return console.Printable(text + " (" + a.DecidedBy + ")")
}
