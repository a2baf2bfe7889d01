package config

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"

	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// Source is a source as the file names it.
type Source struct {
	Name     string
	Preset   *preset.Preset
	Profile  source.Profile
	URL      Secret // with its password
	Work     Secret // likewise of the queue that replays go to, where that is elsewhere
	Allow    []source.Kind
	Every    time.Duration // between two looks
	Settings preset.Settings

	MovedFrom string // the address that it had before, if what is there now is the same
}

// How often a source is looked at.
const (
	defaultEvery = 5 * time.Second // unless the preset has another one
	leastEvery   = time.Second
)

// Fingerprint tells two versions of a source apart. It changes with everything that the
// file says about the source, and with the secrets that the file names. It must not be
// logged: a weak password could be guessed from it.
func (s *Source) Fingerprint() string {
	type said Source // without a method, but with all fields

	text, err := json.Marshal(struct {
		said
		Preset, URL, Work string // in place of the fields of these names
	}{said(*s), s.Preset.Name, s.URL.Reveal(), s.Work.Reveal()})
	if err != nil { // unreachable: these are texts, numbers, and lists and maps of them
		panic(err)
	}

	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:])
}

// Address is where the dead letters of the source are, without a login, see [preset.Preset.Address].
func (s *Source) Address() string { return s.Preset.Address(s.URL.Reveal(), s.Settings) }

// Sources are those of the file, by their names.
func (c *Config) Sources() []Source {
	c = c.now()
	return c.sources
}

// readSources reads the section sources.
func (c *Config) readSources(v value) error {
	presets := preset.All()

	err := v.entries(func(name string, v value) error {
		s := Source{Name: name, Settings: preset.Settings{Names: map[string]string{}, Values: map[string]string{}}}
		if err := source.CheckName(name); err != nil {
			return v.wrong("%s", problem(err))
		}

		err := s.read(v, presets)
		c.sources = append(c.sources, s)

		return err
	})
	if err != nil {
		return err
	}

	// A secret in a file can change while the text of the section stays as it was.
	var all []string
	for i := range c.sources {
		all = append(all, c.sources[i].Fingerprint())
	}

	slices.Sort(all)
	c.sections["sources"] = strings.Join(all, " ")

	return nil
}

// read reads one source. The fields that it can have beside the common ones are those of
// its preset.
func (s *Source) read(v value, presets map[string]*preset.Preset) error {
	if err := v.mapping(); err != nil {
		return err
	}

	var urls, works []Secret

	secrets := secretFields(&urls)
	known := map[string]func(value) error{
		"url": secrets["secret"], "url_env": secrets["secret_env"], "url_file": secrets["secret_file"],
		"allow": into(&s.Allow, listOf(sourceKind)), "moved_from": into(&s.MovedFrom, value.text),
		"every": func(v value) (err error) {
			s.Every, err = positive(v)
			if err == nil && s.Every < leastEvery {
				err = v.wrong("is too often; once a second at most")
			}

			return err
		},
		"preset": func(v value) error {
			name, err := v.text()
			if err == nil && presets[name] == nil {
				err = v.wrong("is not a preset; use one of %s", strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
			}

			s.Preset = presets[name]

			return err
		},
	}

	// Which other fields there are depends on the preset, which may stand below them in the file.
	if p := presets[v.peek("preset")]; p != nil {
		s.ofPreset(p, known)

		if p.Work != nil {
			secrets := secretFields(&works)
			known["work_url"], known["work_url_env"], known["work_url_file"] = secrets["secret"], secrets["secret_env"], secrets["secret_file"]
		}
	}

	err := v.fields(known)
	switch {
	case err != nil:
		return err
	case s.Preset == nil:
		return v.wrong("needs a preset; use one of %s", strings.Join(slices.Sorted(maps.Keys(presets)), ", "))
	case len(urls) != 1:
		return v.wrong("needs exactly one of url, url_env and url_file")
	case s.Preset.Work != nil && len(works) != 1:
		return v.wrong("needs exactly one of work_url, work_url_env and work_url_file: the Redis where the queue is")
	}

	// The addresses are checked by the preset, which knows what its servers are called.
	s.URL = urls[0]
	err = s.Preset.CheckURL(s.URL.Reveal())
	if s.Preset.Work != nil {
		s.Work = works[0]
		err = cmp.Or(err, s.Preset.CheckWorkURL(s.Work.Reveal()))
	}

	if err != nil {
		return v.wrong("%s", err)
	}

	s.Every = cmp.Or(s.Every, s.Preset.Every, defaultEvery)

	return s.complete(v)
}

// ofPreset adds the fields that a preset has.
func (s *Source) ofPreset(p *preset.Preset, known map[string]func(value) error) {
	for field := range p.Names {
		known[field] = keep(s.Settings.Names, field)
	}

	for field := range p.Values {
		known[field] = keep(s.Settings.Values, field)
	}

	if p.Zone {
		known["zone"] = into(&s.Settings.Zone, zone)
	}

	if p.AMQP != nil {
		known["queues"] = into(&s.Settings.Queues, textList)
	}

	if p.Own && p.Family == "sql" {
		known["where"] = into(&s.Settings.Where, value.text)
		known["replay"] = into(&s.Settings.Replay, textList)
		known["discard"] = into(&s.Settings.Discard, textList)
	}
}

// complete holds a source to its preset: what it needs is there, and what it allows can
// be done.
func (s *Source) complete(v value) error {
	p, _, err := s.Preset.Complete(s.Settings)
	if err != nil {
		return v.wrong("%s", err)
	}

	s.Profile = p.Profile
	for _, k := range s.Allow {
		if p.Has(k) {
			continue
		}

		if p.Family == "redis" {
			return v.wrong("allows %s, and nothing says where to: add a field work", k)
		}

		return v.wrong("allows %s, and there are no statements for that: add a field %s", k, k)
	}

	return nil
}

// peek is the text of a field, before the mapping is read; empty when there is none.
func (v value) peek(name string) string {
	mapping, ok := v.node.(ast.MapNode)
	if !ok {
		return ""
	}

	entry := mapping.MapRange()
	for entry.Next() {
		if entry.Key().GetToken().Value == name {
			return entry.Value().GetToken().Value
		}
	}

	return ""
}

// keep makes a reader of a text that goes into a map.
func keep(to map[string]string, name string) func(value) error {
	return func(v value) (err error) {
		to[name], err = v.text()
		return err
	}
}

// zone reads the name of a time zone.
func zone(v value) (string, error) {
	name, err := v.text()
	if err == nil {
		if _, unknown := time.LoadLocation(name); unknown != nil {
			err = v.wrong("is not a time zone such as Europe/Berlin")
		}
	}

	return name, err
}

func sourceKind(v value) (source.Kind, error) {
	return word(func(k source.Kind) bool { return k == source.Replay || k == source.Discard }, "unknown; use replay and discard")(v)
}
