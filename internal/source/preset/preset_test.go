package preset_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// ofSQL runs a test with each preset of the SQL family.
func ofSQL(t *testing.T, do func(t *testing.T, p *preset.Preset)) {
	for name, p := range preset.All() {
		if p.Family == "sql" {
			t.Run(name, func(t *testing.T) { do(t, p) })
		}
	}
}

func TestPresets_AreComplete(t *testing.T) {
	for name, p := range preset.All() {
		if p.Title == "" || p.Family == "" || p.Version == "" {
			t.Errorf("%s has no title, family or version", name)
		}
		if len(p.Grants) == 0 || len(p.Hazards) == 0 {
			t.Errorf("%s says nothing of grants or hazards", name)
		}
		texts := append([]string{p.Attempts}, slices.Concat(p.Hazards, p.Blank)...)
		if p.Refused != "" {
			texts = append(texts, p.Refused)
		}
		for _, mode := range []source.Mode{source.Once, source.Fresh} {
			texts = append(texts, p.Modes[mode])
		}
		for _, text := range texts {
			if !strings.HasSuffix(text, ".") {
				t.Errorf("%s: %q does not end with a full stop", name, text)
			}
		}
	}
}

// rightsInRedis are the keys of a grant, where it names some, and the first commands after them.
var rightsInRedis = regexp.MustCompile(`(~[a-z][^ ]* )*\+[a-z]+( \+[a-z]+)*`)

// The documents name the rights that a look needs, and those of a queue in Redis.
func TestPresets_RightsInRedisAreInTheDocuments(t *testing.T) {
	docs := ""
	for _, name := range []string{"sources.md", "sources-redis.md"} {
		text, err := os.ReadFile("../../../docs/" + name)
		if err != nil {
			t.Fatal(err)
		}
		docs += strings.ReplaceAll(string(text), "~shop_database_", "~laravel_database_") // which is the default
	}

	checked := 0
	for name, p := range preset.All() {
		for _, grant := range p.Grants {
			rights := rightsInRedis.FindString(grant)
			if rights == "" || strings.HasPrefix(grant, "to replay: ") || strings.HasPrefix(grant, "to discard: ") {
				continue
			}
			checked++
			if !strings.Contains(docs, rights) {
				t.Errorf("no document says that %s needs %q", name, rights)
			}
		}
	}
	if checked < 10 {
		t.Errorf("only %d grants were looked for", checked)
	}
}

func TestPresets_OfSQLHaveWhatTheFamilyNeeds(t *testing.T) {
	ofSQL(t, func(t *testing.T, p *preset.Preset) {
		if _, ok := codec.Get(p.Codec); !ok {
			t.Errorf("there is no codec %q", p.Codec)
		}
		for _, e := range p.Engines {
			if !slices.Contains([]string{"sqlite", "postgres", "mysql"}, e) {
				t.Errorf("there is no engine %q", e)
			}
		}
		for _, field := range []string{"key", "witness", "a"} {
			if p.Fields[field] == "" {
				t.Errorf("there is no field %s", field)
			}
		}
		if len(p.Engines) == 0 || p.From == "" || p.Where == "" || p.Same == "" || len(p.Order) == 0 || len(p.Order) > 2 {
			t.Errorf("the list is not complete")
		}
		if second := p.Fields["b"] != ""; second != (len(p.Order) == 2) {
			t.Errorf("the fields a and b do not fit the order %q", p.Order)
		}
		for table := range p.Columns {
			if p.Names[table] == "" {
				t.Errorf("columns are expected of %s, which is not named", table)
			}
		}
	})
}

// TestPresets_ActsFindOnlyWhatWasSeen holds the rule that makes acts safe: the statement
// that decides compares the key and the witness.
func TestPresets_ActsFindOnlyWhatWasSeen(t *testing.T) {
	ofSQL(t, func(t *testing.T, p *preset.Preset) {
		if p.Own { // redrive.yaml has the statements, and is held to the same when it is read
			return
		}
		if len(p.Columns) == 0 {
			t.Errorf("no columns are expected, so that any database fits")
		}
		if len(p.Replay[source.Once]) == 0 || len(p.Replay[source.Fresh]) == 0 || len(p.Discard) == 0 {
			t.Errorf("an act is missing")
		}
		if err := p.Check(); err != nil {
			t.Error(err)
		}
	})
}

