package sqlsource_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
)

// keyed are tables whose keys are of a type, with a healthy and an odd row each.
var keyed = map[string]struct {
	engine, column string
	keys           []string // as SQL
}{
	"text in SQLite":       {"sqlite", "text", []string{`'plain'`, `'a' || char(0) || 'b'`, `CAST(x'ff00fe' AS TEXT)`, `'"quoted"'`, `'x''00'''`, `'two' || char(10) || 'lines'`}},
	"blob in SQLite":       {"sqlite", "blob", []string{`x'706c61696e'`, `x'00ff'`, `x'61'`}},
	"no type in SQLite":    {"sqlite", "", []string{`'a'`, `x'61'`, `x'00'`}},
	"integer in SQLite":    {"sqlite", "integer", []string{`1`, `9223372036854775807`, `-3`}},
	"text in PostgreSQL":   {"postgres", "text", []string{`'plain'`, `'"quoted"'`, `'x''00'''`, `E'two\nlines'`, `E'\u00e9'`}},
	"bytea in PostgreSQL":  {"postgres", "bytea", []string{`'\x00ff'`, `'\x706c61696e'`, `'\x'`}},
	"uuid in PostgreSQL":   {"postgres", "uuid", []string{`'2f1c9a0e-0000-4000-8000-00000000002a'`, `'00000000-0000-0000-0000-000000000000'`}},
	"bigint in PostgreSQL": {"postgres", "bigint", []string{`1`, `9223372036854775807`, `-3`}},
	"varchar in MariaDB":   {"mysql", "varchar(64) CHARACTER SET utf8mb4", []string{`'plain'`, `CONCAT('a', CHAR(0), 'b')`, `'"quoted"'`, `'two\nlines'`, `'é'`}},
	"binary in MariaDB":    {"mysql", "binary(16)", []string{`UNHEX('00112233445566778899aabbccddeeff')`, `UNHEX('706c61696e000000000000000000ff00')`, `'sixteen letters!'`}},
	"varbinary in MariaDB": {"mysql", "varbinary(64)", []string{`UNHEX('00ff')`, `'plain'`, `UNHEX('c3')`}},
	"blob in MariaDB":      {"mysql", "blob", []string{`UNHEX('00ff')`, `'plain'`}},
	"bigint in MariaDB":    {"mysql", "bigint", []string{`1`, `9223372036854775807`, `-3`}},
}

// TestSource_ARecordWhoseKeyHasANULIsShown is about keys of every type: each is read, is
// text that any database keeps, and is found, replayed and discarded by that.
func TestSource_ARecordWhoseKeyHasANULIsShown(t *testing.T) {
	for name, c := range keyed {
		t.Run(name, func(t *testing.T) {
			address := newDatabase(t, c.engine)
			execute(t, address, "CREATE TABLE dead (k "+c.column+", body text)")
			execute(t, address, "CREATE TABLE work (body text)")
			for i, key := range c.keys {
				execute(t, address, "INSERT INTO dead VALUES ("+key+`, '{"n":`+string(rune('0'+i))+`}')`)
			}
			o := keyedOrigin(t, c.engine, address)
			all := scan(t, o, 1) // pages go on from any key as well
			if len(all) != len(c.keys) {
				t.Fatalf("%d records of %d: %+v", len(all), len(c.keys), all)
			}
			for _, r := range all {
				if !utf8.ValidString(r.Key) || strings.ContainsRune(r.Key, 0) {
					t.Errorf("the key %q is no text", r.Key)
				}
				actsByKey(t, o, r)
			}
			if left := rows(t, address, "SELECT body FROM dead"); len(left) != 0 {
				t.Errorf("%d rows are left", len(left))
			}
		})
	}
}

// keyedOrigin attaches the table.
func keyedOrigin(t *testing.T, engine, address string) *sqlsource.Origin {
	t.Helper()
	s := system{preset: "table", engine: engine, settings: preset.Settings{
		Names:   map[string]string{"table": "dead", "key": "k", "payload": "body"},
		Replay:  []string{"INSERT INTO work (body) SELECT body FROM {table} WHERE k = :key", "DELETE FROM {table} WHERE k = :key AND k = :witness"},
		Discard: []string{"DELETE FROM {table} WHERE k = :key AND k = :witness"},
	}}
	return s.origin(t, address)
}

