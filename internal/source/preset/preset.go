// Package preset holds what is known of the systems that can be attached: where each
// keeps its dead letters, what names one, and how one is replayed or discarded. That is
// data, one file in YAML for each system, which the families carry out.
//
// # SQL
//
// A statement names the tables in braces, {table}, and its values with a colon, :key.
// Tables and their schema can be named otherwise in redrive.yaml; names are quoted and
// never anything but names. The values are
//
//	:key, :witness   of the record, as they were read
//	:clean           the payload for the next run, made by the codec
//	:unix            seconds since 1970, now
//	:a, :b           the place in the list from where it goes on
//
// and those under values. The list of dead records is put together from fields, from,
// where and order. The last statement of an act must change exactly one row, and then all
// of them count; otherwise none does.
package preset

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"

	"redrive/internal/source"
)

// Preset describes one system.
type Preset struct {
	Name           string `yaml:"-"`
	source.Profile `yaml:",inline"`
	Family         string            `yaml:"family"`
	Engines        []string          `yaml:"engines"` // of SQL: sqlite, postgres, mysql
	Names          map[string]string `yaml:"names"`   // tables, and what they are called unless redrive.yaml says otherwise
	Values         map[string]string `yaml:"values"`  // likewise other values
	Zone           bool              `yaml:"zone"`    // times are those of a clock on the wall, in the zone that redrive.yaml names
	Codec          string            `yaml:"codec"`

	Probe   string                   `yaml:"probe"` // fails when the system is another one; its value is the version
	From    string                   `yaml:"from"`
	Where   string                   `yaml:"where"`
	Fields  map[string]string        `yaml:"fields"` // of a record, as SQL
	Order   []string                 `yaml:"order"`  // one or two fields that fall from row to row
	Same    string                   `yaml:"same"`   // finds the row of :key
	Alive   string                   `yaml:"alive"`  // the condition that the job of :key is under way
	Replay  map[source.Mode][]string `yaml:"replay"`
	Discard []string                 `yaml:"discard"`
	Errors  map[string]source.State  `yaml:"errors"`  // what an error of the database means, by its code
	Refused string                   `yaml:"refused"` // why an act changes nothing although the record lies there unchanged

	Redis *Redis `yaml:"redis"` // of the family redis, in place of all from Probe to Same
}

//go:embed presets/*.yaml
var files embed.FS

// All are the presets by their names.
func All() map[string]*Preset {
	entries, err := files.ReadDir("presets")
	if err != nil { // unreachable: the files are part of the program
		panic(err)
	}
	all := map[string]*Preset{}
	for _, e := range entries {
		p, err := read(e.Name())
		if err != nil { // unreachable: a test reads them all
			panic(err)
		}
		all[p.Name] = p
	}
	return all
}

func read(file string) (*Preset, error) {
	text, err := files.ReadFile(path.Join("presets", file))
	if err != nil {
		return nil, err
	}
	p := &Preset{Name: strings.TrimSuffix(file, ".yaml")}
	if err := yaml.UnmarshalWithOptions(text, p, yaml.DisallowUnknownField()); err != nil {
		return nil, fmt.Errorf("preset %s: %w", p.Name, err)
	}
	return p, nil
}

// Names are the names of all presets, in their order.
func Names() []string { return slices.Sorted(maps.Keys(All())) }

// Settings are what redrive.yaml says of a source beside its preset.
type Settings struct {
	Names  map[string]string
	Values map[string]string
	Zone   string // of the system's clock; empty: UTC
}

// Complete gives settings what the preset says where they say nothing. A name that the
// preset does not have is an error.
func (p *Preset) Complete(s Settings) (Settings, error) {
	for _, pair := range []struct{ given, known map[string]string }{{s.Names, p.Names}, {s.Values, p.Values}} {
		for name := range pair.given {
			if _, ok := pair.known[name]; !ok {
				return s, fmt.Errorf("the preset %s has no field %q; it has %s", p.Name, name, strings.Join(p.options(), ", "))
			}
		}
	}
	names, values := maps.Clone(p.Names), maps.Clone(p.Values)
	maps.Copy(names, s.Names)
	if values != nil {
		maps.Copy(values, s.Values)
	}
	return Settings{names, values, s.Zone}, nil
}

// options are the fields that a source of this preset can have in redrive.yaml.
func (p *Preset) options() []string {
	all := slices.Concat(slices.Collect(maps.Keys(p.Names)), slices.Collect(maps.Keys(p.Values)))
	if p.Zone {
		all = append(all, "zone")
	}
	slices.Sort(all)
	return all
}
