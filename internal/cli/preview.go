package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/apitype/work"
	"redrive/internal/cli/console"
	"redrive/internal/operation"
	"redrive/internal/usage"
)

// preview prints how many jobs would take part, and how many would not and why.
func (w *watcher) preview(pace work.PaceRequest) {
	o, b := w.now.Operation, w.now.Breakdown
	fmt.Fprintf(w.Stdout, "Operation %d: %s %s\n", o.ID, w.kind, o.Filter)
	fmt.Fprintf(w.Stdout, "%8d eligible\n", o.Pending)

	for _, p := range b.Scope {
		fmt.Fprintf(w.Stdout, "%16d %s, %s\n", p.Count, console.Printable(p.Queue), console.Printable(p.Type))
	}

	// A single cause needs no list.
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

	// A spread is a duration that the user has written; a rate has to be turned into one.
	if pace.Rate != nil && o.Pending > 0 {
		takes := time.Duration(float64(o.Pending) / *pace.Rate * float64(time.Second))
		fmt.Fprintf(w.Stdout, "At this rate it takes about %s.\n", takes.Round(time.Second))
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
		fmt.Fprintf(w.Stdout, "Of these, %d %s %s.\n", p.Count, are, console.Printable(part.Discarded()))
	}
}

// confirm asks the person at the terminal, who types y or yes, or above a thousand
// jobs their number. An interrupt means no.
func (w *watcher) confirm(ctx context.Context) error {
	if !console.IsTerminal(w.Stdin) {
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
		answer = strings.ToLower(strings.TrimSpace(answer))
		if answer == want || answer == "y" && want == "yes" {
			return nil
		}
	case <-ctx.Done():
		fmt.Fprintln(w.Stdout)
	}

	return errors.New("not confirmed; nothing was done")
}