// actsByKey finds a record, does something to it, and finds it no more.
func actsByKey(t *testing.T, o *sqlsource.Origin, r source.Record) {
	t.Helper()
	find := func() source.State {
		found, err := o.Find(context.Background(), []source.Act{{Record: r}})
		check(t, err)
		return found[0].State
	}
	if got := find(); got != source.Asked {
		t.Errorf("%q is not found: %s", r.Key, got)
	}
	kind := source.Replay
	if len(r.Payload)%2 == 0 {
		kind = source.Discard
	}
	if got := act(t, o, kind, source.Once, r); got.State != source.Done {
		t.Errorf("%s of %q: %+v", kind, r.Key, got)
	}
	if got := find(); got != source.Gone {
		t.Errorf("%q after a %s: %s", r.Key, kind, got)
	}
}

// TestReplay_RefusesARowWhoseKeyAnotherRowHasToo is about keys that are no plain text, and
// rows that came after the others were read: the statements name the key alone, and would
// change both.
func TestReplay_RefusesARowWhoseKeyAnotherRowHasToo(t *testing.T) {
	for name, c := range keyed {
		t.Run(name, func(t *testing.T) {
			address := newDatabase(t, c.engine)
			execute(t, address, "CREATE TABLE dead (k "+c.column+", body text)")
			execute(t, address, "CREATE TABLE work (body text)")
			insert := func() {
				for _, key := range c.keys {
					execute(t, address, "INSERT INTO dead VALUES ("+key+", '{}')")
				}
			}
			insert()
			o := keyedOrigin(t, c.engine, address)
			page, err := o.Scan(t.Context(), "", 100)
			check(t, err)
			insert()
			for _, r := range page.Records {
				for _, kind := range []source.Kind{source.Replay, source.Discard} {
					got := act(t, o, kind, source.Once, r)
					if got.State != source.Refused || got.Why != "2 rows of dead have its key, and the statements could change all of them." {
						t.Errorf("%s of %q: %+v", kind, r.Key, got)
					}
				}
			}
			if left := rows(t, address, "SELECT body FROM dead"); len(left) != 2*len(c.keys) {
				t.Errorf("%d rows are left", len(left))
			}

			execute(t, address, "DELETE FROM dead")
			if got := act(t, o, source.Replay, source.Once, page.Records[0]); got.State != source.Gone {
				t.Errorf("with no row: %+v", got)
			}
		})
	}
}

// TestSource_AFieldThatIsTooLargeIsNeverRead has a row in each database that the driver
// would have to hold.
func TestSource_AFieldThatIsTooLargeIsNeverRead(t *testing.T) {
	for engine, large := range map[string]string{
		"sqlite": "CAST(zeroblob(9000000) AS TEXT)", "postgres": "repeat('x', 9000000)", "mysql": "REPEAT('x', 9000000)",
	} {
		t.Run(engine, func(t *testing.T) {
			address := newDatabase(t, engine)
			kind := "text"
			if engine == "mysql" {
				kind = "longtext"
			}
			execute(t, address, "CREATE TABLE dead (k int, body "+kind+")")
			execute(t, address, `INSERT INTO dead VALUES (1, '{"n":1}')`)
			execute(t, address, "INSERT INTO dead VALUES (2, "+large+")")
			execute(t, address, `INSERT INTO dead VALUES (3, '{"n":3}')`)
			page, err := keyedOrigin(t, engine, address).Scan(t.Context(), "", 100)
			check(t, err)
			var keys []string
			for _, r := range page.Records {
				keys = append(keys, r.Key)
			}
			if !slices.Equal(keys, []string{"3", "1"}) {
				t.Errorf("%q", keys)
			}
			want := "It has 9.0 MB, which is larger than the limit of 8.0 MB for a record."
			if len(page.Refused) != 1 || page.Refused[0] != (source.Refusal{Key: "2", Why: want}) {
				t.Errorf("%+v", page.Refused)
			}
		})
	}
}

