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
)

func TestCursor_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := filter.Cursor{
			At:  time.UnixMicro(rapid.Int64Range(-1<<60, 1<<60).Draw(t, "at")).UTC(),
			Seq: rapid.Int64Range(1, 1<<62).Draw(t, "seq"),
		}
		if got, err := filter.ParseCursor(c.String()); err != nil || got != c {
			t.Fatalf("ParseCursor(%q) = %v, %v; want %v", c, got, err, c)
		}
	})
}

func TestParseCursor_RefusesForgeries(t *testing.T) {
	for _, forged := range []string{"x", "MS4xLjE=", "MS4xLjA", "Mi4xLjE", "MS4x", "MS4wMS4x", "MS4xLi0x", "%", strings.Repeat("A", 1000)} {
		var bad *invalid.Error
		if c, err := filter.ParseCursor(forged); !errors.As(err, &bad) || bad.Field != "after" {
			t.Errorf("ParseCursor(%q) = %v, %v; want an error of field after", forged, c, err)
		}
	}
}

func FuzzParseCursor(f *testing.F) {
	f.Add("MS4xLjE")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := filter.ParseCursor(s); err == nil && c.String() != s {
			t.Errorf("ParseCursor(%q) accepted what String never makes", s)
		}
	})
}

func TestFilterCheck_NamesTheField(t *testing.T) {
	tests := []struct {
		filter filter.Filter
		field  string
	}{
		{filter.Filter{Status: "exploded"}, "state"},
		{filter.Filter{Queue: "<script>"}, "queue"},
		{filter.Filter{Queue: strings.Repeat("q", 129)}, "queue"},
		{filter.Filter{Type: "\xff"}, "type"},
	}
	for _, test := range tests {
		var bad *invalid.Error
		if err := test.filter.Check(); !errors.As(err, &bad) || bad.Field != test.field {
			t.Errorf("Check(%+v) = %v, want an error of field %s", test.filter, err, test.field)
		}
	}
	for _, s := range job.Statuses() {
		if err := (filter.Filter{Status: s, Queue: "a.b:c_d-E", Type: "urn:babel:x"}).Check(); err != nil {
			t.Errorf("status %s is refused: %v", s, err)
		}
	}
}

func TestContains_IgnoresCaseAndWhiteSpace(t *testing.T) {
	const message = "Duplicate key value\n  violates\tunique constraint"
	for wanted, want := range map[string]bool{
		"": true, "KEY value violates": true, "value\r\nviolates": true, " unique\u00a0constraint ": true, "keyvalue": false, "key violates": false,
	} {
		if got := filter.Contains(wanted, "other", message); got != want {
			t.Errorf("Contains(%q) is %t, want %t", wanted, got, want)
		}
	}
}
