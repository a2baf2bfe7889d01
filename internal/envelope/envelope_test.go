package envelope

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"redrive/internal/clip"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// good is an envelope with one member changed; an empty value leaves it out.
func good(name, value string) string {
	members := []struct{ name, value string }{
		{"job", `"urn:babel:orders:created"`}, {"trace_id", `"7b3f9c2a"`}, {"data", `{"n":1}`},
		{"meta", `{"id":"m-1","schema_version":1}`}, {"attempts", `0`},
	}
	var b strings.Builder
	for _, m := range members {
		if m.name == name {
			m.value = value
		}
		if m.value != "" {
			fmt.Fprintf(&b, `,%q:%s`, m.name, m.value)
		}
	}
	return "{" + strings.TrimPrefix(b.String(), ",") + "}"
}

func deep(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }

// reading is an envelope and the reason for which it is set aside, if any.
type reading struct {
	name, raw string
	want      retry.Reason
}

func long(n int) string { return `"` + strings.Repeat("x", n) + `"` }

func readable() []reading {
	return []reading{
		{"whole", good("", ""), ""},
		{"white space around", " \r\n" + good("", "") + "\t\n", ""},
		{"a list as data", good("data", `[]`), ""},
		{"a data with numbers out of range", good("data", `{"n":1e400,"big":12345678901234567890}`), ""},
		{"as deep as it may be", good("data", deep(job.MaxDepth-1)), ""},
		{"an escaped name", strings.Replace(good("", ""), "trace_id", `trace\u005fid`, 1), ""},
		{"a pair of surrogates", good("data", `["\ud83d\ude00","\\ud800"]`), ""},
		{"urn instead of job", strings.Replace(good("", ""), `"job"`, `"urn"`, 1), ""},
		{"job is null beside urn", `{"urn":"u",` + good("job", "null")[1:], ""},
		{"the longest URN", good("job", long(job.MaxType)), ""},
		{"meta without an id", good("meta", `{"schema_version":1}`), ""},
	}
}

func notJSON() []reading {
	return []reading{
		{"nothing", "", retry.NotJSON},
		{"half", `{"job":`, retry.NotJSON},
		{"two values", good("", "") + "{}", retry.NotJSON},
		{"a comma too many", `{"job":"u",}`, retry.NotJSON},
		{"a byte order mark", "\ufeff" + good("", ""), retry.NotJSON},
		{"an array", "[" + good("", "") + "]", retry.NotJSON},
		{"null", "null", retry.NotJSON},
		{"a text", `"urn"`, retry.NotJSON},
		{"invalid UTF-8", good("data", "[\"\xff\"]"), retry.NotJSON},
		{"invalid UTF-8 in a name", good("data", "{\"\xc3\x28\":1}"), retry.NotJSON},
		{"half of a surrogate pair", good("data", `["\ud800"]`), retry.NotJSON},
		{"the other half", good("job", `"\udc00x"`), retry.NotJSON},
		{"too deep", good("data", deep(job.MaxDepth)), retry.NotJSON},
		{"very deep", good("data", deep(500_000)), retry.NotJSON},
		{"attempts twice", `{"attempts":1,` + good("", "")[1:], retry.NotJSON},
		{"attempts twice, escaped", `{"attempt\u0073":1,` + good("", "")[1:], retry.NotJSON},
		{"a name twice in data", good("data", `{"a":[{"b":1},{"b":1,"c":{},"b":2}]}`), retry.NotJSON},
	}
}

