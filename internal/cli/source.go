package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"redrive/internal/app"
	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/usage"
)

// sourceCommand is dashboard source: it looks at sources, and changes nothing.
type sourceCommand struct {
	Check    sourceCheck    `cmd:"" help:"Say what Redrive sees in each source of a configuration file, and what it may and would do there."`
	Discover sourceDiscover `cmd:"" help:"Say which presets fit what lies at a URL."`
}

// How far the two commands look.
const (
	lookFor   = 30 * time.Second // at one source
	countedTo = 10_000           // dead letters
	newestOf  = 3
)

// sourceCheck is dashboard source check.
type sourceCheck struct {
	File string `arg:"" optional:"" help:"The file (redrive.yaml)." default:"redrive.yaml"`
}

// Run prints what each source is, and fails when one of them cannot be attached.
func (k *sourceCheck) Run(c Console) error {
	settings, err := loadConfig(k.File)
	if err != nil {
		return err
	}

	all := settings.Sources()
	if len(all) == 0 {
		return usage.Errorf("%s has no section sources; see docs/sources.md", k.File)
	}

	failed := 0
	for _, s := range all {
		fmt.Fprintf(c.Stdout, "%s: %s\n", s.Name, s.Preset.Title)

		seen, err := lookAt(s.Preset, s.URL.Reveal(), s.Work.Reveal(), s.Settings)
		if err != nil {
			failed++

			fmt.Fprintf(c.Stdout, "  Cannot be attached: %s\n\n", printable(settings.Redactor().Text(clip.Line(clip.Text(err.Error(), 4000)))))
			continue
		}

		seen.print(c.Stdout, settings.Redactor().Text)
		printActs(c.Stdout, s, seen.report)
	}

	// All sources are looked at before the command fails, so that one run shows all that is
	// wrong.
	if failed > 0 {
		return fmt.Errorf("%d of %s cannot be attached", failed, counted(len(all), "source"))
	}

	return nil
}

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

	how := counted(s.dead, "dead letter")
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
		printFact(w, "Leaves", counted(s.large, "record")+" in quarantine: Redrive cannot take them over")
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
	fmt.Fprintf(w, "  %-9s %s\n", name, printable(clip.Line(fact)))
}

// printActs says what the configuration and the source allow, and what would happen.
func printActs(w io.Writer, s config.Source, r source.Report) {
	for _, k := range []source.Kind{source.Replay, source.Discard} {
		allowed, may := slices.Contains(s.Allow, k), slices.Contains(r.May, k)
		switch {
		// The acts of the preset own are described in redrive.yaml, so it is no limit of the
		// preset when one is missing.
		case !s.Preset.Has(k) && !s.Preset.Own:
			printFact(w, "Cannot", fmt.Sprintf("%s, because the preset has no %s.", k, k))
		case allowed && may:
			printFact(w, "Does", fmt.Sprintf("%s, when someone asks for it.", k))
		case allowed:
			printFact(w, "Fails", fmt.Sprintf("%s, because the source does not allow it to this user.", k))
		case may:
			printFact(w, "Refuses", fmt.Sprintf("%s, because allow in the configuration does not have it. The user at the source could.", k))
		default:
			printFact(w, "Refuses", fmt.Sprintf("%s, and the user at the source could not either.", k))
		}
	}

	// What a replay does there, in the words of the preset; the second way only where it
	// differs.
	once, fresh := s.Preset.Modes[source.Once], s.Preset.Modes[source.Fresh]
	printFact(w, "Replay", once)

	if fresh != once {
		printFact(w, "Or fresh", fresh)
	}

	for _, grant := range s.Preset.Grants {
		printFact(w, "Grant", grant)
	}

	for _, hazard := range s.Preset.Hazards {
		printFact(w, "Hazard", hazard)
	}

	for _, blank := range s.Preset.Blank {
		printFact(w, "Blank", blank)
	}

	fmt.Fprintln(w)
}
