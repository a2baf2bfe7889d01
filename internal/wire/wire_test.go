package wire_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/invalid"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

func TestParseDuration(t *testing.T) {
	tests := []struct {
		in   string
		want time.Duration
		ok   bool
	}{
		{"PT1S", time.Second, true},
		{"PT0S", 0, true},
		{"PT1.5S", 1500 * time.Millisecond, true},
		{"PT5M", 5 * time.Minute, true},
		{"PT1H30M", 90 * time.Minute, true},
		{"P1D", 24 * time.Hour, true},
		{"P7DT1S", 7*24*time.Hour + time.Second, true},
		{"P2W", 14 * 24 * time.Hour, true},
		{"-PT1S", 0, false},
		{"1s", time.Second, true},
		{"2 min", 2 * time.Minute, true},
		{"1.5h", 90 * time.Minute, true},
		{"", 0, false},
		{"P", 0, false},
		{"PT", 0, false},
		{"P1Y", 0, false},
		{"P1M", 0, false},
		{"PT99999999999999999999S", 0, false},
		{"P5000D", 0, false},
		{"pt1s", 0, false},
		{"PT1S ", 0, false},
		{"PT1S1", 0, false},
		{"PTS", 0, false},
		{"PT1.5.5S", 0, false},
	}
	for _, test := range tests {
		got, err := wire.ParseDuration(test.in)
		if got != test.want && test.ok || (err == nil) != test.ok {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v, ok %v", test.in, got, err, test.want, test.ok)
		}
	}
}

func TestParseDuration_TakesEveryForm(t *testing.T) {
	for _, in := range []string{"90s", "1m30s", "1 min 30 s", "PT90S", "PT1M30S"} {
		if got, err := wire.ParseDuration(in); err != nil || got != 90*time.Second {
			t.Errorf("ParseDuration(%q) = %v, %v; want 1m30s", in, got, err)
		}
	}
	for in, want := range map[string]time.Duration{
		"180d": 180 * 24 * time.Hour, "1d12h": 36 * time.Hour, "0d": 0, "0d1s": time.Second,
	} {
		if got, err := wire.ParseDuration(in); err != nil || got != want {
			t.Errorf("ParseDuration(%q) = %v, %v; want %v", in, got, err, want)
		}
	}
	for _, in := range []string{"90", "1 minute", "200000h", "-1s", "d", "-1d", "1.5d", "1d1", "1d-1s", "3661d", "3660d1s", "65535d2562047h", "99999999d"} {
		if got, err := wire.ParseDuration(in); err == nil {
			t.Errorf("ParseDuration(%q) = %v, want an error", in, got)
		}
	}
}

func TestParseDuration_SaysThatItMustNotBeNegative(t *testing.T) {
	for _, in := range []string{"-5s", "-PT1S", "-1d12h"} {
		if _, err := wire.ParseDuration(in); err == nil || err.Error() != `"`+in+`" must not be negative` {
			t.Errorf("ParseDuration(%q): %v", in, err)
		}
	}
	if _, err := wire.ParseDuration(strings.Repeat("-", 1<<20) + "5s"); err == nil {
		t.Error("many dashes are a duration")
	}
}

func FuzzParseDuration(f *testing.F) {
	for _, s := range []string{"PT1S", "P1DT2H3M4.5S", "-PT0.000001S", "P1Y2M", "PT1e9S"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, err := wire.ParseDuration(s)
		if err != nil {
			return
		}
		if again, err := wire.ParseDuration(wire.FormatDuration(d)); err != nil || again != d {
			t.Errorf("%q is %v, written %q, read back %v, %v", s, d, wire.FormatDuration(d), again, err)
		}
	})
}

func TestEncodePolicy_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		micros := func(name string, low int64) time.Duration {
			return time.Duration(rapid.Int64Range(low, 3600*24*3650*1e6).Draw(t, name)) * time.Microsecond
		}
		p := retry.Policy{
			MaxAttempts:     rapid.IntRange(0, 1<<40).Draw(t, "max_attempts"),
			Strategy:        rapid.SampledFrom(retry.Strategies()).Draw(t, "strategy"),
			InitialInterval: micros("initial", 1), MaxInterval: micros("cap", 1),
			Coefficient:  rapid.Float64Range(1, 1e300).Draw(t, "coefficient"),
			Jitter:       rapid.SampledFrom([]retry.Jitter{{}, {Low: 0.5, High: 1.5}, {Low: 0.85, High: 1.15}}).Draw(t, "jitter"),
			NonRetryable: rapid.SliceOfN(rapid.StringN(0, 20, 200), 0, retry.MaxEntries).Draw(t, "non_retryable"),
			OnExhaustion: rapid.SampledFrom([]retry.Action{retry.DeadLetter, retry.Discard}).Draw(t, "on_exhaustion"),
		}
		for range rapid.IntRange(0, 3).Draw(t, "entries") {
			p.Schedule = append(p.Schedule, micros("entry", 0))
		}
		got, err := wire.DecodePolicy(wire.EncodePolicy(p))
		if len(p.NonRetryable) == 0 {
			p.NonRetryable, got.NonRetryable = nil, nil
		}
		if err != nil || !reflect.DeepEqual(got, p) {
			t.Fatalf("written %s, read back\n%+v, %v; want\n%+v", wire.EncodePolicy(p), got, err, p)
		}
	})
}