// TestScan_NamesTheFieldThatIsTooLarge and the limit of that field.
func TestScan_NamesTheFieldThatIsTooLarge(t *testing.T) {
	for engine, repeat := range map[string]string{
		"sqlite": "CAST(zeroblob(%d) AS TEXT)", "postgres": "repeat('x', %d)", "mysql": "REPEAT('x', %d)",
	} {
		t.Run(engine, func(t *testing.T) {
			address, kind := newDatabase(t, engine), "text"
			if engine == "mysql" {
				kind = "longtext"
			}
			execute(t, address, "CREATE TABLE dead (k int, body "+kind+", name "+kind+", why "+kind+")")
			execute(t, address, "INSERT INTO dead VALUES (1, '{}', "+fmt.Sprintf(repeat, 100_001)+", 'no')")
			execute(t, address, "INSERT INTO dead VALUES (2, '{}', 'mail', "+fmt.Sprintf(repeat, 9_000_000)+")")
			s := system{preset: "table", engine: engine, settings: preset.Settings{
				Names: map[string]string{"table": "dead", "key": "k", "payload": "body", "queue": "name", "error": "why"},
			}}
			page, err := s.origin(t, address).Scan(t.Context(), "", 100)
			check(t, err)
			want := []source.Refusal{
				{Key: "2", Why: "Its error message has 9.0 MB, which is larger than the limit of 8.0 MB."},
				{Key: "1", Why: "Its queue's name has 100001 bytes, which is larger than the limit of 100000 bytes."},
			}
			if !slices.Equal(page.Refused, want) || len(page.Records) != 0 {
				t.Errorf("%+v", page.Refused)
			}
		})
	}
}

// TestSource_APageOfLargeRowsEndsBeforeItIsTooLarge asks for fewer rows after that.
func TestSource_APageOfLargeRowsEndsBeforeItIsTooLarge(t *testing.T) {
	for engine, large := range map[string]string{
		"sqlite": "CAST(zeroblob(6000000) AS TEXT)", "postgres": "repeat('x', 6000000)", "mysql": "REPEAT('x', 6000000)",
	} {
		t.Run(engine, func(t *testing.T) {
			address := newDatabase(t, engine)
			kind := "text"
			if engine == "mysql" {
				kind = "longtext"
			}
			execute(t, address, "CREATE TABLE dead (k int, body "+kind+")")
			for _, key := range []string{"1", "2", "3", "4"} {
				execute(t, address, "INSERT INTO dead VALUES ("+key+", "+large+")")
			}
			o := keyedOrigin(t, engine, address)
			var sizes []int
			var keys []string
			for after := ""; len(sizes) == 0 || after != ""; {
				page, err := o.Scan(t.Context(), after, 500)
				check(t, err)
				sizes = append(sizes, len(page.Records))
				for _, r := range page.Records {
					keys = append(keys, r.Key)
				}
				after = page.Next
			}
			if !slices.Equal(keys, []string{"4", "3", "2", "1"}) || slices.Max(sizes) > 3 {
				t.Errorf("%q in pages of %v", keys, sizes)
			}
		})
	}
}

// TestScan_ReadsKeysThatBeginLikeManyColumns has more rows than the packets of MySQL have
// numbers, in each of which the first column is large.
func TestScan_ReadsKeysThatBeginLikeManyColumns(t *testing.T) {
	address := newDatabase(t, "mysql")
	execute(t, address, "CREATE TABLE dead (k varchar(6000), body text)")
	execute(t, address, `INSERT INTO dead SELECT RPAD(seq + 1000, 5000, 'x'), '{}' FROM seq_1_to_600`)
	o := keyedOrigin(t, "mysql", address)
	page, err := o.Scan(t.Context(), "", 500)
	check(t, err)
	rest, err := o.Scan(t.Context(), page.Next, 500)
	check(t, err)
	if len(page.Records) != 500 || len(rest.Records) != 100 {
		t.Errorf("%d and %d of 600 rows", len(page.Records), len(rest.Records))
	}
}
