package filter_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/filter"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

var queryTime = time.Date(2026, 3, 12, 14, 2, 11, 500, time.UTC)

func TestParseFilter_ReadsTheLanguage(t *testing.T) {
	at := func(s string) time.Time {
		parsed, err := time.Parse(time.RFC3339Nano, s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	for q, want := range map[string]filter.Filter{
		"":                                       {},
		"  ":                                     {},
		"state:dead_letter":                      {Status: job.StatusDeadLetter},
		"STATE:retryable":                        {Status: job.Status(job.Retryable)},
		"queue:orders type:email.*":              {Queue: "orders", Type: "email.*"},
		`type:"a type"`:                          {Type: "a type"},
		"reason:non_retryable":                   {Reason: retry.NonRetryable},
		"error:timeout":                          {Error: "timeout"},
		`error:"dial tcp: refused"`:              {Error: "dial tcp: refused"},
		`error:"say \"no\" \\ C:\x"`:             {Error: `say "no" \ C:\x`},
		"payload:1042 meta:acme":                 {Payload: "1042", Meta: "acme"},
		"id:019CE22A-6b01":                       {ID: "019ce22a-6b01"},
		"class:http.*":                           {Class: "http.*"},
		"group:ab12":                             {Group: "ab12"},
		"group:ab12,cd34":                        {Group: "ab12,cd34"},
		"attempts:3":                             {Attempts: filter.Span{Min: 3, Max: 3}},
		"attempts:>3":                            {Attempts: filter.Span{Min: 4}},
		"attempts:>=3":                           {Attempts: filter.Span{Min: 3}},
		"attempts:<3":                            {Attempts: filter.Span{Max: 2}},
		"attempts:<=3":                           {Attempts: filter.Span{Max: 3}},
		"attempts:2..5 run:>1":                   {Attempts: filter.Span{Min: 2, Max: 5}, Run: filter.Span{Min: 2}},
		"since:2h":                               {From: at("2026-03-12T12:02:11Z")},
		"since:1d12h before:PT1H":                {From: at("2026-03-11T02:02:11Z"), To: at("2026-03-12T13:02:11Z")},
		"from:2026-03-12":                        {From: at("2026-03-12T00:00:00Z")},
		"from:2026-03-12T13:30":                  {From: at("2026-03-12T13:30:00Z")},
		`from:"2026-03-12 13:30:05"`:             {From: at("2026-03-12T13:30:05Z")},
		"to:2026-03-12T13:30:05.123456+02:00":    {To: at("2026-03-12T11:30:05.123456Z")},
		"operation:12":                           {Operation: 12},
		"sort:oldest":                            {Sort: filter.Oldest},
		"sort:newest":                            {Sort: filter.Newest},
		"state:retryable sort:next":              {Status: "retryable", Sort: filter.Next},
		"card declined":                          {Text: "card declined"},
		`"card  declined"`:                       {Text: "card  declined"},
		`"queue:orders"`:                         {Text: "queue:orders"},
		"dial: refused":                          {Text: "dial: refused"},
		"https://api.example/v1":                 {Text: "https://api.example/v1"},
		"12:30:05":                               {Text: "12:30:05"},
		"019ce22a-6b01-7b09-96b0-4800a28f5b37":   {ID: "019ce22a-6b01-7b09-96b0-4800a28f5b37"},
		`"019ce22a-6b01-7b09-96b0-4800a28f5b37"`: {Text: "019ce22a-6b01-7b09-96b0-4800a28f5b37"},
	} {
		got, err := filter.Parse(q, queryTime)
		if err != nil || got != want {
			t.Errorf("%s is read as %+v, %v; want %+v", q, got, err, want)
		}
	}
}

func TestParseFilter_SaysWhatIsWrong(t *testing.T) {
	for q, want := range map[string]string{
		"queu:orders":              "\"queu:\" is not a qualifier; did you mean queue:. To search for it as text, use \"queu:orders\"",
		"colour:red":               "\"colour:\" is not a qualifier; there are state, queue,",
		"size:7":                   " from, since, to, before,",
		"queue:a queue:b":          "queue: is given twice",
		"since:2h from:2026-01-01": "from: is given twice",
		"queue:":                   "queue: has no value; write it right after the colon, for example queue:orders",
		"queue: orders":            "queue: has no value",
		"state:gone":               `state: "gone" is unknown`,
		"reason:none":              `reason: "none" is unknown`,
		"queue:a/b":                `queue: "a/b" is not a queue name`,
		"error:ab":                 `error: "ab" is too short to search for; use at least 3 characters`,
		"payload:é1":               `payload: "é1" is too short`,
		"ab":                       `text: "ab" is too short`,
		"attempts:many":            `attempts: "many" is not a number or a range`,
		"attempts:5..2":            "is not a number or a range",
		"attempts:0":               "it begins at 1",
		"run:<1":                   "it begins at 1",
		"since:soon":               `since: "soon" is not a time`,
		"from:1066-10-14":          "is not between the years",
		"since:1h to:2026-03-12":   "to: is not later than from",
		"operation:last":           `operation: "last" is not the number`,
		"sort:best":                `sort: "best" is unknown`,
		"sort:next":                "add state:retryable or state:scheduled",
		"state:scheduled sort:next error:timeout": "next cannot be combined with a text",
		"id:019":        `id: "019" is not the beginning of a job's id`,
		"id:not-an-id":  "is not the beginning",
		`error:"open`:   "a quotation mark is not closed",
		`error:"a b"c`:  `a space must follow the closing quotation mark of "a b"`,
		"group:a\u00e9": "is not the fingerprint",
		"group:ab12,":   "is not the fingerprint",
		"group:a" + strings.Repeat(",b", filter.MaxGroups): "names 101 error groups; name at most 100",
		"error:\xff\xff\xff":               "must be valid UTF-8",
		"type:t*":                          `type: "t*" has a * in the wrong place`,
		"class:*":                          `class: "*" has a * in the wrong place`,
		`"card declined" timeout`:          `"card declined" and "timeout" are two texts`,
		`timeout queue:a "card declined"`:  "are two texts",
		"error:abc\x00":                    "contains a NUL character",
		strings.Repeat("x", 4001):          "must be valid UTF-8 of at most 4000 bytes",
		"text " + strings.Repeat("x", 200): "text: must be valid UTF-8 of at most 200 bytes",
	} {
		f, err := filter.Parse(q, queryTime)
		var wrong *invalid.Error
		if !errors.As(err, &wrong) || wrong.Field != "q" || !strings.Contains(wrong.Problem, want) || f != (filter.Filter{}) {
			t.Errorf("%q gives %+v, %v; want an error about q: %s", q, f, err, want)
		}
	}
}

func TestFilterString_IsCanonical(t *testing.T) {
	f, err := filter.Parse(`card since:2h QUEUE:orders attempts:>3 declined state:dead_letter error:"a \"b\""`, queryTime)
	if err != nil {
		t.Fatal(err)
	}
	want := `state:dead_letter queue:orders error:"a \"b\"" attempts:>=4 from:2026-03-12T12:02:11Z "card declined"`
	if f.String() != want {
		t.Errorf("the filter is written %s, want %s", f, want)
	}
}

func TestFilterWords_AreForPeople(t *testing.T) {
	for q, want := range map[string]string{
		"":                "jobs",
		"state:retryable": "retryable jobs",
		"state:dead_letter queue:orders error:timeout": "dead letters of queue orders whose error contains timeout",
		`state:dlq_failed type:email.* queue:mail "card declined" attempts:>3 run:1 since:2h before:2026-03-13`: `refused dead letters of queue mail and type email.*` +
			` whose id, type, error, payload or meta contains "card declined" and attempts are 4 or more and run is 1` +
			` since 2026-03-12 12:02:11 UTC before 2026-03-13 00:00:00 UTC`,
		"group:ab12,cd34": "jobs of error groups ab12,cd34",
		"operation:3 group:ab12 reason:manual class:http.* attempts:<3 run:2..3": "jobs of error group ab12 and operation 3" +
			" whose reason is manual and error type is http.* and attempts are 2 or fewer and run is 2 to 3",
	} {
		f, err := filter.Parse(q, queryTime)
		if err != nil || f.Words() != want {
			t.Errorf("%s is in words\n%s, %v; want\n%s", q, f.Words(), err, want)
		}
	}
}

// anyFilter draws filters that pass their check.
func anyFilter(t *rapid.T) filter.Filter {
	text := func(name string) string {
		if !rapid.Bool().Draw(t, "has "+name) {
			return ""
		}
		return rapid.StringOfN(rapid.OneOf(rapid.Rune(), rapid.SampledFrom([]rune(` :"\abc019-`))), 3, 20, 150).Draw(t, name)
	}
	number := func(name string) filter.Span {
		low, high := rapid.IntRange(0, 9).Draw(t, name+" from"), rapid.IntRange(0, 9).Draw(t, name+" to")
		if high != 0 && high < low {
			high = low
		}
		return filter.Span{Min: low, Max: high}
	}
	moment := func(name string) time.Time {
		if !rapid.Bool().Draw(t, "has "+name) {
			return time.Time{}
		}
		return time.UnixMicro(rapid.Int64Range(1e14, 2e15).Draw(t, name)).UTC()
	}
	f := filter.Filter{
		Status: rapid.SampledFrom(append(job.Statuses(), "")).Draw(t, "state"),
		Queue:  rapid.SampledFrom([]string{"", "orders", "a:b", "state"}).Draw(t, "queue"),
		Reason: rapid.SampledFrom(append(retry.Reasons(), "")).Draw(t, "reason"),
		Group:  rapid.SampledFrom([]string{"", "ab12", `a"b`}).Draw(t, "group"),
		ID:     rapid.SampledFrom([]string{"", "019ce22a", "019ce22a-6b01-7b09-96b0-4800a28f5b37"}).Draw(t, "id"),
		Type:   text("type"), Class: text("class"), Error: text("error"), Payload: text("payload"), Meta: text("meta"), Text: text("text"),
		Attempts: number("attempts"), Run: number("run"), From: moment("from"), To: moment("to"),
		Operation: rapid.Int64Range(0, 3).Draw(t, "operation"), Sort: rapid.SampledFrom([]filter.Sort{"", filter.Newest, filter.Oldest}).Draw(t, "sort"),
	}
	if f.Check() != nil {
		t.Skip("no job can match")
	}
	return f
}

func TestFilterString_IsReadBackAsTheSameFilter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := anyFilter(t)
		got, err := filter.Parse(f.String(), queryTime)
		if err != nil || got != f {
			t.Fatalf("%#v is written %q and read back as %#v, %v", f, f.String(), got, err)
		}
		for _, name := range f.Has() {
			if without := f.Without(name); without.Value(name) != "" || len(without.Has()) != len(f.Has())-1 {
				t.Fatalf("%v without %s is %v", f, name, without)
			}
		}
	})
}

