package config

import (
	"strings"
	"testing"
)

func TestLimits_HaveDefaults(t *testing.T) {
	if got, want := Default().Limits(), defaultLimits(); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
	c := parse(t, "limits: {connections: 500, request_bytes: 16MiB}")
	want := defaultLimits()
	want.Connections, want.RequestBytes = 500, 16<<20
	if got := c.Limits(); got != want {
		t.Errorf("limits %+v, want %+v", got, want)
	}
}

func TestLimits_RefuseWhatIsNoLimit(t *testing.T) {
	for _, test := range []struct{ text, want string }{
		{"limits: {connections: 0}", "limits.connections: 0 is out of range; use 10 to 1000000"},
		{"limits: {address_share: 101}", "limits.address_share: 101 is out of range; use 1 to 100"},
		{"limits: {request_bytes: 1000}", "limits.request_bytes: must be a string"},
		{"limits: {request_bytes: 64MB}", "limits.request_bytes: is not a size from 1MiB to 1024GiB, for example 64MiB"},
		{"limits: {request_bytes: 1KiB}", "is not a size from 1MiB"},
		{"limits: {request_bytes: -1MiB}", "is not a size from 1MiB"},
		{"limits: {conections: 10}", "no such field; did you mean connections?; the fields are address_share, "},
	} {
		t.Run(test.text, func(t *testing.T) {
			if _, err := Parse("redrive.yaml", []byte(test.text)); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}
