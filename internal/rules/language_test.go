package rules

import (
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
)

// times repeats s, with sep in between.
func times(s, sep string, n int) string { return strings.TrimSuffix(strings.Repeat(s+sep, n), sep) }

// refusal is an expression that does not compile, and a part of the error;
// empty: it compiles.
type refusal struct{ name, source, want string }

func malformed() []refusal {
	return []refusal{
		{"empty", " ", "is missing"},
		{"does not compile", `job.type == `, "unexpected token EOF, at column 12"},
		{"the second line", "job.type == 'a' &&\n job.typ == 'b'", "job has no such field; did you mean type?; its fields are id, type, queue, priority, run, max_attempts, ttr, trace_id, payload, meta, at line 2, column 6"},
		{"unknown field", `job.typ == "a"`, "job has no such field"},
		{"unknown field of the attempt", `attempt.count > 1`, "attempt has no such field; its fields are number, outcome, duration, worker, at column 9"},
		{"computed field", `job[job.type] == 1`, "job has no such field"},
		{"unknown name", `jobs.type == "a"`, "jobs is unknown here; did you mean job?; available are attempt, error, job, at column 1"},
		{"a whole fact", `string(job) == ""`, "job alone is not a value"},
		{"the whole environment", `$env.job.type == "a"`, "$env is unknown here"},
		{"not a bool", `attempt.number`, "expected bool, but got int"},
		{"wrong type", `attempt.number == "2"`, "mismatched types int and string"},
		{"a duration beside a number", `attempt.duration > 5`, "mismatched types time.Duration and int), at column 18"},
		{"a number beside a duration", `attempt.number == job.ttr`, "mismatched types int and time.Duration"},
		{"a duration beside an unknown", `job.ttr == job.payload.ttr`, "a duration can be combined only with a duration, for example duration(\"30s\") or seconds(30), at column 9"},
		{"a duration among numbers", `job.ttr in job.payload`, "a duration can only be in a literal list of durations, for example [duration(\"30s\")], at column 9"},
		{"a duration plus a number", `job.ttr + job.payload > attempt.duration`, "a duration can be combined only with a duration"},
		{"a square of a duration", `job.ttr * job.ttr > attempt.duration`, "a duration cannot be multiplied by a duration"},
		{"a share of a duration", `attempt.duration / job.ttr > 0.5`, "mismatched types time.Duration and time.Duration"},
		{"wrong type of an argument", `seconds("2") == job.ttr`, "cannot use string"},
		{"bad duration", `job.ttr > duration("soon")`, `"soon" is not a duration`},
		{"bad pattern", `job.type matches "("`, "missing closing )"},
		{"pattern from the payload", `job.type matches job.payload.p`, "a pattern must be a quoted literal"},
		{"a name for a value", `let a = job.type; a == "a"`, "a rule cannot use let, several statements or mappings"},
		{"statements", `true; true`, "a rule cannot use let, several statements or mappings"},
		{"mapping", `{"a": 1} == nil`, "a rule cannot use let, several statements or mappings"},
		{"the time of day", `now().Hour() < 6`, "there is no such function"},
		{"the environment", `getenv("HOME") == ""`, "there is no such function"},
		{"a method", `job.ttr.String() == "1s"`, "there is no such function"},
	}
}

