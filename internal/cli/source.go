package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"
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

	if found.report, err = origin.Check(ctx); err != nil {
		return seen{}, err
	}

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
		if found.more = after != ""; !found.more || found.dead >= countedTo {
			return found, nil
		}
	}
}

// unreachedError is why a source could not be looked at.
type unreachedError struct{ error }

func (e *unreachedError) Unwrap() error { return e.error }

// print says what was found.
func (s seen) print(w io.Writer, hide func(string) string) {
	line(w, "Version", clip.Text(hide(s.report.Version), 200))

	how := counted(s.dead, "dead letter")
	if s.more {
		how = "more than " + how
	}

	line(w, "Sees", how)

	for _, r := range s.newest {
		what := strings.Trim(r.Error.Type+": "+r.Error.Message, ": ")
		at := "at an unknown time"
		if !r.FailedAt.IsZero() {
			at = r.FailedAt.Format(time.DateTime) + " UTC"
		}

		line(w, "", clip.Text(fmt.Sprintf("%s %s %s %s", at, r.Queue, r.Type, hide(what)), 160))
	}

	if s.large > 0 {
		line(w, "Leaves", counted(s.large, "record")+" in quarantine: Redrive cannot take them over")
	}

	for _, r := range s.refused {
		line(w, "", clip.Text(hide(r.Key)+": "+r.Why, 160))
	}

	for _, sentence := range append(s.report.Sees, s.report.Warnings...) {
		line(w, "Note", clip.Text(hide(sentence), 500))
	}
}

// line prints one fact, with nothing in it that a terminal would obey.
func line(w io.Writer, name, fact string) {
	fmt.Fprintf(w, "  %-9s %s\n", name, printable(clip.Line(fact)))
}

// printActs says what the configuration and the source allow, and what would happen.
func printActs(w io.Writer, s config.Source, r source.Report) {
	for _, k := range []source.Kind{source.Replay, source.Discard} {
		allowed, may := slices.Contains(s.Allow, k), slices.Contains(r.May, k)
		switch {
		case !s.Preset.Has(k) && !s.Preset.Own:
			line(w, "Cannot", fmt.Sprintf("%s, because the preset has no %s.", k, k))
		case allowed && may:
			line(w, "Does", fmt.Sprintf("%s, when someone asks for it.", k))
		case allowed:
			line(w, "Fails", fmt.Sprintf("%s, because the source does not allow it to this user.", k))
		case may:
			line(w, "Refuses", fmt.Sprintf("%s, because allow in the configuration does not have it. The user at the source could.", k))
		default:
			line(w, "Refuses", fmt.Sprintf("%s, and the user at the source could not either.", k))
		}
	}

	once, fresh := s.Preset.Modes[source.Once], s.Preset.Modes[source.Fresh]
	line(w, "Replay", once)

	if fresh != once {
		line(w, "Or fresh", fresh)
	}

	for _, grant := range s.Preset.Grants {
		line(w, "Grant", grant)
	}

	for _, hazard := range s.Preset.Hazards {
		line(w, "Hazard", hazard)
	}

	for _, blank := range s.Preset.Blank {
		line(w, "Blank", blank)
	}

	fmt.Fprintln(w)
}

// sourceDiscover is dashboard source discover.
type sourceDiscover struct {
	URL string `arg:"" help:"For example postgres://user@host/database, sqlite:///path/to/file or amqp://user@host/?queues=orders.dlq."`
}

// Run prints the presets that fit, and fails when none does.
func (d *sourceDiscover) Run(c Console) error {
	queues := queuesOf(d.URL)
	if scheme, _, _ := strings.Cut(d.URL, "://"); families[scheme] == "amqp" && len(queues) == 0 {
		return usage.Errorf("name the dead-letter queues in the URL, for example amqp://host/vhost?queues=orders.dlq,mail.dlq. " +
			"Redrive does not look for them, because a look at a queue of work would hurt")
	}

	found, nothing, err := discover(d.URL, queues)
	if err != nil {
		return err
	}

	for _, f := range found {
		f.print(c.Stdout, queues)
	}

	if len(found) > 0 && len(nothing) > 0 {
		fmt.Fprintf(c.Stderr, "Nothing found for: %s.\n", strings.Join(nothing, ", "))
	}

	return nil
}

// fit is a preset with what it sees at a URL.
type fit struct {
	*preset.Preset
	seen
}