// Every way of a replay is held to that rule, also one that only some systems have.
func TestCheck_LooksAtEveryReplay(t *testing.T) {
	safe := []string{"DELETE FROM {table} WHERE id = :key AND id = :witness"}
	for _, mode := range []source.Mode{source.Once, source.Fresh, source.New} {
		p := preset.Preset{Family: "sql", Names: map[string]string{"table": "jobs"}, Replay: map[source.Mode][]string{}}
		for _, other := range []source.Mode{source.Once, source.Fresh, source.New} {
			p.Replay[other] = safe
		}

		if err := p.Check(); err != nil {
			t.Fatal(err)
		}

		p.Replay[mode] = []string{"DELETE FROM {table} WHERE id = :key"}
		if err := p.Check(); err == nil || !strings.Contains(err.Error(), "must compare :witness") {
			t.Errorf("%s: %v", mode, err)
		}
	}
}

// TestPresets_OfAMQPLookSeldom holds what a look at a queue needs: queues that are named,
// and a pause that is long unless someone chose another one.
func TestPresets_OfAMQPLookSeldom(t *testing.T) {
	for name, p := range preset.All() {
		if p.Family != "amqp" {
			continue
		}
		if _, ok := codec.Get(p.Codec); !ok || p.AMQP == nil || p.Every < time.Minute || p.Values["quorum"] != preset.Refuse {
			t.Errorf("%s: codec %q, every %s, quorum %q", name, p.Codec, p.Every, p.Values["quorum"])
		}
		if _, _, err := p.Complete(preset.Settings{}); err == nil || !strings.Contains(err.Error(), "needs a field queues") {
			t.Errorf("%s: without queues, %v", name, err)
		}
	}
}

func own(s preset.Settings) error {
	_, _, err := preset.All()["table"].Complete(s)
	return err
}

func TestComplete_OwnTable(t *testing.T) {
	table := map[string]string{"table": "dead", "key": "id", "witness": "died_at"}
	const guarded = "DELETE FROM {table} WHERE id = :key AND died_at = :witness"
	for _, tt := range []struct {
		name string
		s    preset.Settings
		want string
	}{
		{"guarded", preset.Settings{Names: table, Replay: []string{"INSERT INTO work SELECT id FROM dead", guarded}, Discard: []string{guarded}}, ""},
		{"read only", preset.Settings{Names: table}, ""},
		{"no witness", preset.Settings{Names: table, Discard: []string{"DELETE FROM {table} WHERE id = :key"}}, "must compare :witness"},
		{"no key", preset.Settings{Names: table, Replay: []string{"DELETE FROM dead WHERE died_at = :witness"}}, "must compare :key"},
		{"witness in a text", preset.Settings{Names: table, Discard: []string{"DELETE FROM dead WHERE id = :key AND x = ':witness'"}}, "must compare :witness"},
		{"a value that there is not", preset.Settings{Names: table, Discard: []string{guarded + " AND x = :queue"}}, "has the value :queue"},
		{"a name that there is not", preset.Settings{Names: table, Discard: []string{guarded + " AND {when} > 0"}}, "names {when}"},
		{"no table", preset.Settings{Names: map[string]string{"key": "id"}}, "needs a field table"},
		{"a field that there is not", preset.Settings{Names: map[string]string{"tabel": "x"}}, `has no field "tabel"`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			err := own(tt.s)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}

// Of several fields that a preset does not have, the same one is named each time.
func TestComplete_NamesTheFirstUnknownField(t *testing.T) {
	p := preset.All()["initphp"]
	for range 50 {
		_, _, err := p.Complete(preset.Settings{Names: map[string]string{"c": "", "a": "", "d": "", "b": ""}})
		if err == nil || !strings.Contains(err.Error(), `no field "a"`) {
			t.Fatal(err)
		}
	}
}

func TestExpand_LeavesTextsAlone(t *testing.T) {
	const statement = `SELECT a::text, '{x} :y', "c:d", {t} FROM {t} WHERE k = :key AND j->>'q' = :v AND {} : {t {T} it's`
	got := preset.Expand(statement, strings.ToUpper, func(v string) string { return "<" + v + ">" })
	const want = `SELECT a::text, '{x} :y', "c:d", T FROM T WHERE k = <key> AND j->>'q' = <v> AND {} : {t {T} it's`
	if got != want {
		t.Errorf("%s", got)
	}
}
