package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"redrive/internal/app"
	"redrive/internal/cli/console"
	"redrive/internal/clip"
	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// How far the two commands look.
const (
	lookFor   = 30 * time.Second // at one source
	countedTo = 10_000           // dead letters
	newestOf  = 3
)

// seen is what a look at a source has found.
type seen struct {
	report source.Report
	newest []source.Record
	dead   int
	more   bool // than that

	refused []source.Refusal // the first of the records that cannot be taken over
	large   int              // how many these are
}

// lookAt connects with a source and reads the dead letters there.
func lookAt(p *preset.Preset, address, work string, s preset.Settings) (found seen, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), lookFor)
	defer cancel()

	origin, err := app.OpenSource(ctx, p, address, work, s)
	if err != nil {
		return seen{}, &unreachedError{err}
	}

	defer func() { err = errors.Join(err, origin.Close()) }()

	found.report, err = origin.Check(ctx)
	if err != nil {
		return seen{}, err
	}

	// Read page by page, keep the newest records to show, and count the others.
	after := ""
	for {
		page, err := origin.Scan(ctx, after, 500)
		if err != nil {
			return seen{}, err
		}

		if room := newestOf - len(found.newest); room > 0 {
			newest := page.Records[:min(room, len(page.Records))]
			page.Complete(newest)
			found.newest = append(found.newest, newest...)
		}

		found.dead += len(page.Records) + len(page.Refused)
		found.large += len(page.Refused)
		room := max(0, newestOf-len(found.refused))

		found.refused = append(found.refused, page.Refused[:min(room, len(page.Refused))]...)
		after = page.Next

		found.more = after != ""
		if !found.more || found.dead >= countedTo {
			return found, nil
		}
	}
}

// unreachedError is why a source could not be looked at.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// print says what was found.
func (s seen) print(w io.Writer, hide func(string) string) {
	printFact(w, "Version", clip.Text(hide(s.report.Version), 200))

	how := console.Counted(s.dead, "dead letter")
	if s.more {
		how = "more than " + how
	}

	printFact(w, "Sees", how)

	for _, r := range s.newest {
		// The type or the message may be missing, which leaves "TypeError: " or ": timed out"
		// to trim.
		what := strings.Trim(r.Error.Type+": "+r.Error.Message, ": ")
		at := "at an unknown time"
		if !r.FailedAt.IsZero() {
			at = r.FailedAt.Format(time.DateTime) + " UTC"
		}

		printFact(w, "", clip.Text(fmt.Sprintf("%s %s %s %s", at, r.Queue, r.Type, hide(what)), 160))
	}

	// Of the records that cannot be taken over, all are counted, and the first ones are named.
	if s.large > 0 {
		printFact(w, "Leaves", console.Counted(s.large, "record")+" in quarantine: Redrive cannot take them over")
	}

	for _, r := range s.refused {
		printFact(w, "", clip.Text(hide(r.Key)+": "+r.Why, 160))
	}

	for _, sentence := range append(s.report.Sees, s.report.Warnings...) {
		printFact(w, "Note", clip.Text(hide(sentence), 500))
	}
}

// printFact prints one fact, with nothing in it that a terminal would obey.
func printFact(w io.Writer, name, fact string) {
	fmt.Fprintf(w, "  %-9s %s\n", name, console.Printable(clip.Line(fact)))
}