// discover looks at a URL with each preset that is for such a server. It returns those that
// see something, the ones with the most evidence first, and the names of the others.
func discover(address string, queues []string) (found []fit, nothing []string, err error) {
	presets := presetsFor(address)
	if len(presets) == 0 {
		return nil, nil, usage.Errorf("no preset is for such a URL; use postgres://, mysql://, sqlite://, redis:// or amqp://")
	}

	var last error
	for _, p := range presets {
		settings := preset.Settings{Queues: queues}
		if _, _, err := p.Complete(settings); err != nil { // the queues have other names there
			nothing, last = append(nothing, p.Name), err
			continue
		}

		s, err := lookAt(p, address, "", settings)
		if unreached := new(unreachedError); errors.As(err, &unreached) {
			return nil, nil, cannotConnect(address, unreached.error)
		}

		f := fit{p, s}
		if err == nil && f.evidence() > 0 {
			found = append(found, f)
			continue
		}

		nothing = append(nothing, p.Name)

		if err != nil {
			last = err
		}
	}

	if len(found) == 0 {
		err = fmt.Errorf("no preset fits what is there under the usual names. Nothing found for: %s. "+
			"Tables and keys with other names can be named in redrive.yaml, see docs/sources.md", strings.Join(nothing, ", "))
		if last != nil {
			err = fmt.Errorf("%w. The last answer was: %w", err, last)
		}

		return nil, nil, err
	}

	slices.SortStableFunc(found, func(a, b fit) int {
		return cmp.Or(cmp.Compare(b.evidence(), a.evidence()), cmp.Compare(b.dead, a.dead))
	})

	return found, nothing, nil
}

// evidence is how much speaks for the preset: nothing, places of the system without dead
// letters, dead letters that any system could have, or those that only this one has.
func (f fit) evidence() int {
	amqp := f.Family == "amqp"
	switch {
	case f.report.Absent, amqp && f.dead == 0:
		return 0
	case f.dead == 0:
		return 1
	case amqp && f.Codec == "json" && len(f.AMQP.Type) == 0:
		return 2
	case f.Family == "sql" || slices.ContainsFunc(f.newest, f.wrote):
		return 3
	}

	return 0
}

// wrote reports whether a record looks as the system writes it: it can be read, and it has a
// header with its type, where the system sends one.
func (f fit) wrote(r source.Record) bool {
	if r.Type == "unknown" || slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, "The record is shown raw") }) {
		return false
	}

	if f.AMQP == nil || len(f.AMQP.Type) == 0 {
		return true
	}

	var meta struct{ Headers map[string]json.RawMessage }
	if json.Unmarshal(r.Meta, &meta) != nil {
		return false
	}

	return slices.ContainsFunc(f.AMQP.Type, func(name string) bool { return meta.Headers[name] != nil })
}

// print says what the preset sees and how to attach the source.
func (f fit) print(w io.Writer, queues []string) {
	fmt.Fprintf(w, "%s: %s\n", f.Name, f.Title)
	f.seen.print(w, func(s string) string { return s })
	fmt.Fprintf(w, "\nsources:\n  NAME:\n    preset: %s\n    url_env: NAME_URL\n", f.Name)

	if f.AMQP != nil {
		fmt.Fprintf(w, "    queues: [%s]\n", strings.Join(queues, ", "))
	}

	fmt.Fprintln(w)
}

// cannotConnect says where there is no answer, in the words of the system.
func cannotConnect(address string, err error) error {
	u, parsed := url.Parse(address)
	if parsed != nil || u.Host == "" || u.Scheme == "sqlite" {
		return err
	}

	why := strings.TrimPrefix(err.Error(), "connect: ")
	name := new(net.DNSError)
	switch errno := syscall.Errno(0); {
	case errors.As(err, &errno):
		why = errno.Error()
	case errors.As(err, &name):
		why = name.Err
	}

	return fmt.Errorf("cannot connect to %s: %s", u.Host, why)
}

// families are those of the servers that one kind of URL names.
var families = map[string]string{"redis": "redis", "rediss": "redis", "amqp": "amqp", "amqps": "amqp"}

// queuesOf are the dead-letter queues that a URL of RabbitMQ names for discover, as in
// ?queues=orders.dlq,mail.dlq.
func queuesOf(address string) []string {
	u, err := url.Parse(address)
	if err != nil || u.Query().Get("queues") == "" {
		return nil
	}

	return strings.Split(u.Query().Get("queues"), ",")
}

// presetsFor are the presets for servers of this kind, but for that of own tables, which
// fits nothing before its columns are named, and for those that need a second URL.
func presetsFor(address string) (all []*preset.Preset) {
	scheme, _, _ := strings.Cut(address, "://")
	engine := map[string]string{"postgresql": "postgres", "mariadb": "mysql"}[scheme]
	if engine == "" {
		engine = scheme
	}

	presets := preset.All()
	for _, name := range preset.Names() {
		p := presets[name]
		if p.Own || p.Work != nil {
			continue
		}

		if slices.Contains(p.Engines, engine) || p.Family == families[scheme] {
			all = append(all, p)
		}
	}

	return all
}
