package sqlsource_test

import (
	"slices"
	"strings"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
	"redrive/internal/source/sqlsource"
)

// poison is a record that would break a reader that takes texts for what they say they
// are, with what the queue must hold after its replay.
type poison struct {
	name, preset, engine string
	insert               string // its placeholder is what is poisoned
	payload              string // as it is stored
	work                 string // reads the payload that went back
	want                 string // empty: the payload
}

const (
	poisonedJSON = `{"uuid":"u1","displayName":"App\\Jobs\\P\u0000","job":"P@handle","big":9007199254740993,"n":1.0,"o":{},"e":1e400}`
	envelope     = `{"job":"urn:p","trace_id":"t","data":{"big":9007199254740993,"f":1.0,"o":{},"nul":"\u0000","html":"<&>"},"meta":{"id":"m1"},"attempts":%,"x":[ 1 ]}`
	serialised   = "O:3:\"A\\B\":1:{s:4:\"\x00*\x00p\";s:3:\"\xff\xfe\x00\";}"
)

var poisons = func() (all []poison) {
	const failed = `INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
		VALUES ('u1', 'database', 'orders', $PAYLOAD, $ERROR, '2026-11-22 12:00:00')`
	const set = `INSERT INTO jobs_failed (queue, urn, trace_id, attempts, payload, reason, failed_at, created_at)
		VALUES ('orders', '', NULL, 3, $PAYLOAD, 'failed', '2026-11-22 12:00:00', '2026-11-22 12:00:00')`
	const caught = `INSERT INTO queue_failed (job_id, channel, job, pushed_at, ttr, priority, attempt, exception, error, failed_at)
		VALUES (77, 'default', $PAYLOAD, 1795206707, 60, 1024, 1, 'E', $ERROR, 1795206707)`
	const last = " ORDER BY id DESC LIMIT 1"
	for _, engine := range []string{"sqlite", "postgres", "mysql"} {
		all = append(all,
			poison{"escapes", "laravel", engine, failed, poisonedJSON, "SELECT payload FROM public.jobs" + last, ""},
			poison{"bytes", "yii2-db", engine, caught, serialised, "SELECT job FROM queue" + last, ""})
		if engine != "postgres" {
			all = append(all, poison{"numbers", "initphp", engine, set, strings.Replace(envelope, "%", "3", 1),
				"SELECT payload FROM jobs" + last, strings.Replace(envelope, "%", "0", 1)})
		}
	}
	return all
}()

// put inserts a poisoned record.
func (p poison) put(t *testing.T, address string) {
	t.Helper()
	db := open(t, address)
	defer db.Close()
	query, args := p.insert, []any{any(p.payload)}
	if p.preset == "yii2-db" {
		args[0] = []byte(p.payload)
	}
	if strings.Contains(query, "$ERROR") {
		args = append(args, "Boom: "+strings.Repeat("é", 1<<19)) // 1 MB
	}
	first, second := "?", "?"
	if p.engine == "postgres" {
		first, second = "$1", "$2"
	}
	_, err := db.Exec(strings.NewReplacer("$PAYLOAD", first, "$ERROR", second).Replace(query), args...)
	check(t, err)
}

func TestOrigin_PoisonedRecordsReplayByteForByte(t *testing.T) {
	for _, p := range poisons {
		t.Run(p.preset+" "+p.engine+" "+p.name, func(t *testing.T) {
			s := systemOf(p.preset, p.engine)
			address := s.load(t)
			p.put(t, address)
			o := s.origin(t, address)
			r := scan(t, o, 100)[0]
			if p.preset != "initphp" && string(r.Payload) != p.payload {
				t.Errorf("payload %q", r.Payload)
			}
			if strings.Contains(p.insert, "$ERROR") && len(r.Error.Message) < 1<<20 {
				t.Errorf("%d bytes of the error", len(r.Error.Message))
			}
			if got := act(t, o, source.Replay, source.Once, r); got.State != source.Done {
				t.Fatalf("%+v", got)
			}
			want := p.want
			if want == "" {
				want = p.payload
			}
			db := open(t, address)
			defer db.Close()
			work := p.work
			if p.engine != "postgres" {
				work = strings.Replace(work, "public.", "", 1)
			}
			var got []byte
			check(t, db.QueryRow(work).Scan(&got))
			if string(got) != want {
				t.Errorf("the queue holds %q", got)
			}
		})
	}
}

func systemOf(preset, engine string) system {
	for _, s := range systems {
		if s.preset == preset && s.engine == engine {
			return s
		}
	}
	panic(preset + " " + engine)
}