// What is accepted is written in a form that means the same; what is not says
// what is wrong with q.
func FuzzParseFilter(f *testing.F) {
	for _, q := range []string{"", `error:"a b" queue:orders`, "since:2h attempts:2..5", `x:y "`, "019ce22a-6b01-7b09-96b0-4800a28f5b37", `"\"\\"`, "id:019ce22a to:2026-03-12"} {
		f.Add(q)
	}
	f.Fuzz(func(t *testing.T, q string) {
		first, err := filter.Parse(q, queryTime)
		if err != nil {
			if wrong := new(invalid.Error); !errors.As(err, &wrong) || wrong.Field != "q" || wrong.Problem == "" {
				t.Fatalf("%q: %v", q, err)
			}
			return
		}
		second, err := filter.Parse(first.String(), queryTime.Add(time.Hour))
		if err != nil || second != first || second.String() != first.String() {
			t.Fatalf("%q is %q, which is read as %+v, %v", q, first, second, err)
		}
	})
}

// A line of a log is found as it stands, whatever colons and quotation marks it has.
func TestParse_ALineOfALogIsText(t *testing.T) {
	for q, want := range map[string]string{
		`duplicate key value violates unique constraint "users_email_key"`: `duplicate key value violates unique constraint "users_email_key"`,
		`ERROR:  duplicate key value violates unique constraint "u2"`:      `ERROR:  duplicate key value violates unique constraint "u2"`,
		"Error: the card is declined":                                      "Error: the card is declined",
		`pg_dump: error: connection to server failed`:                      `pg_dump: error: connection to server failed`,
		"PG::ConnectionBad: connection  refused\tby db":                    "PG::ConnectionBad: connection refused by db",
		`PG::ConnectionBad`:                                        `PG::ConnectionBad`,
		"error 5:in `block' is not closed \"":                      "error 5:in `block' is not closed \"",
		"job 0198c1f2-aaaa-7bbb-8ccc-0123456789ab is gone":         "job 0198c1f2-aaaa-7bbb-8ccc-0123456789ab is gone",
		`time=12:01 level=error msg="no rate" at:charge.go in job`: `time=12:01 level=error msg="no rate" at:charge.go in job`,
	} {
		f, err := filter.Parse(q, time.Now())
		if err != nil || f != (filter.Filter{Text: want}) {
			t.Errorf("%s: %+v, %v; want the text %q", q, f, err, want)
		}
	}

	for _, q := range []string{"qeue:orders state:dead_letter", "queue: orders timeout error", `"a b" c d`, "a b qeue:x state:dead_letter"} {
		if f, err := filter.Parse(q, time.Now()); err == nil {
			t.Errorf("%s is taken for %+v", q, f)
		}
	}
}

