package api

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/server/limit"
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
		if status, kind := send("GET", path, ""); status != http.StatusServiceUnavailable || kind != web.Overloaded.Code {
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
