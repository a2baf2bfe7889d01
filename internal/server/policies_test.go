package server

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"redrive/internal/config"
)

const withPolicies = `
policies:
  patient: {use: daycry, max_attempts: 12}
queues:
  payments: {ttr: 30s, policy: {use: daycry, max_attempts: 5}}
types:
  email.*: {policy: {strategy: schedule, schedule: [30s, 2m], jitter: false}}
`

func startWithPolicies(t *testing.T) *house {
	t.Helper()
	c, err := config.Parse("redrive.yaml", []byte(withPolicies))
	if err != nil {
		t.Fatal(err)
	}
	return start(t, func(o *Options) { o.Config = c })
}

func (h *house) page(query string) string {
	h.t.Helper()
	a := h.get("/policies?" + query)
	if a.StatusCode != http.StatusOK {
		h.t.Fatalf("%s: %d %s", query, a.StatusCode, a.body)
	}
	return a.body
}

func TestPolicies_ShowsEachByItsName(t *testing.T) {
	h := startWithPolicies(t)
	for name, want := range map[string][]string{
		"":                 {"<b>default</b>", "3, the first included"},
		"default":          {"<b>default</b>", "queue payments", "type email.*", "patient", "sidekiq"},
		"queue:payments":   {"<b>queue payments</b>", "5, the first included", "<b>75 s</b> of waiting, 63.8 to 86.2 s, plus up to 5 × 30 s of running", "peak <b>1,000</b> per s"},
		"type:email.*":     {"<b>type email.*</b>", "[30 s, 2 min][min(n, 2)]"},
		"type:email.other": {"<b>type email.other</b>", "[30 s, 2 min][min(n, 2)]"},
		"patient":          {"<b>patient</b>", "12, the first included"},
		"yii2":             {"<b>yii2</b>", "A job has one attempt and is never retried."},
		"sidekiq":          {"<b>sidekiq</b>", "24 d 22 h"},
	} {
		body := h.page("preset=" + url.QueryEscape(name))
		for _, words := range want {
			if !strings.Contains(body, words) {
				t.Errorf("preset=%s does not say %q", name, words)
			}
		}
		if strings.Contains(body, "data-against") {
			t.Errorf("preset=%s is compared with itself", name)
		}
	}
}

func TestPolicies_WhatIfOverridesFieldByField(t *testing.T) {
	h := startWithPolicies(t)
	tests := []struct {
		query string
		want  []string
	}{
		{"preset=queue:payments&max_attempts=7", []string{"7, the first included", "5 s × 2<sup>n−1</sup>", `name="max_attempts" value="7"`, "time to death goes from 75 s to 5 min 15 s on average"}},
		{"preset=queue:payments&jitter_low=0.5&jitter_high=1.5", []string{"× [0.5, 1.5)", "the peak falls from 511 to 211 per second"}},
		{"preset=queue:payments&jitter_low=&jitter_high=", []string{"min( 5 s × 2<sup>n−1</sup>, 5 min )", "the peak rises from 511 to 1,000 per second"}},
		{"preset=queue:payments&max_attempts=&coefficient=", []string{"5, the first included"}},
		{"strategy=schedule&schedule=1+s,+2+min,PT1H&max_interval=2h", []string{"[1 s, 2 min, 1 h][min(n, 3)]", `value="1 s, 2 min,PT1H"`}},
		{"strategy=constant&initial_interval=7d", []string{"min( 7 d, 7 d )"}},
		{"strategy=constant&initial_interval=5+min", []string{"min( 5 min, 5 min )"}},
		{"max_attempts=10000&strategy=constant&initial_interval=3650d", []string{"more than 292 years", "of the first 30 retries", "9,974 retries more"}},
		{"strategy=polynomial&coefficient=1e308&max_attempts=50", []string{"50, the first included"}},
		{"max_attempts=0", []string{"never retried"}},
	}
	for _, test := range tests {
		body := h.page(test.query)
		for _, words := range test.want {
			if !strings.Contains(body, words) {
				t.Errorf("%s does not say %q", test.query, words)
			}
		}
		if strings.Contains(body, `aria-invalid="true"`) {
			t.Errorf("%s: a field is wrong", test.query)
		}
	}
}

