// Package preset holds what is known of the systems that can be attached: where each
// keeps its dead letters, what names one, and how one is replayed or discarded. That is
// data, one file in YAML for each system, which the families carry out.
//
// # SQL
//
// A statement names the tables in braces, {table}, and its values with a colon, :key.
// Tables and their schema can be named otherwise in redrive.yaml; names are quoted and
// never anything but names. A name in braces can also be a word, which is SQL that the
// databases write differently. The values are
//
//	:key, :witness   of the record, as they were read
//	:clean           the payload for the next run, made by the codec
//	:edited          the record with another payload, and nothing else changed; NULL when it keeps its own
//	:target          the queue for the next run, where the preset looks it up
//	:unix            seconds since 1970, now
//	:wall            now, by the clock on the system's wall
//	:due             seconds since 1970, when the job shall run: now, or later
//	:wait            seconds until then
//	:due_wall        then, by the clock on the wall; NULL for now
//	:allowed         attempts that the job had when it was seen first; 0 when that is not known
//	:a, :b           the place in the list from where it goes on
//
// and those under values. The list of dead records is put together from fields, from,
// where and order. The last statement of an act must change exactly one row, and then all
// of them count; otherwise none does. It compares the version token, so that it finds the
// record only as it was seen.
package preset

import (
	"embed"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

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

	Columns   map[string][]string          `yaml:"columns"` // by table: what must be there
	Words     map[string]map[string]string `yaml:"words"`   // by engine: what the databases write differently
	Probe     string                       `yaml:"probe"`   // reads the version; empty: there is none
	From      string                       `yaml:"from"`
	Where     string                       `yaml:"where"`
	Each      []string                     `yaml:"each"`   // conditions for lists of their own, which are merged; Order then has two
	Fields    map[string]string            `yaml:"fields"` // of a record, as SQL
	Order     []string                     `yaml:"order"`  // one or two fields that fall from row to row
	Same      string                       `yaml:"same"`   // finds the row of :key; can also name the :witness
	Lock      []string                     `yaml:"lock"`   // finds that row in the first table, as the first of these that does; empty: Same
	Alive     string                       `yaml:"alive"`  // counts the jobs of :key that are under way, or have succeeded
	Pushed    string                       `yaml:"pushed"` // counts the jobs of :thread among the newest of the queue, for a replay
	Target    string                       `yaml:"target"` // reads the queue for the next run of :key
	Replay    map[source.Mode][]string     `yaml:"replay"`
	Discard   []string                     `yaml:"discard"`
	Errors    map[string]source.State      `yaml:"errors"`    // what an error of the database means, by its code
	Refused   string                       `yaml:"refused"`   // why an act changes no row although the record is there unchanged
	Succeeded string                       `yaml:"succeeded"` // finds those of :keys that have succeeded; empty: they are not kept
	Unique    *Unique                      `yaml:"unique"`    // what tells rows apart; nil: a key of the database does
	Others    *Others                      `yaml:"others"`    // rows of the table that belong to another source; nil: there are none
	Own       bool                         `yaml:"own"`       // redrive.yaml describes the table and has the statements, or describes the keys

	Work  *Work         `yaml:"work"`  // the queue that a replay goes to, when it is in Redis; nil: it is in the database
	Redis *Redis        `yaml:"redis"` // of the family redis, in place of all from Columns to Same
	AMQP  *AMQP         `yaml:"amqp"`  // of the family amqp, in place of all from Columns to Discard
	Every time.Duration `yaml:"every"` // between two looks, unless redrive.yaml says otherwise; 0: the default of all
}

// Unique is what tells the rows of a table apart, where the database does not see to it
// that no two rows have the same, and that none has nothing.
type Unique struct {
	Column   string `yaml:"column"`
	By       string `yaml:"by"`       // what is read of it, as SQL
	Nameless string `yaml:"nameless"` // what becomes of rows in which that is NULL, in a sentence
	Mend     string `yaml:"mend"`     // the statement that gives these rows one
}

// Others are rows that are in the table of the dead records and are not listed.
type Others struct {
	Count string `yaml:"count"` // reads what they have in common, and how many there are
	Why   string `yaml:"why"`   // in a sentence
}

//go:embed presets/*.yaml
var files embed.FS

// All are the presets by their names, read once. Callers must not change them: Complete
// makes a copy.
var All = sync.OnceValue(func() map[string]*Preset {
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
})

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
	Names   map[string]string
	Values  map[string]string
	Zone    string // of the system's clock; empty: UTC
	Where   string // these three are of an own table
	Replay  []string
	Discard []string
	Queues  []string // of the family amqp: the dead-letter queues
}