// TestOrigin_APageEndsWhenItIsLarge holds memory flat: records of megabytes come in
// smaller pages, and each is met.
func TestOrigin_APageEndsWhenItIsLarge(t *testing.T) {
	s := systemOf("laravel", "sqlite")
	address := s.load(t)
	execute(t, address, `WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40)
		INSERT INTO failed_jobs (uuid, connection, queue, payload, exception) SELECT 'big' || i, 'database', 'q', '{}', hex(zeroblob(500000)) FROM n`)
	page, err := s.origin(t, address).Scan(t.Context(), "", 500)
	check(t, err)
	if n := len(page.Records); n < 10 || n > 30 || page.Next == "" {
		t.Errorf("the first page has %d records and ends at %q", n, page.Next)
	}
	if n := len(scan(t, s.origin(t, address), 500)); n != 43 {
		t.Errorf("%d records are met", n)
	}
}

// TestOrigin_ReadsNoMoreThanTellsWhetherARecordIsKnown: most records are.
func TestOrigin_ReadsNoMoreThanTellsWhetherARecordIsKnown(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		page, err := s.origin(t, address).Scan(t.Context(), "", 100)
		check(t, err)
		if len(page.Records) == 0 {
			t.Fatal("no records")
		}
		for i := range page.Records {
			r := &page.Records[i]
			if r.Type != "" || r.Error.Message != "" || r.Trace != "" || r.History != nil {
				t.Errorf("the record %s is read whole: %+v", r.Key, r)
			}
			known := r.Version()
			page.Complete(page.Records[i : i+1])
			if r.Version() != known {
				t.Errorf("the record %s counts as changed once it is read whole", r.Key)
			}
			if r.Type == "" {
				t.Errorf("the record %s is not read whole: %+v", r.Key, r)
			}
		}
	})
}

// Where a system has the identifier of a dead job twice, the row that comes first says from
// which queue it came, as in the mirror.
func TestOrigin_OfTwoRowsWithOneKeyTheFirstCounts(t *testing.T) {
	s := systemOf("daycry", "sqlite")
	address := s.load(t)
	execute(t, address, `INSERT INTO queues (identifier, queue, payload) SELECT o.identifier, 'another', o.payload FROM queues AS o
		JOIN queues AS d ON d.id = 4 AND o.identifier = json_extract(d.payload, '$.jobId') WHERE o.queue <> 'dead'`)
	var from []string
	for _, r := range scan(t, s.origin(t, address), 100) {
		if r.Key == "4" {
			from = append(from, r.Queue)
		}
	}
	if len(from) != 2 || from[0] != "orders" {
		t.Errorf("the job came from %q", from)
	}
}

func TestOrigin_ANewerDuplicateExcludesAReplay(t *testing.T) {
	s := systemOf("river", "postgres")
	address := s.load(t)
	execute(t, address, `CREATE UNIQUE INDEX ON river_job (unique_key) WHERE state IN ('available', 'running') AND unique_key IS NOT NULL;
		INSERT INTO river_job (args, kind, unique_key) SELECT args, kind, unique_key FROM river_job WHERE id = 5`)
	o := s.origin(t, address)
	for _, r := range scan(t, o, 100) {
		if r.Key != "5" {
			continue
		}
		if got := act(t, o, source.Replay, source.Once, r); got.State != source.Replaced {
			t.Errorf("%+v", got)
		}
	}
}