func TestDecodePatch_NamesAWholePolicy(t *testing.T) {
	for _, in := range []string{`"daycry"`, ` "daycry" `, `{"use": "daycry"}`} {
		if p, err := wire.DecodePatch([]byte(in)); err != nil || !reflect.DeepEqual(p, retry.Patch{Use: "daycry"}) {
			t.Errorf("DecodePatch(%s) = %+v, %v; want use daycry alone", in, p, err)
		}
	}
}

func TestDecodePatch_NamesTheField(t *testing.T) {
	tests := []struct{ in, field string }{
		{`[]`, "policy"},
		{`null`, "policy"},
		{`""`, "policy"},
		{`{"use": ""}`, "use"},
		{`{"use": 1}`, "use"},
		{`{"max_attempts": 2.5}`, "max_attempts"},
		{`{"max_attempts": "3"}`, "max_attempts"},
		{`{"max_attempts": null}`, "max_attempts"},
		{`{"strategy": 1}`, "strategy"},
		{`{"initial_interval": 1}`, "initial_interval"},
		{`{"initial_interval": "soon"}`, "initial_interval"},
		{`{"coefficient": "2"}`, "coefficient"},
		{`{"coefficient": 1e999}`, "coefficient"},
		{`{"schedule": "PT1S"}`, "schedule"},
		{`{"schedule": ["PT1S", "soon"]}`, "schedule"},
		{`{"max_interval": "P1M"}`, "max_interval"},
		{`{"jitter": 0.5}`, "jitter"},
		{`{"jitter": [0.5]}`, "jitter"},
		{`{"non_retryable_errors": "auth.*"}`, "non_retryable_errors"},
		{`{"on_exhaustion": true}`, "on_exhaustion"},
		{`{"tries": 3}`, "tries"},
		{`{"schedule": [` + strings.Repeat(`"PT1S",`, retry.MaxEntries) + `"PT1S"]}`, "schedule"},
		{`{"non_retryable_errors": [` + strings.Repeat(`"a",`, retry.MaxEntries) + `"a"]}`, "non_retryable_errors"},
		{`{"non_retryable_errors": ["` + strings.Repeat("a", 256) + `"]}`, "non_retryable_errors"},
	}
	for _, test := range tests {
		var bad *invalid.Error
		if _, err := wire.DecodePatch([]byte(test.in)); !errors.As(err, &bad) || bad.Field != test.field {
			t.Errorf("DecodePatch(%s) = %v, want an error of field %s", test.in, err, test.field)
		}
	}
}

func TestDecodePatch_TellsAllErrorsAndKeepsTheRest(t *testing.T) {
	patch, err := wire.DecodePatch([]byte(`{"tries": 3, "max_attempts": "x", "max_interval": "soon", "use": "slow", "jitter": 1}`))
	const want = `jitter: must be true, false or two factors, for example [0.5, 1.5]
max_attempts: must be a whole number, not "x"
max_interval: "soon" is not a duration of at most ten years, for example 5s, 2m, 7d or PT1H
tries: no such field in a policy; the fields are coefficient, initial_interval, jitter, max_attempts, max_interval, non_retryable_errors, on_exhaustion, schedule, strategy, use`
	if err == nil || err.Error() != want {
		t.Errorf("got\n%v\nwant\n%s", err, want)
	}
	if patch != (retry.Patch{Use: "slow"}) {
		t.Errorf("left is %+v", patch)
	}
}

func TestDecodePatch_ReadsJitter(t *testing.T) {
	tests := []struct {
		in   string
		want retry.Jitter
	}{
		{`{"jitter": true}`, retry.Jitter{Low: 0.5, High: 1.5}},
		{`{"jitter": false}`, retry.Jitter{}},
		{`{"jitter": [0.85, 1.15]}`, retry.Jitter{Low: 0.85, High: 1.15}},
	}
	for _, test := range tests {
		patch, err := wire.DecodePatch([]byte(test.in))
		if err != nil || patch.Jitter == nil || *patch.Jitter != test.want {
			t.Errorf("DecodePatch(%s) = %+v, %v", test.in, patch.Jitter, err)
		}
	}
}

func FuzzDecodePatch(f *testing.F) {
	f.Add([]byte(`{"max_attempts":3,"strategy":"schedule","schedule":["PT0S"],"jitter":[0.5,1.5],"on_exhaustion":"discard"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		patch, err := wire.DecodePatch(data)
		if err != nil {
			return
		}
		if p := retry.Default().With(patch); p.Validate() == nil {
			if _, err := wire.DecodePolicy(wire.EncodePolicy(p)); err != nil {
				t.Errorf("%s is valid, but cannot be read back: %v", data, err)
			}
		}
	})
}