func tooCostly() []refusal {
	return []refusal{
		{"pattern that multiplies", `error.message matches "(a{30}){30}"`, "costs too much"},
		{"patterns that add up", times(`job.payload.text matches "a{12}"`, " || ", 2), "costs too much"},
		{"loop in a loop", `any(job.payload.a, any(job.payload.a, true))`, "any is inside another loop"},
		{"loop in a loop over an entry", `any(job.payload.a, count(.b) > 1)`, "count is inside another loop"},
		{"the payload in a loop", `any(job.payload.a, # == job.payload.b)`, "job.payload cannot be used inside a loop: use only the entry and literal values there, at column 29"},
		{"the meta in a loop", `any(job.payload.a, # in job.meta)`, "job.meta cannot be used inside a loop"},
		{"the message in a loop", `any(job.payload.a, error.message contains #)`, "error.message cannot be used inside a loop"},
		{"small facts in a loop", `any(job.payload, # == job.type)`, "job.type cannot be used inside a loop"},
		{"small facts that add up in a loop", `any(job.payload, (` + times("job.type", " + ", 51) + `) == "x")`, "job.type cannot be used inside a loop"},
		{"a match in a loop", `any(job.payload, # matches "(a{9}b){3}")`, "costs too much"},
		{"a long text in a loop", `any(job.payload, lower("` + strings.Repeat("A", 100) + `") == #)`, "costs too much"},
		{"a range in a loop", `any(job.payload, # in 1..5)`, "a range cannot be used inside a loop"},
		{"first in a loop", `any(job.payload, first(#) == 1)`, "first cannot be used inside a loop; write #[0]"},
		{"what a loop looks for", `any(job.payload, "abc" contains #)`, "inside a loop, the text to look for must be a quoted literal"},
		{"looks for a part of the payload", `job.payload.a contains job.payload.b`, "the text to look for must have at most 255 bytes"},
		{"cuts off what the payload says", `trim(job.payload.a, job.payload.b) == ""`, "the text to look for must have at most 255 bytes"},
		{"many loops", times(`any(job.payload.a, # == 1)`, " || ", 20), "costs too much"},
		{"many comparisons", times(`job.payload.a == job.payload.b`, " || ", 9), "costs too much"},
		{"a text that grows", times(`job.payload.a`, " + ", 30) + ` == ""`, "costs too much"},
		{"a long expression", times(`job.run == 1`, " || ", 100), "the expression is too long"},
		{"a longer one", strings.Repeat(" ", maxSource) + "true", "is longer than 4096 bytes"},
		{"deep", strings.Repeat("(", 2000) + "true" + strings.Repeat(")", 2000), ""},
		{"a large range", `all(1..1000000, # > 0)`, "a range goes from one literal number up to another"},
		{"a range of the payload's", `all(1..job.payload.n, # > 0)`, "a range goes from one literal number up to another"},
		{"reduce", `reduce(job.payload.a, #acc + #) == ""`, "reduce cannot be used in a rule"},
		{"map", `map(job.payload.a, # + #) == []`, "map cannot be used in a rule"},
		{"repeat", `repeat("a", 1000000) == ""`, "repeat cannot be used in a rule"},
		{"replace", `replace(job.type, "a", "aa") == ""`, "replace cannot be used in a rule"},
		{"sort", `sort(job.payload.a) == []`, "sort cannot be used in a rule"},
	}
}

func TestCompile_RefusesAtStart(t *testing.T) {
	for _, test := range slices.Concat(malformed(), tooCostly()) {
		t.Run(test.name, func(t *testing.T) {
			_, err := compile(test.source, failureFacts{}, condition)
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("%.100s: %v, want %q", test.source, err, test.want)
			}
		})
	}
}

func TestCompile_TellsDurationsFromOtherValues(t *testing.T) {
	for _, source := range []string{
		`duration("PT30S")`, `duration("1d") * 2`, `job.ttr`, `seconds(5 * attempt.number)`, `seconds(1.5)`,
		`seconds(job.payload.wait)`, `duration("5s") * 2 ** (attempt.number - 1)`, `attempt.number > 2 ? duration("1m") : duration("1s")`,
	} {
		if _, err := compile(source, failureFacts{}, wait); err != nil {
			t.Errorf("%s: %v", source, err)
		}
	}
	for _, source := range []string{`attempt.number`, `"30s"`, `job.payload.wait`, `true`, `attempt.number * 2.5`} {
		if _, err := compile(source, failureFacts{}, wait); err == nil || !strings.Contains(err.Error(), "must give a duration") {
			t.Errorf("%s: %v, want that it must give a duration", source, err)
		}
	}
}

func TestCompile_BeforeEnqueueKnowsTheJobOnly(t *testing.T) {
	if _, err := compile(`attempt.number > 1`, enqueueFacts{}, condition); err == nil || !strings.Contains(err.Error(), "available are job,") {
		t.Errorf("%v, want that only job is known", err)
	}
}

// failing is a job that failed in its second attempt.
func failing(payload string) failureFacts {
	began := time.Unix(1000, 0)
	return newFailureFacts(job.Job{
		Token: job.Token{ID: "the id", Run: 2}, Type: "email.send", Queue: "mail", Priority: 3, Attempts: 1,
		Payload: []byte(payload), Meta: []byte(`{"tenant": "acme"}`), Timeout: time.Minute, TraceID: "trace",
		StartedAt: began, Worker: "worker-1",
	}, job.Ending{Outcome: job.TimedOut, FinishedAt: began.Add(40 * time.Second), Error: job.ErrorInfo{Type: "http.503", Message: "Service Unavailable"}})
}

