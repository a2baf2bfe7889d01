package cli

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/client"
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
	dashboardFlags
}

// discardCommand is dashboard discard: it discards the jobs that a filter selects.
type discardCommand struct{ bulkFlags }

// Run discards through a running dashboard.
func (d *discardCommand) Run(c Console) error { return d.act(c, operation.Discard) }

// canaryJobs is how many jobs of a cause were in the canary.
func canaryJobs(c work.CanaryCause) int64 {
	return c.Succeeded + c.Relapsed + c.Dropped + c.Unknown + c.Unsettled
}

// passed reports whether all of them succeeded.
func passed(c work.CanaryCause) bool { return canaryJobs(c) > 0 && c.Succeeded == canaryJobs(c) }

// open reports whether more is expected of the canary soon: runs of Redrive's own end, and
// some sources say how theirs did. Others say nothing unless a run fails.
func open(p work.Progress) bool {
	if p.CanaryUnsettled > p.CanaryAtSource {
		return true
	}
	return p.CanaryAtSource > p.CanaryReturned && p.SourceReports != "failures"
}

// act begins an operation, which first collects its jobs, shows the preview, and
// after a yes starts the operation and follows it to its end.
func (b *bulkFlags) act(c Console, kind operation.Kind) error {
	pace, err := b.pace()
	if err != nil {
		return err
	}

	if f, err := filter.Parse(b.Filter, time.Now()); err != nil {
		return usage.Of(err)
	} else if f.Zero() {
		return usage.Errorf("--filter is empty, which would select every job; use state:dead_letter for all dead letters")
	}

	dashboard, err := b.connect()
	if err != nil {
		return err
	}

	ctx, stop := c.until(os.Interrupt)
	defer stop()
	// The first interrupt ends the command; what it began is aborted or goes on.
	w := &watcher{Console: c, dashboard: dashboard, kind: kind, live: isTerminal(c.Stdout)}
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
		if means.Rate, err = parseRate(b.Rate); err != nil {
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

// watcher is a command that has begun an operation and watches it. Each answer of
// the dashboard replaces what it knows.
type watcher struct {
	Console
	dashboard *client.Client
	kind      operation.Kind
	live      bool // the output is a terminal, on which a line can be drawn again
	now       work.OperationDetail
	printed   string // the newest line of progress
}

// begin makes the operation and waits for its preview.
func (w *watcher) begin(ctx context.Context, filter string) error {
	ask := work.NewOperation{Kind: w.kind, Filter: &filter}
	if err := w.dashboard.Call(ctx, http.MethodPost, "operations", ask, &w.now); err != nil {
		return err
	}

	for w.now.Operation.State == operation.Collecting {
		switch err := w.look(ctx, 200*time.Millisecond); {
		case err != nil && ctx.Err() != nil:
			return errors.Join(errors.New("interrupted before the preview; nothing was done"), w.post("abort", nil))
		case err != nil:
			return err
		}
	}

	return nil
}

// look waits, and then asks the dashboard how far the operation is.
func (w *watcher) look(ctx context.Context, wait time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
	}

	return w.dashboard.Call(ctx, http.MethodGet, w.path(""), nil, &w.now)
}

// path is the path of the operation in the API, or of an act on it.
func (w *watcher) path(act string) string {
	return strings.TrimSuffix(fmt.Sprintf("operations/%d/%s", w.now.Operation.ID, act), "/")
}

// post acts on the operation, whether or not the user has interrupted the command.
func (w *watcher) post(act string, body any) error {
	return w.dashboard.Call(context.Background(), http.MethodPost, w.path(act), body, &w.now)
}

// preview prints how many jobs would take part, and how many would not and why.
func (w *watcher) preview(pace work.PaceRequest) {
	o, b := w.now.Operation, w.now.Breakdown
	fmt.Fprintf(w.Stdout, "Operation %d: %s %s\n", o.ID, w.kind, o.Filter)
	fmt.Fprintf(w.Stdout, "%8d eligible\n", o.Pending)

	for _, p := range b.Scope {
		fmt.Fprintf(w.Stdout, "%16d %s, %s\n", p.Count, printable(p.Queue), printable(p.Type))
	}

	if len(b.Causes) > 1 {
		fmt.Fprintf(w.Stdout, "%8d causes\n", o.Causes)

		for _, p := range b.Causes {
			fmt.Fprintf(w.Stdout, "%16d %s\n", p.Count, causeName(p.Cause))
		}
	}

	if b.Unhandled > 0 && w.kind == operation.Replay {
		fmt.Fprintf(w.Stdout, "%8d have no handler here\n", b.Unhandled)
	}

	fmt.Fprintf(w.Stdout, "%8d skipped\n", o.Skipped)

	for _, s := range b.Skips {
		fmt.Fprintf(w.Stdout, "%16d %s\n", s.Count, s.Code)
	}

	w.warnOfSources()

	if pace.Rate != nil && o.Pending > 0 {
		takes := time.Duration(float64(o.Pending) / *pace.Rate * float64(time.Second))
		fmt.Fprintf(w.Stdout, "At this rate it takes about %s.\n", takes.Round(time.Second))
	}
}

// causeName is the class of a cause and the type of its jobs.
func causeName(c work.Cause) string {
	if c.Class == "" {
		return printable(cmp.Or(c.Type, "a job that was removed"))
	}
	return printable(c.Class) + ", " + printable(c.Type)
}

// causes prints how the canary fared by cause, where there are several.
func (w *watcher) causes() {
	all := w.now.Progress.CanaryCauses
	if w.now.Operation.Causes < 2 {
		return
	}

	for _, c := range all {
		fmt.Fprintf(w.Stdout, "%16s %s\n", fmt.Sprintf("%d of %d", c.Succeeded, canaryJobs(c)), causeName(c.Cause))
	}

	if untested := w.now.Operation.Causes - int64(len(all)); untested > 0 {
		fmt.Fprintf(w.Stdout, "%16d causes untested\n", untested)
	}
}

// warnOfSources says what a discard does at the sources of the jobs.
func (w *watcher) warnOfSources() {
	if w.kind != operation.Discard || w.now.Operation.Pending == 0 {
		return
	}

	for _, p := range w.now.Breakdown.Sources {
		are := "are"
		if p.Count == 1 {
			are = "is"
		}

		part := operation.SourcePart{Name: p.Name, Count: p.Count, Attached: p.Attached}
		fmt.Fprintf(w.Stdout, "Of these, %d %s %s.\n", p.Count, are, printable(part.Discarded()))
	}
}

// confirm asks the person at the terminal, who types y or yes, or above a thousand
// jobs their number. An interrupt means no.
func (w *watcher) confirm(ctx context.Context) error {
	if !isTerminal(w.Stdin) {
		return usage.Errorf("standard input is not a terminal, so you cannot be asked to confirm; " +
			"add --yes to continue, or --dry-run for a preview")
	}

	o, want := w.now.Operation, "yes"
	if o.Pending > operation.ConfirmAbove {
		want = strconv.FormatInt(o.Pending, 10)
	}

	fmt.Fprintf(w.Stdout, "%s %d jobs? Type %s: ", strings.ToUpper(string(w.kind[:1]))+string(w.kind[1:]), o.Pending, want)

	answered := make(chan string, 1)
	go func() { // ends with the process: nothing can end a read from a terminal
		answer, _ := bufio.NewReader(w.Stdin).ReadString('\n') // what cannot be read is no yes
		answered <- answer
	}()

	select {
	case answer := <-answered:
		if answer = strings.ToLower(strings.TrimSpace(answer)); answer == want || answer == "y" && want == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(w.Stdout)
	}

	return errors.New("not confirmed; nothing was done")
}

// follow shows the progress until the operation ends or pauses, and until the runs of
// its canary have ended. An interrupt ends the command only.
func (w *watcher) follow(ctx context.Context) error {
	wait := 2 * time.Second
	if w.live {
		wait = 250 * time.Millisecond
	}

	for {
		w.progress()

		o := w.now.Operation
		if o.State != operation.Running && !(o.State == operation.Paused && open(w.now.Progress)) {
			return w.end()
		}

		if err := w.look(ctx, wait); err != nil {
			w.newline()

			if ctx.Err() != nil {
				fmt.Fprintf(w.Stdout, "Operation %d keeps running without this command. To abort it: curl -X POST %s\n",
					o.ID, w.dashboard.URL(w.path("abort")))
				return nil
			}

			return fmt.Errorf("operation %d keeps running, but its progress cannot be read: %w", o.ID, err)
		}
	}
}

// progress draws a bar in place, or writes a line where something changed.
func (w *watcher) progress() {
	o := w.now.Operation
	line := fmt.Sprintf("%d of %d: %d done, %d skipped, %d failed; %d succeeded, %d failed again",
		o.Total-o.Pending, o.Total, o.Done, o.Skipped, o.Failed, o.Succeeded, o.Relapsed)
	if o.Unknown > 0 {
		line += fmt.Sprintf(", %d unknown", o.Unknown)
	}

	if line == w.printed {
		return
	}

	w.printed = line
	if !w.live {
		fmt.Fprintln(w.Stdout, line)
		return
	}

	const width = 30
	full := int(width * (o.Total - o.Pending) / max(o.Total, 1))
	fmt.Fprintf(w.Stdout, "\r\x1b[K[%s%s] %s", strings.Repeat("#", full), strings.Repeat(".", width-full), line)
}

// newline ends the line in which the bar is drawn.
func (w *watcher) newline() {
	if w.live {
		fmt.Fprintln(w.Stdout)
	}
}

// end prints how the operation ended, or returns why it did not.
func (w *watcher) end() error {
	w.newline()

	o := w.now.Operation
	switch o.State {
	case operation.Finished:
		fmt.Fprintf(w.Stdout, "Operation %d is finished.\n", o.ID)
		return nil
	case operation.Paused:
		return w.paused()
	}

	return fmt.Errorf("operation %d is %s: %s", o.ID, o.State, o.Why)
}

// pausedError says why an operation is paused, and on lines of their own the commands that
// end the pause.
type pausedError struct {
	why   string
	steps []string
}

func (e *pausedError) Error() string { return e.why }

// paused says why the operation waits and what to do, which depends on how its canary
// fared while nothing but the canary was replayed.
func (w *watcher) paused() error {
	o, c := w.now.Operation, w.now.Progress
	failed := c.CanaryRelapsed + c.CanaryDropped

	w.causes()

	e := &pausedError{steps: []string{w.step("resume it", "resume")}}
	canary := c.CanarySucceeded + failed + c.CanaryUnknown + c.CanaryAtSource
	switch {
	case canary == 0 || canary < o.Done:
		e.why = fmt.Sprintf("operation %d is paused: %s", o.ID, o.Why)
	case failed > 0 && c.CanaryUnknown+c.CanaryAtSource > 0:
		e.why = fmt.Sprintf("operation %d is paused because its canary failed: %d of %d failed again. Fix the cause, then resume it.",
			o.ID, failed, canary)
	case failed == 0 && c.CanaryUnknown+c.CanaryAtSource > 0:
		e.why = fmt.Sprintf("operation %d is paused after its canary: %s Look there whether the jobs ran, then resume it.",
			o.ID, w.atSource(canary))
	case c.CanarySucceeded < canary:
		e.why = fmt.Sprintf("operation %d is paused because its canary failed: %d of %d succeeded. Fix the cause, then resume it.",
			o.ID, c.CanarySucceeded, canary)
	default:
		e.why = fmt.Sprintf("operation %d is paused after its canary, which passed: %d of %d succeeded. Resume it to replay the rest.",
			o.ID, c.CanarySucceeded, canary)
	}

	// Once a canary is over that failed for some causes, those that passed can go on alone.
	over := canary >= o.Done && c.CanaryAtSource <= c.CanaryReturned
	causes := w.passedCauses()
	if failed > 0 && over && causes > 0 {
		what := fmt.Sprintf("resume only the %d of %d causes that passed", causes, o.Causes)
		e.steps = append(e.steps, w.step(what, "resume-passed"))
	}

	e.steps = append(e.steps, w.step("abort it", "abort"))

	return e
}

// step is a line that says what a command does to the operation.
func (w *watcher) step(what, act string) string {
	return "to " + what + ": curl -X POST " + w.dashboard.URL(w.path(act))
}

// passedCauses is how many causes are in the canary whose jobs all succeeded.
func (w *watcher) passedCauses() (n int64) {
	for _, c := range w.now.Progress.CanaryCauses {
		if passed(c) {
			n++
		}
	}

	return n
}

// atSource says in sentences what is known of a canary that a source has, or may have.
func (w *watcher) atSource(canary int64) string {
	c := w.now.Progress
	text := ""
	if c.CanaryAtSource > 0 {
		text += fmt.Sprintf("%d of %d handed to %s.", c.CanaryAtSource, canary, cmp.Or(c.Source, "their sources"))
	}

	if c.SourceReports == "failures" {
		text += " It reports only failures."
	}

	switch {
	case c.CanaryReturned > 0 && c.CanaryReturned == c.CanaryAtSource:
		text += " None came back within 10 minutes."
	case c.CanaryAtSource > 0:
		text += " What is not back by " + second(c.ReturnedUntil.Time) + " counts as returned."
	}

	if c.CanaryUnknown > 0 {
		text += fmt.Sprintf(" It is unknown whether the source took %d of %d.", c.CanaryUnknown, canary)
	}

	if c.CanarySucceeded > 0 {
		text += fmt.Sprintf(" %d succeeded.", c.CanarySucceeded)
	}

	return strings.TrimSpace(text)
}
