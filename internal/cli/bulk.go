package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/cli/reach"
	"redrive/internal/filter"
	"redrive/internal/operation"
	"redrive/internal/usage"
	"redrive/internal/wire"
)

// bulkFlags are the flags of the commands that act on many jobs: on which, how
// fast and how carefully.
type bulkFlags struct {
	Filter  string `help:"${filter}" placeholder:"FILTER"`
	Rate    string `help:"Rate, for example 20/s, 300/m or 1000/h (no limit)." placeholder:"RATE"`
	Spread  string `help:"Instead of a rate: spread the jobs over this time, for example 10m." placeholder:"DURATION"`
	Canary  *int   `help:"Pause after this many jobs until someone resumes it (5 for more than 100 jobs; 0 never pauses)." placeholder:"N"`
	NoGuard bool   `help:"Do not pause automatically when replays fail again with the same error."`
	DryRun  bool   `help:"Show the preview without starting the operation."`
	Yes     bool   `help:"Do not ask for confirmation."`
	reach.Dashboard
}

// discardCommand is dashboard discard: it discards the jobs that a filter selects.
type discardCommand struct{ bulkFlags }

// Run discards through a running dashboard.
func (d *discardCommand) Run(c console.Console) error { return d.act(c, operation.Discard) }

// act begins an operation, which first collects its jobs, shows the preview, and
// after a yes starts the operation and follows it to its end.
func (b *bulkFlags) act(c console.Console, kind operation.Kind) error {
	pace, err := b.pace()
	if err != nil {
		return err
	}

	if f, err := filter.Parse(b.Filter, time.Now()); err != nil {
		return usage.Of(err)
	} else if f.Zero() {
		return usage.Errorf("--filter is empty, which would select every job; use state:dead_letter for all dead letters")
	}

	dashboard, err := b.Connect()
	if err != nil {
		return err
	}

	ctx, stop := c.Until(os.Interrupt)
	defer stop()
	// The first interrupt ends the command; what it began is aborted or goes on.
	w := &watcher{Console: c, dashboard: dashboard, kind: kind, live: console.IsTerminal(c.Stdout)}
	if err := w.begin(ctx, b.Filter); err != nil {
		return err
	}

	w.preview(pace)

	if b.DryRun || w.now.Operation.Pending == 0 {
		fmt.Fprintln(c.Stdout, "Nothing was done.")
		return w.post("abort", nil)
	}

	if !b.Yes {
		if err := w.confirm(ctx); err != nil {
			return errors.Join(err, w.post("abort", nil))
		}
	}

	if err := w.post("start", pace); err != nil {
		return err
	}

	return w.follow(ctx)
}

// pace returns what the flags say about the pace, as the API reads it. A flag that
// was not given is left to the dashboard.
func (b *bulkFlags) pace() (pace work.PaceRequest, err error) {
	guard := !b.NoGuard

	pace.Guard = &guard
	var means operation.Pace
	if b.Canary != nil {
		if *b.Canary < 0 {
			return pace, usage.Errorf("--canary must be 0 or more")
		}

		means.Canary = int64(*b.Canary)
		pace.Canary = &means.Canary
	}

	switch {
	case b.Rate != "" && b.Spread != "":
		return pace, usage.Errorf("--rate and --spread cannot be used together")
	case b.Rate != "":
		means.Rate, err = parseRate(b.Rate)
		if err != nil {
			return pace, err
		}

		pace.Rate = &means.Rate
	case b.Spread != "":
		d, err := wire.ParseDuration(b.Spread)
		if err != nil || d <= 0 {
			return pace, usage.Errorf("--spread %q is not a duration, for example 10m or 2h", b.Spread)
		}

		means.Spread = d
		pace.Spread = (*apitype.Duration)(&means.Spread)
	}

	// Say what the dashboard would refuse before anything is asked of it.
	if err := means.Check(); err != nil {
		return pace, usage.Of(err)
	}

	return pace, nil
}

// parseRate reads a rate such as 20/s, 300/m, 1000/h or 20, in jobs a second.
func parseRate(text string) (float64, error) {
	number, unit, _ := strings.Cut(text, "/")

	per := map[string]float64{"": 1, "s": 1, "m": 60, "h": 3600}
	rate, err := strconv.ParseFloat(number, 64)
	if divisor, ok := per[unit]; ok && err == nil && rate > 0 {
		return rate / divisor, nil
	}

	return 0, usage.Errorf("--rate %q is not a rate such as 20/s, 300/m or 1000/h", text)
}
