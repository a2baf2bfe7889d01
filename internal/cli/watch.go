package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/operation"
)

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
		if o.State != operation.Running && !(o.State == operation.Paused && awaitsCanary(w.now.Progress)) {
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
		text += " What is not back by " + console.ToTheSecond(c.ReturnedUntil.Time) + " counts as returned."
	}

	if c.CanaryUnknown > 0 {
		text += fmt.Sprintf(" It is unknown whether the source took %d of %d.", c.CanaryUnknown, canary)
	}

	if c.CanarySucceeded > 0 {
		text += fmt.Sprintf(" %d succeeded.", c.CanarySucceeded)
	}

	return strings.TrimSpace(text)
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

// canaryJobs is how many jobs of a cause were in the canary.
func canaryJobs(c work.CanaryCause) int64 {
	return c.Succeeded + c.Relapsed + c.Dropped + c.Unknown + c.Unsettled
}

// passed reports whether all of them succeeded.
func passed(c work.CanaryCause) bool { return canaryJobs(c) > 0 && c.Succeeded == canaryJobs(c) }

// awaitsCanary reports whether more is expected of the canary soon: runs of Redrive's own end, and
// some sources say how theirs did. Others say nothing unless a run fails.
func awaitsCanary(p work.Progress) bool {
	if p.CanaryUnsettled > p.CanaryAtSource {
		return true
	}
	return p.CanaryAtSource > p.CanaryReturned && p.SourceReports != "failures"
}
