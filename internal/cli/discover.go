package cli

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"slices"
	"strings"
	"syscall"

	"redrive/internal/cli/console"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/usage"
)

// sourceDiscover is dashboard source discover.
type sourceDiscover struct {
	URL string `arg:"" help:"For example postgres://user@host/database, sqlite:///path/to/file or amqp://user@host/?queues=orders.dlq."`
}

// Run prints the presets that fit, and fails when none does.
func (d *sourceDiscover) Run(c console.Console) error {
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

		// A preset fits where it sees something of its system, even without a dead letter.
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