func TestOpen_RefusesAnotherSystem(t *testing.T) {
	for _, tt := range []struct{ name, create, want string }{
		{"no table", "CREATE TABLE orders (id int)", "expected a table failed_jobs with the columns id, uuid, connection, queue, payload, exception, failed_at; " +
			"the tables that this user can see are: orders"},
		{"no column", "CREATE TABLE failed_jobs (id int, connection text, queue text, payload text, exception text, failed_at text)",
			"its table failed_jobs has the columns id, connection, queue, payload, exception, failed_at, but not uuid"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			address := newDatabase(t, "sqlite")
			execute(t, address, tt.create)
			_, err := systemOf("laravel", "sqlite").origin(t, address).Check(t.Context())
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestOpen_NeverSaysThePassword(t *testing.T) {
	s := systemOf("laravel", "sqlite")
	for _, address := range []string{"postgres://u:hunter2@127.0.0.1:1/x", "mysql://u:hunter2@127.0.0.1:1/x", "postgres://u:hunter2@%zz/", "oracle://u:hunter2@h/"} {
		_, err := openURL(t, address, s)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", address, err)
		}
	}
}

// unreadableByPHP are payloads of which a worker of Laravel would leave nothing.
func unreadableByPHP(engine string) map[string]string {
	all := map[string]string{
		"empty": "", "a blank": " ", "not JSON": "O:8:\"stdClass\":0:{}", "cut": `{"uuid":"u1","job":"Charge@handle","data":{"n":`,
		"a list": "[]", "an empty object": "{}", "null": "null", "a text": `"job"`, "without a job": `{"displayName":"Charge","data":{}}`,
		"half a character": `{"uuid":"u1","job":"Charge@handle","data":"\ud800"}`,
		"too deep":         `{"job":"Charge@handle","data":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}",
		"two objects":      `{"job":"Charge@handle"}{"job":"Charge@handle"}`,
	}
	if engine == "sqlite" { // the others do not keep it
		all["not UTF-8"] = "{\"job\":\"caf\xe9\"}"
	}
	return all
}

func TestReplay_APayloadThatLaravelCannotReadIsRefusedAndStays(t *testing.T) {
	for _, s := range []system{systemOf("laravel", "sqlite"), systemOf("laravel", "postgres"), systemOf("laravel", "mysql"), twoStores[0]} {
		t.Run(s.String(), func(t *testing.T) {
			address := s.load(t)
			o := s.origin(t, address)
			if s.preset == "laravel-redis" {
				o = s.attachWork(t, address, "redis://"+redistest.Start(t).Options().Addr)
			}
			first := s.fit(t, o)
			for name, payload := range unreadableByPHP(s.engine) {
				setPayload(t, address, payload)
				poisoned := recordOf(t, o, first.Key)
				if len(poisoned.Warnings) == 0 {
					t.Errorf("%s: no warning", name)
				}
				before := rows(t, address, "SELECT * FROM failed_jobs ORDER BY id")
				for _, mode := range []source.Mode{source.Once, source.Fresh} {
					if got := act(t, o, source.Replay, mode, poisoned); got.State != source.Refused || !strings.Contains(got.Why, "its payload ") {
						t.Errorf("%s: %+v", name, got)
					}
				}
				if after := rows(t, address, "SELECT * FROM failed_jobs ORDER BY id"); !slices.Equal(before, after) {
					t.Errorf("%s: the table has changed", name)
				}
			}
		})
	}
}

// A worker of daycry/jobs takes a job out of its queue, and loses it when it cannot read it.
// MariaDB keeps most of these payloads out of the column.
func TestReplay_APayloadThatDaycryCannotReadIsRefusedAndStays(t *testing.T) {
	s := systemOf("daycry", "sqlite")
	address := s.load(t)
	o := s.origin(t, address)
	first := s.fit(t, o)
	for name, payload := range unreadableByPHP(s.engine) {
		if name == "an empty object" || name == "without a job" { // which fail, and are kept
			continue
		}
		setColumn(t, address, "queues", payload)
		poisoned := recordOf(t, o, first.Key)
		if !slices.ContainsFunc(poisoned.Warnings, func(w string) bool { return strings.HasPrefix(w, "It cannot be replayed: its payload ") }) {
			t.Errorf("%s: %q", name, poisoned.Warnings)
		}
		before := rows(t, address, "SELECT * FROM queues ORDER BY id")
		if got := act(t, o, source.Replay, source.Once, poisoned); got.State != source.Refused || !strings.Contains(got.Why, "would lose the job") {
			t.Errorf("%s: %+v", name, got)
		}
		if after := rows(t, address, "SELECT * FROM queues ORDER BY id"); !slices.Equal(before, after) {
			t.Errorf("%s: the table has changed", name)
		}
	}

	// Nor is such a payload taken in the place of the job's own.
	setColumn(t, address, "queues", `{"job":"mail","payload":{"n":1}}`)
	edited := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Payload: []byte(`"\ud800"`), Record: recordOf(t, o, first.Key)}
	if got := actOne(t, o, edited); got.State != source.Refused || !strings.Contains(got.Why, "would lose the job") {
		t.Errorf("as another payload: %+v", got)
	}
}

// setPayload gives all failed jobs of Laravel a payload.
func setPayload(t *testing.T, address, payload string) {
	t.Helper()
	setColumn(t, address, "failed_jobs", payload)
}

// setColumn gives all rows of a table a payload.
func setColumn(t *testing.T, address, table, payload string) {
	t.Helper()
	db := open(t, address)
	defer db.Close()
	mark := "?"
	if strings.HasPrefix(address, "postgres:") {
		mark = "$1"
	}
	_, err := db.Exec("UPDATE "+table+" SET payload = "+mark, payload)
	check(t, err)
}

// recordOf is the record with a key.
func recordOf(t *testing.T, o *sqlsource.Origin, key string) source.Record {
	t.Helper()
	all := scan(t, o, 100)
	i := slices.IndexFunc(all, func(r source.Record) bool { return r.Key == key })
	if i < 0 {
		t.Fatalf("no record has the key %s", key)
	}
	return all[i]
}
