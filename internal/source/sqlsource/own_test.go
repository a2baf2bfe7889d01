package sqlsource_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// ownTable is a table that some program made for itself, with a name that must be quoted.
var ownTable = map[string]string{
	"sqlite": `CREATE TABLE "dead ""jobs" (id integer PRIMARY KEY, kind text, body text, why text, tries int, died_at datetime, state text)`,
	"mysql":  "CREATE TABLE `dead \"jobs` (id int AUTO_INCREMENT PRIMARY KEY, kind text, body text, why text, tries int, died_at datetime, state varchar(9))",
	"postgres": `CREATE TABLE "dead ""jobs" (id serial PRIMARY KEY, kind text, body text, why text, tries int,
		died_at timestamp, state text)`,
}

var ownSettings = preset.Settings{
	Names: map[string]string{
		"table": `dead "jobs`, "type": "kind", "payload": "body", "error": "why", "attempts": "tries", "failed_at": "died_at",
	},
	Zone:    "America/New_York",
	Where:   "state = 'dead'",
	Replay:  []string{"INSERT INTO work (body, at) SELECT body, :unix FROM {table} WHERE id = :key", "DELETE FROM {table} WHERE id = :key AND id = :witness"},
	Discard: []string{"UPDATE {table} SET state = 'gone' WHERE id = :key AND id = :witness AND state = 'dead'"},
}

func TestOrigin_OwnTable(t *testing.T) {
	for engine, create := range ownTable {
		t.Run(engine, func(t *testing.T) {
			quoted := map[string]string{"sqlite": `"dead ""jobs"`, "postgres": `"dead ""jobs"`, "mysql": "`dead \"jobs`"}[engine]
			address := newDatabase(t, engine)
			for _, statement := range []string{create, "CREATE TABLE work (body text, at bigint)",
				"INSERT INTO " + quoted + " (kind, body, why, tries, died_at, state) VALUES ('mail', '{\"n\": 1}', 'no route', 3, '2026-11-22 07:00:00', 'dead')",
				"INSERT INTO " + quoted + " (kind, body, why, tries, died_at, state) VALUES ('mail', '{\"n\": 2}', 'no route', 3, '2026-11-22 08:00:00', 'dead')",
				"INSERT INTO " + quoted + " (kind, body, state) VALUES ('mail', '{}', 'fine')"} {
				execute(t, address, statement)
			}
			s := system{preset: "table", engine: engine, settings: ownSettings}
			o := s.origin(t, address)
			report, err := o.Check(t.Context())
			check(t, err)
			if len(report.May) != 2 {
				t.Errorf("%+v", report)
			}
			all := scan(t, o, 1)
			if len(all) != 2 || string(all[0].Payload) != `{"n": 2}` || all[0].Error.Message != "no route" || all[0].Attempts != 3 ||
				all[0].FailedAt.Format("15:04 MST") != "13:00 UTC" {
				t.Fatalf("%+v", all)
			}
			for _, k := range []source.Kind{source.Replay, source.Discard} {
				seen := all[0]
				seen.VersionToken = other(seen.VersionToken)
				if got := act(t, o, k, source.Once, seen); got.State != source.Changed {
					t.Errorf("%s of another witness: %+v", k, got)
				}
			}
			for i, k := range []source.Kind{source.Replay, source.Discard} {
				for _, want := range []source.State{source.Done, source.Gone} {
					if got := act(t, o, k, source.Once, all[i]); got.State != want {
						t.Errorf("%s: %+v", k, got)
					}
				}
			}
			if work := rows(t, address, "SELECT body FROM work"); !slices.Equal(work, []string{`body={"n": 2}`}) {
				t.Errorf("%q", work)
			}
		})
	}
}

func TestOpen_OwnTableNamesItsColumns(t *testing.T) {
	address := newDatabase(t, "sqlite")
	execute(t, address, "CREATE TABLE dead (id integer PRIMARY KEY, body text)")
	s := system{preset: "table", settings: preset.Settings{Names: map[string]string{"table": "dead", "payload": "boddy"}}}
	_, err := s.origin(t, address).Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "its table dead has the columns id, body, but not boddy") {
		t.Errorf("%v", err)
	}
}

// TestReplay_OfAnOwnTableKnowsAPayloadThatWasChanged has a statement that keeps the column
// as it is there, unless the replay has another payload.
func TestReplay_OfAnOwnTableKnowsAPayloadThatWasChanged(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres", "mysql"} {
		t.Run(engine, func(t *testing.T) {
			address := newDatabase(t, engine)
			for _, statement := range []string{
				"CREATE TABLE dead (id int PRIMARY KEY, body text, state varchar(9))",
				`INSERT INTO dead VALUES (1, '{"n":1}', 'dead'), (2, '{"n":2}', 'dead')`,
			} {
				execute(t, address, statement)
			}
			s := system{preset: "table", engine: engine, settings: preset.Settings{
				Names: map[string]string{"table": "dead", "payload": "body"}, Where: "state = 'dead'",
				Replay: []string{"UPDATE {table} SET state = 'new', body = coalesce(:edited, body) WHERE id = :key AND id = :witness"},
			}}
			o := s.origin(t, address)
			all := scan(t, o, 10)
			execute(t, address, `UPDATE dead SET body = '{"corrected":true}'`)
			for i, payload := range [][]byte{nil, []byte(`{"changed":true}`)} {
				a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Payload: payload, Record: all[i]}
				if got := actOne(t, o, a); got.State != source.Done {
					t.Fatalf("%+v", got)
				}
			}
			want := []string{`body={"changed":true} state=new`, `body={"corrected":true} state=new`}
			if got := rows(t, address, "SELECT body, state FROM dead ORDER BY id"); !slices.Equal(got, want) {
				t.Errorf("%q", got)
			}
		})
	}
}

