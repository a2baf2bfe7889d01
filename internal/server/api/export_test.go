package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/server/limit"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
)

func TestExport_SaysWhereItEndsTooEarly(t *testing.T) {
	var b strings.Builder
	for _, to := range []format{asCSV(&b), asNDJSON(&b)} {
		if err := to(incomplete("that is the limit")); err != nil {
			t.Fatal(err)
		}
	}
	if want := "incomplete: that is the limit\n{\"incomplete\":\"that is the limit\"}\n"; b.String() != want {
		t.Errorf("the end is %q, want %q", b.String(), want)
	}
}

// A cell that begins with the sign of a formula is text, also behind what is left out or
// not seen. Every other cell stays as it is.
func TestExport_NoHiddenCharacterMakesACellAFormula(t *testing.T) {
	for _, before := range []string{
		"", " ", "   ", "\t", "\r", "\n", "\r\n ", "\v", "\f", "\x00", "\x1b", "\x7f", "\u0085", "\u00a0", "\u00ad", "\u034f", "\u061c",
		"\u115f", "\u180e", "\u2003", "\u200b", "\u200d", "\u200e", "\u200f", "\u2028", "\u2029", "\u202a", "\u202e", "\u2060", "\u2066",
		"\u2069", "\u3000", "\u3164", "\ufe0f", "\ufeff", "\ufff9", "\ufffd", "\U000e0001", "\U000e0100", "\xff", " \ufeff \u202e\t",
	} {
		for _, sign := range []string{"=", "+", "-", "@", "＝", "＋", "－", "＠"} {
			cell := before + sign + "cmd|' /C calc'!A0"
			if got := harmless(cell); got != "'"+cell {
				t.Errorf("%q is written as %q", cell, got)
			}
		}
	}
	for _, cell := range []string{"", " ", "a", " a", "\ufeffa", "1-1", "a=b", " {\"a\":-1}", "é", "'=", "\ufeff"} {
		if got := harmless(cell); got != cell {
			t.Errorf("%q is written as %q", cell, got)
		}
	}
}

func TestExport_WaitsForItsTurn(t *testing.T) {
	site, s := newSite(t, web.Engine{})
	refuse(t, s)
	a := New(site, nil, time.Now())
	send := serve(t, a)
	others := []limit.Address{limit.AddressOf("192.0.2.1"), limit.AddressOf("192.0.2.2")}
	for _, other := range others {
		if why := a.Limits.Exports.Take(other, 1); why != "" {
			t.Fatal(why)
		}
	}
	for _, path := range []string{"/export.csv", "/audit.ndjson"} {
		if status, kind := send("GET", path, ""); status != http.StatusServiceUnavailable || kind != problem.Overloaded.Code {
			t.Errorf("%s: %d %s", path, status, kind)
		}
	}
	a.Limits.Exports.Give(others[0], 1)
	for range 2 { // each gives its place back
		if status, kind := send("GET", "/export.csv", ""); status != http.StatusOK {
			t.Errorf("%d %s", status, kind)
		}
	}
}