func TestPolicies_SaysWhatIsWrongBesideTheField(t *testing.T) {
	h := startWithPolicies(t)
	tests := []struct{ query, field, says string }{
		{"max_attempts=many", "max_attempts", "is not a whole number"},
		{"max_attempts=-1", "max_attempts", "-1 is negative"},
		{"max_attempts=10001", "max_attempts", "10001 is too many; a run has at most 10,000 attempts"},
		{"max_attempts=1.5", "max_attempts", "is not a whole number"},
		{"max_attempts=99999999999999999999", "max_attempts", "is not a whole number, or is too large"},
		{"strategy=fibonacci", "strategy", "is unknown; use immediate"},
		{"initial_interval=soon", "initial_interval", "is not a duration"},
		{"initial_interval=-1s", "initial_interval", "must not be negative"},
		{"initial_interval=0s", "initial_interval", "Must be longer than zero"},
		{"initial_interval=20y", "initial_interval", "is not a duration"},
		{"initial_interval=1h&max_interval=5m", "max_interval", "is shorter than initial_interval"},
		{"max_interval=P1Y", "max_interval", "is not a duration"},
		{"coefficient=x", "coefficient", "is not a number"},
		{"coefficient=NaN", "coefficient", "is not a number of at least 1"},
		{"coefficient=Inf", "coefficient", "is not a number of at least 1"},
		{"coefficient=1e999", "coefficient", "is not a number"},
		{"coefficient=0.5", "coefficient", "is not a number of at least 1"},
		{"schedule=1s,,2s", "schedule", "is not a duration"},
		{"schedule=" + strings.Repeat("1s,", 120) + "1s", "schedule", "entries, at most"},
		{"schedule=" + strings.Repeat("1s,", 200), "schedule", "at most 400 bytes"},
		{"jitter_low=0.5", "", ""},
		{"jitter_low=0.5&jitter_high=", "jitter_high", "write both factors"},
		{"jitter_low=&jitter_high=1", "jitter_low", "write both factors"},
		{"jitter_low=2&jitter_high=1", "jitter_low", "Must be two factors"},
		{"jitter_low=0&jitter_high=101", "jitter_low", "Must be two factors"},
		{"jitter_low=NaN&jitter_high=NaN", "jitter_low", "Must be two factors"},
		{"jitter_low=-1&jitter_high=x", "jitter_high", "is not a number"},
		{"max_attempts=%FF", "max_attempts", "Must be valid UTF-8"},
		{"max_attempts=%00", "max_attempts", "is not a whole number"},
		{"preset=fast", "preset", "There is no policy"},
		{"preset=queue:nowhere", "preset", "does not mention the queue"},
		{"preset=%FF%00", "preset", "There is no policy"},
	}
	for _, test := range tests {
		if test.field == "" {
			test.query, test.field, test.says = test.query+"&jitter_high=", "jitter_high", "write both factors"
		}
		body := h.page(test.query)
		_, after, found := strings.Cut(body, `data-problem="`+test.field+`">`)
		if test.field == "preset" {
			_, after, found = strings.Cut(body, `role="alert">`)
		}
		said, _, _ := strings.Cut(after, "</p>")
		if !found || !strings.Contains(said, test.says) {
			t.Errorf("%s: beside %s it says %q, want %q", test.query, test.field, said, test.says)
		}
		if !strings.Contains(body, "No policy to show") {
			t.Errorf("%s: a policy is shown", test.query)
		}
	}
}

// Whatever is typed, there is an answer, soon. Here each garbage is typed into every third
// field.
func TestPolicies_AnswersEveryGarbage(t *testing.T) { answersEveryGarbage(t, 3, "exponential") }

func TestLong_PoliciesAnswerEveryGarbageUnderEveryStrategy(t *testing.T) {
	answersEveryGarbage(t, 1, "exponential", "schedule", "polynomial", "linear")
}

func answersEveryGarbage(t *testing.T, stride int, strategies ...string) {
	t.Helper()
	h := startWithPolicies(t)
	garbage := []string{
		"", "0", "-0", "1e400", "-1", "9223372036854775807", "0x10", "1_000", "NaN", "<script>", "\x00", "\xff", "½", "1s,1s", "PT", "P", "P1Y", "-PT1S",
		"2562047h47m16.854775807s", "1ns", "0.0000001", "true", "null", "[1]", "100", strings.Repeat("9", 401), strings.Repeat("PT1S,", 80), "%", "+", "\u202e",
	}
	names := []string{"preset", "strategy", "max_attempts", "initial_interval", "coefficient", "schedule", "max_interval", "jitter_low", "jitter_high", "utm_other"}
	for _, strategy := range strategies {
		for i, name := range names {
			for k, g := range garbage {
				if (i+k)%stride != 0 {
					continue
				}

				q := url.Values{"strategy": {strategy}, "max_attempts": {"1000000000"}}
				q.Set(name, g)
				a := h.get("/policies?" + q.Encode())
				if a.StatusCode != http.StatusOK || !strings.HasSuffix(a.body, "</html>") {
					t.Fatalf("%s=%q: %d", name, g, a.StatusCode)
				}
			}
		}
	}
}

func TestPolicies_RefusesAQueryThatCannotBeRead(t *testing.T) {
	if a := startWithPolicies(t).get("/policies?max_attempts=%zz"); a.StatusCode != http.StatusBadRequest {
		t.Errorf("status %d, want 400", a.StatusCode)
	}
}