func unreadable() []reading {
	version := func(v string) string { return good("meta", `{"id":"m-1","schema_version":`+v+`}`) }
	return []reading{
		{"an empty object", `{}`, retry.MissingURN},
		{"no job", good("job", ""), retry.MissingURN},
		{"job is empty", good("job", `""`), retry.MissingURN},
		{"job is empty beside urn", `{"urn":"u",` + good("job", `""`)[1:], retry.MissingURN},
		{"job is a number", good("job", `7`), retry.MissingURN},
		{"job in other letters", strings.Replace(good("", ""), `"job"`, `"Job"`, 1), retry.MissingURN},
		{"URN too long", good("job", long(job.MaxType+1)), retry.MissingURN},
		{"URN reserved", good("job", `"`+Unread+`"`), retry.MissingURN},
		{"no meta", good("meta", ""), retry.MissingMeta},
		{"meta is null", good("meta", "null"), retry.MissingMeta},
		{"meta is a list", good("meta", "[]"), retry.MissingMeta},
		{"meta too large", good("meta", `{"schema_version":1,"x":`+long(job.MaxMeta)+`}`), retry.MissingMeta},
		{"no version", good("meta", `{}`), retry.UnsupportedVersion},
		{"version 2", version("2"), retry.UnsupportedVersion},
		{"version 0", version("0"), retry.UnsupportedVersion},
		{"version in quotes", version(`"1"`), retry.UnsupportedVersion},
		{"version 1.0", version("1.0"), retry.UnsupportedVersion},
		{"version 1e0", version("1e0"), retry.UnsupportedVersion},
		{"version true", version("true"), retry.UnsupportedVersion},
		{"no data", good("data", ""), retry.InvalidData},
		{"data is null", good("data", "null"), retry.InvalidData},
		{"data is a text", good("data", `"str"`), retry.InvalidData},
		{"no trace id", good("trace_id", ""), retry.MissingTraceID},
		{"trace id is empty", good("trace_id", `""`), retry.MissingTraceID},
		{"trace id is a number", good("trace_id", `1`), retry.MissingTraceID},
		{"trace id too long", good("trace_id", long(job.MaxTraceID+1)), retry.MissingTraceID},
		{"no attempts", good("attempts", ""), retry.InvalidAttempts},
		{"attempts in quotes", good("attempts", `"3"`), retry.InvalidAttempts},
		{"attempts negative", good("attempts", `-1`), retry.InvalidAttempts},
		{"attempts minus zero", good("attempts", `-0`), retry.InvalidAttempts},
		{"attempts fraction", good("attempts", `1.5`), retry.InvalidAttempts},
		{"attempts 1.0", good("attempts", `1.0`), retry.InvalidAttempts},
		{"attempts 1e400", good("attempts", `1e400`), retry.InvalidAttempts},
		{"attempts out of range", good("attempts", `99999999999999999999`), retry.InvalidAttempts},
		{"attempts null", good("attempts", `null`), retry.InvalidAttempts},
		{"the first fault counts", `{"job":"u","meta":{"schema_version":2},"data":1}`, retry.UnsupportedVersion},
	}
}

func TestParse_Reasons(t *testing.T) {
	for _, test := range slices.Concat(readable(), notJSON(), unreadable()) {
		var got retry.Reason
		_, poison := Parse([]byte(test.raw))
		if poison != nil {
			if got = poison.Reason; poison.Problem == "" || len(poison.Problem) > 1000 {
				t.Errorf("%s: the problem is %q", test.name, poison.Problem)
			}
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q: %s", test.name, got, test.want, clip.Text(test.raw, 200))
		}
	}
}

func TestParse_PartsAreTheBytesThatCame(t *testing.T) {
	const raw = "{ \"job\":\"urn:\\u0062abel\" ,\"trace_id\":\"t\",\"data\" : { \"n\":12345678901234567890 , \"f\": 1.0 }\n,\"meta\": { \"id\":\"m-1\", \"schema_version\":1 }, \"attempts\":7 }"
	e, poison := Parse([]byte(raw))
	if poison != nil {
		t.Fatal(poison)
	}
	if e.URN != "urn:babel" || e.TraceID != "t" || e.ID != "m-1" || e.Attempts != 7 {
		t.Errorf("envelope %+v", e)
	}
	if string(e.Data) != `{ "n":12345678901234567890 , "f": 1.0 }` || string(e.Meta) != `{ "id":"m-1", "schema_version":1 }` {
		t.Errorf("data %q, meta %q", e.Data, e.Meta)
	}
}

func TestParse_ProblemNamesTheURN(t *testing.T) {
	_, poison := Parse([]byte(good("attempts", `"3"`)))
	const want = `attempts must be a whole number, 0 or more, not "3", in an envelope of urn:babel:orders:created`
	if poison == nil || poison.Problem != want {
		t.Errorf("poison %+v, want %s", poison, want)
	}
}

func TestParse_FrameIsReadAsItsBody(t *testing.T) {
	frame := func(body string) string {
		return fmt.Sprintf(`{"__bq_frame":1,"headers":{"bq-replay-bypass":"1"},"body":%q}`, body)
	}
	tests := []struct {
		raw  string
		want retry.Reason
	}{
		{frame(good("", "")), ""},
		{frame(good("attempts", "-1")), retry.InvalidAttempts},
		{frame("{"), retry.NotJSON},
		{frame(frame(good("", ""))), retry.MissingURN}, // one frame is taken off
		{`{"__bq_frame":2,"body":"{}"}`, retry.MissingURN},
		{`{"__bq_frame":1,"body":{}}`, retry.MissingURN},
	}
	for _, test := range tests {
		var got retry.Reason
		if _, poison := Parse([]byte(test.raw)); poison != nil {
			got = poison.Reason
		}
		if got != test.want {
			t.Errorf("%s: %q, want %q", test.raw, got, test.want)
		}
	}
	if original, ok := Tried([]byte(frame(good("attempts", "4"))), 0); !ok || string(original) != good("", "") {
		t.Errorf("the original of a frame is %s", original)
	}
}
