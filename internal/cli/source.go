package cli

import (
	"fmt"
	"io"
	"slices"

	"redrive/internal/cli/console"
	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/source"
	"redrive/internal/usage"
)

// sourceCommand is dashboard source: it looks at sources, and changes nothing.
type sourceCommand struct {
	Check    sourceCheck    `cmd:"" help:"Say what Redrive sees in each source of a configuration file, and what it may and would do there."`
	Discover sourceDiscover `cmd:"" help:"Say which presets fit what lies at a URL."`
}

// sourceCheck is dashboard source check.
type sourceCheck struct {
	File string `arg:"" optional:"" help:"The file (redrive.yaml)." default:"redrive.yaml"`
}

// Run prints what each source is, and fails when one of them cannot be attached.
func (k *sourceCheck) Run(c console.Console) error {
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

			why := settings.Redactor().Text(clip.Line(clip.Text(err.Error(), 4000)))
			fmt.Fprintf(c.Stdout, "  Cannot be attached: %s\n\n", console.Printable(why))

			continue
		}

		seen.print(c.Stdout, settings.Redactor().Text)
		printActs(c.Stdout, s, seen.report)
	}

	// All sources are looked at before the command fails, so that one run shows all that is
	// wrong.
	if failed > 0 {
		return fmt.Errorf("%d of %s cannot be attached", failed, console.Counted(len(all), "source"))
	}

	return nil
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