// Whatever a filter was made of, it is read back from its text as it is.
func TestWith_RefusesWhatParseWouldRefuse(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 0, 0, 0, time.UTC)
	groups := func(n, length int) string {
		return strings.TrimSuffix(strings.Repeat(strings.Repeat("a", length)+",", n), ",")
	}

	f, err := filter.Filter{}.With("group", groups(filter.MaxGroups, 16), now)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := filter.Parse(f.String(), now); err != nil || again != f {
		t.Errorf("%v, %v", again, err)
	}

	var bad *invalid.Error
	f, err = filter.Filter{}.With("group", groups(filter.MaxGroups, 64), now)
	if !errors.As(err, &bad) || bad.Field != "group" || !f.Zero() {
		t.Errorf("%d bytes of groups: %v", len(groups(filter.MaxGroups, 64)), err)
	}

	// Each of two parts can fit, and both together not.
	f, err = filter.Filter{Payload: strings.Repeat("b", 200)}.With("group", groups(60, 64), now)
	if err == nil {
		err = f.Check()
	}
	if _, again := filter.Parse(f.String(), now); (err == nil) != (again == nil) || err == nil {
		t.Errorf("the checks say %v, and Parse %v", err, again)
	}
}

// The error names the qualifier as it was written.
func TestWith_NamesTheQualifierAsItWasWritten(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 0, 0, 0, time.UTC)
	f, err := filter.Parse("from:2026-03-01 to:2026-03-11", now)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"since": "2h", "from": "2026-03-02", "before": "1h", "to": "2026-03-12"} {
		var bad *invalid.Error
		if _, err := f.With(name, value, now); !errors.As(err, &bad) || bad.Field != name {
			t.Errorf("%s: %v", name, err)
		}
	}
}
