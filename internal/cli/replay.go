package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/usage"
)

// replayCommand is dashboard replay: it replays one job, or the jobs that a filter selects.
type replayCommand struct {
	ID      string        `arg:"" optional:"" help:"The id of one job, instead of a filter."`
	Mode    string        `help:"One job of a source: once, fresh (attempts from zero) or new (a new message)." placeholder:"MODE"`
	In      time.Duration `help:"One job: start after this time, for example 5m." placeholder:"DURATION"`
	Payload string        `help:"One job: another payload, any JSON." placeholder:"JSON"`
	bulkFlags
}

// Run replays through a running dashboard.
func (r *replayCommand) Run(c console.Console) error {
	if r.ID != "" {
		return r.one(c)
	}

	switch {
	case r.Mode != "" || r.In != 0 || r.Payload != "":
		return usage.Errorf("--mode, --in and --payload are for one job: name its id")
	case r.Filter == "":
		return usage.Errorf("name the id of a job, or select jobs with --filter: state:dead_letter for all dead letters")
	}

	return r.act(c, operation.Replay)
}

// one replays a job, in the run that is the newest now.
func (r *replayCommand) one(c console.Console) error {
	id, err := job.ParseID(r.ID)
	switch {
	case err != nil:
		return usage.Of(err)
	case r.Filter != "" || r.Rate != "" || r.Spread != "" || r.Canary != nil || r.NoGuard || r.DryRun || r.Yes:
		return usage.Errorf("a replay of one job has only the flags --mode, --in and --payload")
	case r.Payload != "" && !json.Valid([]byte(r.Payload)):
		return usage.Errorf(`the payload is not JSON; a string needs quotes, for example '"text"'`)
	case r.In < 0:
		return usage.Errorf("--in must not be negative")
	}

	dashboard, err := r.Connect()
	if err != nil {
		return err
	}

	// The replay names the run that is the newest now, so that it cannot begin a second one.
	var was work.JobDetail
	if err := dashboard.Call(context.Background(), http.MethodGet, "jobs/"+id, nil, &was); err != nil {
		return err
	}

	var is work.JobAnswer
	if err := dashboard.Call(context.Background(), http.MethodPost, "jobs/"+id+"/replay", r.change(was.Job.Run), &is); err != nil {
		return err
	}

	j := shownJob{is.Job}
	state := j.state()
	if j.foreign() && !j.AtSource { // its source is told in the background
		state = "on its way to " + job.SourceOf(j.Queue)
	}

	fmt.Fprintf(c.Stdout, "Replayed, run %d: %s\n", j.Run, state)

	return nil
}

// change asks for the next run after one.
func (r *replayCommand) change(run int) work.ReplayRequest {
	ask := work.ReplayRequest{Run: run, Payload: apitype.Payload(r.Payload)}
	if r.Mode != "" {
		mode := source.Mode(r.Mode)
		ask.Mode = &mode
	}

	if r.In > 0 {
		delay := apitype.Duration(r.In)
		ask.Delay = &delay
	}

	return ask
}