func TestExpression_SeesTheFacts(t *testing.T) {
	payload := `{"n": 3, "text": "abc", "items": [{"price": 5, "tags": ["a", "b"]}, {"price": 200}], "none": null, "a-b": true}`
	for _, source := range []string{
		`job.id == "the id" && job.type == "email.send" && job.queue == "mail" && job.trace_id == "trace"`,
		`job.priority == 3 && job.run == 2 && job.max_attempts == 1 && job.ttr == duration("PT1M")`,
		`attempt.number == 2 && attempt.outcome == "timed_out" && attempt.worker == "worker-1"`,
		`attempt.duration == duration("40s") && attempt.duration * 2 > job.ttr`,
		`attempt.duration > job.ttr * 0.5 && attempt.duration < 0.7 * job.ttr && job.ttr / 2 == seconds(30)`,
		`job.ttr * job.payload.n == duration("3m") && job.ttr in [duration("1m")] && job.ttr - seconds(20) == attempt.duration`,
		`error.type startsWith "http." && error.type endsWith "503" && lower(error.message) contains "unavailable"`,
		`error.retryable == nil && error.code == ""`,
		`job.meta.tenant == "acme" && job.meta["tenant"] matches "^ac" && job.meta.other == nil`,
		`job.payload.n == 3 && job.payload.text == "abc" && job.payload["a-b"]`,
		`any(job.payload.items, .price > 100) && count(job.payload.items, .price > 1) == 2`,
		`any(job.payload.items, "a" in .tags ?? [])`,
		`find(job.payload.items, .price > 100).price == 200`,
		`sum(job.payload.items, .price) == 205 && len(filter(job.payload.items, .price < 10)) == 1`,
		`job.payload.none?.deep?.deeper == nil && job.payload.text in ["abc", "def"] && job.payload.n in 1..5`,
		`job.payload.text[0:2] == "ab" && (job.payload.n > 2 ? true : false)`,
		`all(1..1000, # > 0)`,
	} {
		x, err := compile(source, failureFacts{}, condition)
		if err != nil {
			t.Errorf("%s: %v", source, err)
			continue
		}
		f := failing(payload)
		if is, err := x.holds(f, f.Job); !is || err != nil {
			t.Errorf("%s: %v, %v; want true", source, is, err)
		}
	}
}

func TestExpression_ReadsThePayloadOnlyWhenItIsMentioned(t *testing.T) {
	x, err := compile(`job.type == "email.send"`, failureFacts{}, condition)
	if err != nil {
		t.Fatal(err)
	}
	f := failing("this is no JSON")
	if is, err := x.holds(f, f.Job); !is || err != nil {
		t.Errorf("%v, %v; want true", is, err)
	}
}

func TestExpression_FailsAtRunTime(t *testing.T) {
	many := `{"a": [` + times("0", ",", 110_000) + `]}`
	tests := []struct{ name, source, payload, want string }{
		{"what is not there", `job.payload.a.b == 1`, `{}`, "cannot fetch b from <nil>, at column 15"},
		{"a member of a list", `job.payload.a == 1`, `[1]`, "int(string)"},
		{"division by zero", `1 % (attempt.number - 2) == 0`, `{}`, "divide by zero"},
		{"no number", `int(job.payload.a) == 1`, `{"a": "x"}`, "int(x)"},
		{"no list", `any(job.payload.a, true)`, `{"a": 1}`, "a loop needs a list, not float64"},
		{"a text is no list", `any(job.payload.a, # == 1)`, `{"a": "abc"}`, "a loop needs a list, not string"},
		{"no bool", `job.payload.a`, `{"a": 1}`, "bool"},
		{"nil is no bool", `not job.payload.a`, `{}`, "nil, not bool"},
		{"no JSON", `job.payload.a == 1`, `{`, "the payload cannot be read"},
		{"a list without end", `len(filter(job.payload.a, true)) + len(filter(job.payload.a, # != 1)[1:]) == 0`, many, "memory budget exceeded"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			x, err := compile(test.source, failureFacts{}, condition)
			if err != nil {
				t.Fatal(err)
			}
			f := failing(test.payload)
			if _, err := x.holds(f, f.Job); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want %q", err, test.want)
			}
		})
	}
}

func FuzzCompile(f *testing.F) {
	for _, source := range []string{
		`job.type == "a" && attempt.number < 5`, `any(job.payload.items, .price > 100)`, `job.payload?.a?.b ?? 1 in 1..5`,
		`seconds(5 * 2 ** attempt.number) > duration("1m")`, `job.meta["a"] matches "^a+$"`, `error.message[1:] contains "x" ? true : not false`,
	} {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		x, err := compile(source, failureFacts{}, condition)
		if err != nil {
			return
		}
		facts := failing(`{"items": [{"price": 1}, 2, "x", null], "a": {"b": 3}}`)
		_, _ = x.holds(facts, facts.Job) // that it fails is fine; that it panics or never ends is not
	})
}
