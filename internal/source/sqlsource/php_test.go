package sqlsource_test

import (
	"slices"
	"strings"
	"testing"

	"redrive/internal/source"
)

// replayOf puts a payload into all records of a table, and replays the first one.
func (s system) replayOf(t *testing.T, address, update string, payload any) (source.Record, source.Result) {
	t.Helper()
	o := s.origin(t, address)
	first := s.fit(t, o)
	db := open(t, address)
	defer db.Close()
	mark := "?"
	if s.engine == "postgres" {
		mark = "$1"
	}
	_, err := db.Exec(update+mark, payload)
	check(t, err)

	r := recordOf(t, o, first.Key)
	return r, act(t, o, source.Replay, source.Once, r)
}

// The serializers of yii2-queue are those of PHP, the default, of JSON and of igbinary.
func TestReplay_APayloadThatYiiCannotReadIsRefusedAndStays(t *testing.T) {
	for _, engine := range []string{"sqlite", "postgres", "mysql"} {
		s := systemOf("yii2-db", engine)
		t.Run(engine, func(t *testing.T) {
			const update = "UPDATE queue_failed SET job = "
			whole := "O:10:\"app\\jobs\\P\":1:{s:4:\"\x00*\x00p\";s:3:\"\xff\xfe\x00\";}"
			address := s.load(t)
			for name, payload := range map[string]string{
				"empty": "", "text": "garbage", "cut": whole[:len(whole)-1], "two": whole + whole, "an array of PHP": "a:0:{}", "a text of PHP": `s:1:"x";`,
				"a list": "[]", "a number": "1", "cut JSON": `{"class":"app\\jobs\\P"`, "half a character": `{"class":"app\\jobs\\P","p":"\ud800"}`,
				"JSON that is no UTF-8": "{\"class\":\"caf\xe9\"}", "the header of igbinary alone": "\x00\x00\x00\x02",
			} {
				before := append(rows(t, address, "SELECT id FROM queue_failed ORDER BY id"), rows(t, address, s.work)...)
				r, got := s.replayOf(t, address, update, []byte(payload))
				if got.State != source.Refused || !strings.Contains(got.Why, "a worker of yii2-queue could not read it") {
					t.Errorf("%s: %+v", name, got)
				}
				if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "It cannot be replayed: ") }) {
					t.Errorf("%s: no warning: %q", name, r.Warnings)
				}
				if after := append(rows(t, address, "SELECT id FROM queue_failed ORDER BY id"), rows(t, address, s.work)...); !slices.Equal(before, after) {
					t.Errorf("%s: a table has changed", name)
				}
			}

			for name, payload := range map[string]string{
				"PHP": whole, "JSON": `{"class":"app\\jobs\\P","p":1e400}`, "igbinary": "\x00\x00\x00\x02\x17\x01P\x14\x00",
			} {
				if _, got := s.replayOf(t, s.load(t), update, []byte(payload)); got.State != source.Done {
					t.Errorf("%s: %+v", name, got)
				}
			}
		})
	}
}

// deep is a message of InitPHP Queue with so many levels.
func deep(levels int) string {
	return `{"job":"urn:p","trace_id":"t","data":` + strings.Repeat("[", levels-1) + strings.Repeat("]", levels-1) + `,"meta":{"id":"m1"},"attempts":3}`
}

// What PHP's json_decode reads, a worker of InitPHP Queue does too; anything else it takes
// for an empty message, which it sets aside in the place of this one.
func TestReplay_APayloadThatInitPHPCannotReadIsRefusedAndStays(t *testing.T) {
	for _, engine := range []string{"sqlite", "mysql"} {
		s := systemOf("initphp", engine)
		t.Run(engine, func(t *testing.T) {
			const update = "UPDATE jobs_failed SET payload = "
			refused := map[string]string{
				"empty": "", "text": "garbage", "a list": "[]", "cut": `{"job":"urn:p","data":{"n":`, "no number": `{"job":"urn:p","data":{"n":NaN}}`,
				"half a character": `{"job":"urn:p","data":{"n":"\ud800"}}`, "too deep": deep(512), "two": `{"job":"urn:p","data":{}}{"job":"urn:p","data":{}}`,
			}
			if engine == "sqlite" { // MySQL does not keep it
				refused["not UTF-8"] = "{\"job\":\"urn:p\",\"data\":[\"caf\xe9\"]}"
			}
			address := s.load(t)
			for name, payload := range refused {
				before := append(rows(t, address, "SELECT id FROM jobs_failed ORDER BY id"), rows(t, address, s.work)...)
				r, got := s.replayOf(t, address, update, payload)
				if got.State != source.Refused || !strings.Contains(got.Why, "a worker of InitPHP Queue would lose it") {
					t.Errorf("%s: %+v", name, got)
				}
				if !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, "It cannot be replayed: ") }) {
					t.Errorf("%s: no warning: %q", name, r.Warnings)
				}
				if after := append(rows(t, address, "SELECT id FROM jobs_failed ORDER BY id"), rows(t, address, s.work)...); !slices.Equal(before, after) {
					t.Errorf("%s: a table has changed", name)
				}
			}

			for payload, want := range map[string]string{
				deep(511): strings.Replace(deep(511), `"attempts":3`, `"attempts":0`, 1),
				`{"job":"urn:p","data":{"n":123456789012345678901234567890,"e":1e400,"":[]},"attempts":1}`:              `{"job":"urn:p","data":{"n":123456789012345678901234567890,"e":1e400,"":[]},"attempts":0}`,
				`{"attempts":1,"dead_letter":{},"job":"urn:p","data":{"a":1,"a":2},"dead_letter":{"a":1},"attempts":2}`: `{"attempts":0,"job":"urn:p","data":{"a":1,"a":2},"attempts":0}`,
			} {
				address := s.load(t)
				_, got := s.replayOf(t, address, update, payload)
				var pushed string
				db := open(t, address)
				check(t, db.QueryRow("SELECT payload FROM jobs ORDER BY id DESC LIMIT 1").Scan(&pushed))
				check(t, db.Close())
				if got.State != source.Done || pushed != want {
					t.Errorf("%.200s: %+v, and the queue has %.200s", payload, got, pushed)
				}
			}
		})
	}
}