// A time with an offset is an instant, in SQLite, too, whose driver makes a time of some
// texts that were declared as one. One without an offset is what the clock of the zone said.
func TestScan_ATimeWithAnOffsetIsAnInstant(t *testing.T) {
	const ten = "2026-11-22 10:00:00"
	texts := map[string]string{
		"2026-11-22 11:00:00+01:00": ten, "2026-11-22T11:00:00+01:00": ten, "2026-11-22 11:00:00.000+0100": ten,
		"2026-11-22 15:30:00 +05:30": ten, "2026-11-22 05:00:00-05": ten, "2026-11-22T10:00:00Z": ten, "2026-11-22 10:00:00 UTC": ten,
		"2026-11-22 10:00:00 +0000 UTC": ten, "1795341600": ten,
		"2026-11-22 05:00:00": ten, "2026-11-22T05:00:00": ten, "2026-11-22 05:00": ten,
		"2026-11-22 05:00:00.5": "2026-11-22 10:00:00.5", "soon": "0001-01-01 00:00:00",
	}
	for _, kind := range []string{"datetime", "timestamp", "text", "date", ""} {
		address := newDatabase(t, "sqlite")
		execute(t, address, "CREATE TABLE dead (id integer PRIMARY KEY, body text, died_at "+kind+", made_at "+kind+")")
		for text := range texts {
			execute(t, address, "INSERT INTO dead (body, died_at, made_at) VALUES ('"+text+"', '"+text+"', '"+text+"')")
		}
		s := system{preset: "table", settings: preset.Settings{Zone: "America/New_York",
			Names: map[string]string{"table": "dead", "payload": "body", "failed_at": "died_at", "created_at": "made_at"}}}
		for _, r := range scan(t, s.origin(t, address), 100) {
			for name, at := range map[string]time.Time{"died": r.FailedAt, "was made": r.CreatedAt} {
				if got := at.Format("2006-01-02 15:04:05.999999999"); got != texts[string(r.Payload)] {
					t.Errorf("what %s at %q in a column of %q was %s, want %s", name, r.Payload, kind, got, texts[string(r.Payload)])
				}
			}
		}
	}
}

// So it is in the other databases, which have a type for an instant: its time does not depend on
// the zone of the system, nor on that of this machine.
func TestScan_AnInstantOfADatabaseIsOne(t *testing.T) {
	for _, c := range []struct{ engine, kind, text, want string }{
		{"postgres", "timestamptz", "2026-11-22 11:00:00+01", "10:00"},
		{"postgres", "timestamp", "2026-11-22 05:00:00", "10:00"},
		{"postgres", "timestamptz", "2026-07-22 11:00:00+01", "10:00"},
		{"postgres", "text", "2026-11-22 11:00:00+01:00", "10:00"},
		{"postgres", "bigint", "1795341600", "10:00"},
		{"mysql", "datetime", "2026-11-22 05:00:00", "10:00"},
		{"mysql", "varchar(64)", "2026-11-22T11:00:00+01:00", "10:00"},
		{"mysql", "bigint", "1795341600", "10:00"},
	} {
		t.Run(c.engine+" "+c.kind, func(t *testing.T) {
			address := newDatabase(t, c.engine)
			execute(t, address, "CREATE TABLE dead (id int PRIMARY KEY, body text, died_at "+c.kind+")")
			execute(t, address, "INSERT INTO dead VALUES (1, '{}', '"+c.text+"')")
			s := system{preset: "table", engine: c.engine, settings: preset.Settings{Zone: "America/New_York",
				Names: map[string]string{"table": "dead", "payload": "body", "failed_at": "died_at"}}}
			all := scan(t, s.origin(t, address), 100)
			if got := all[0].FailedAt.Format("15:04"); got != c.want {
				t.Errorf("%s is %s", c.text, got)
			}
		})
	}
}

// The witness that docs/sources.md names, the time of death, is compared as it is stored.
func TestReplay_ATimeIsAVersionToken(t *testing.T) {
	for engine, kind := range map[string]string{"sqlite": "datetime", "postgres": "timestamp", "mysql": "datetime"} {
		t.Run(engine, func(t *testing.T) {
			address := newDatabase(t, engine)
			execute(t, address, "CREATE TABLE dead (id int PRIMARY KEY, died_at "+kind+")")
			execute(t, address, "INSERT INTO dead VALUES (1, '2026-11-22 05:00:00')")
			s := system{preset: "table", settings: preset.Settings{
				Names:  map[string]string{"table": "dead", "witness": "died_at", "failed_at": "died_at"},
				Replay: []string{"DELETE FROM {table} WHERE id = :key AND died_at = :witness"},
			}}
			o := s.origin(t, address)
			if got := act(t, o, source.Replay, source.Once, scan(t, o, 10)[0]); got.State != source.Done {
				t.Errorf("%+v", got)
			}
		})
	}
}
