package view

import (
	"strings"
	"testing"
)

func TestChangedPaths_NameTheSmallestParts(t *testing.T) {
	for _, test := range []struct{ was, is, want string }{
		{`{"a":1,"b":{"c":[1,{"d":2}]}}`, `{"a":1,"b":{"c":[1,{"d":3}]}}`, "$.b.c[1].d"},
		{`{"a":1}`, `{"b":1}`, "$.a $.b"},
		{`{"a b":1}`, `{}`, `$["a b"]`},
		{`[1,2]`, `[1]`, "$[1]"},
		{`1`, `"1"`, "$"},
		{`1.0`, `1.00`, "$"},
		{"text", "other", "$"},
		{`{"a":1,"a":2}`, `{"a":2}`, "$"},
	} {
		if got := strings.Join(changedPaths([]byte(test.was), []byte(test.is)), " "); got != test.want {
			t.Errorf("%s to %s differ at %s, want %s", test.was, test.is, got, test.want)
		}
	}
}