// Complete gives settings what the preset says where they say nothing, and the preset
// what the settings say of an own table. What the preset does not know is an error.
func (p *Preset) Complete(s Settings) (*Preset, Settings, error) {
	for _, pair := range []struct{ given, known map[string]string }{{s.Names, p.Names}, {s.Values, p.Values}} {
		for _, name := range slices.Sorted(maps.Keys(pair.given)) {
			if _, ok := pair.known[name]; !ok {
				return nil, s, fmt.Errorf("the preset %s has no field %q; it has %s", p.Name, name, strings.Join(p.options(), ", "))
			}
		}
	}

	// The names of the preset count where redrive.yaml gives no other ones.
	names, values := maps.Clone(p.Names), maps.Clone(p.Values)
	maps.Copy(names, s.Names)

	if values != nil {
		maps.Copy(values, s.Values)
	}

	s.Names, s.Values = names, values
	completed := *p
	switch {
	// An own preset of Redis is made from the names alone, which ownKeys checks.
	case p.Own && p.Family == "redis":
		return &completed, s, completed.ownKeys(names)
	case p.Own:
		completed.own(s)
	}

	// A name that the list of records uses must not be empty: statements would have no table or
	// column there.
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if names[name] == "" && completed.needs(name) {
			return nil, s, fmt.Errorf("needs a field %s", name)
		}
	}

	if p.AMQP != nil {
		if err := p.AMQP.check(s); err != nil {
			return nil, s, err
		}
	}

	return &completed, s, completed.Check()
}

// own takes over what redrive.yaml says of an own table. A column that it does not name
// is not read; without a version token, the key is all that must not have changed.
func (p *Preset) own(s Settings) {
	p.Fields = maps.Clone(p.Fields)

	// A field of one column, such as {error}, goes when redrive.yaml does not name that column.
	maps.DeleteFunc(p.Fields, func(_, text string) bool {
		names, _ := placeholders(text)
		return len(names) == 1 && s.Names[names[0]] == "" && names[0] != "key"
	})

	if s.Names["witness"] == "" {
		p.Fields["witness"] = p.Fields["key"]
	}

	unique := *p.Unique
	unique.Column = s.Names["key"]

	p.Unique = &unique

	// The check of the table looks for all columns that are left. Two fields can be of one
	// column, for example the key and the version token.
	p.Columns = map[string][]string{"table": nil}
	for _, text := range p.Fields {
		names, _ := placeholders(text)
		p.Columns["table"] = append(p.Columns["table"], s.Names[names[0]])
	}

	slices.Sort(p.Columns["table"])

	p.Columns["table"] = slices.Compact(p.Columns["table"])
	if s.Where != "" {
		// In parentheses, OR in the condition does not reach beyond it.
		p.Where = "(" + s.Where + ")"
	}

	p.Same += " AND " + p.Where
	p.Replay, p.Discard = map[source.Mode][]string{}, s.Discard
	if len(s.Replay) > 0 {
		// The same statements serve both modes. The values that they use tell what a replay can
		// do.
		p.Replay = map[source.Mode][]string{source.Once: s.Replay, source.Fresh: s.Replay}
		p.Edits = Uses(s.Replay, "clean") || Uses(s.Replay, "edited")
		p.Delays = Uses(s.Replay, "due") || Uses(s.Replay, "wait") || Uses(s.Replay, "due_wall")
	}
}

// needs reports whether the list of records has a name.
func (p *Preset) needs(name string) bool {
	texts := append(slices.Collect(maps.Values(p.Fields)), p.From, p.Where, p.Same)

	return slices.ContainsFunc(append(texts, p.Order...), func(text string) bool {
		names, _ := placeholders(text)
		return slices.Contains(names, name)
	})
}

// Check returns an error when an act could change what the person did not see, or when
// a value does not exist. The scripts of Redis are no statements: they compare the record
// on their own with what the person saw.
func (p *Preset) Check() error {
	if p.Family != "sql" {
		return nil
	}

	_, values := placeholders(p.Where)
	for _, value := range values {
		if _, ok := p.Values[value]; !ok {
			return fmt.Errorf("where has the value :%s, which there is not", value)
		}
	}

	for _, mode := range slices.Sorted(maps.Keys(p.Replay)) {
		if err := p.checkAct("replay", p.Replay[mode]); err != nil {
			return err
		}
	}

	return p.checkAct("discard", p.Discard)
}

// Has reports whether the preset knows how an act is done.
func (p *Preset) Has(k source.Kind) bool {
	if p.AMQP != nil {
		return true
	}

	if k == source.Discard {
		return len(p.Discard) > 0
	}

	return len(p.Replay) > 0
}

// options are the fields that a source of this preset can have in redrive.yaml.
func (p *Preset) options() []string {
	all := slices.Concat(slices.Collect(maps.Keys(p.Names)), slices.Collect(maps.Keys(p.Values)))
	if p.Zone {
		all = append(all, "zone")
	}

	if p.Own && p.Family == "sql" {
		all = append(all, "where", "replay", "discard")
	}

	if p.AMQP != nil {
		all = append(all, "queues")
	}

	slices.Sort(all)

	return all
}
