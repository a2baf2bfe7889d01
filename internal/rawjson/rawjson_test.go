package rawjson

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestDepth(t *testing.T) {
	tests := []struct {
		data string
		want int
	}{
		{``, 0}, {`1`, 0}, {`{}`, 1}, {`[{"a":[]},{}]`, 3}, {`["[[[","\"[["]`, 1}, {`]]]]`, 0}, {`"[[[`, 0}, {`[[["`, 3},
	}
	for _, test := range tests {
		if got := Depth([]byte(test.data)); got != test.want {
			t.Errorf("%s: %d, want %d", test.data, got, test.want)
		}
	}
}

func TestCursor_SkipsOneValue(t *testing.T) {
	for _, value := range []string{`1`, `-1.5e3`, `null`, `""`, `"a\"b,]"`, `"\\"`, `[]`, `[1, "]" ]`, `{ "a" : {"}":[]} }`} {
		for _, rest := range []string{``, `,2]`, ` ,2`, `}`, `]`, "\n}", `:`} {
			if got, ok := NewCursor([]byte(value + rest)).Skip(); got != len(value) || !ok {
				t.Errorf("%s%s: ends at %d, %t, want %d", value, rest, got, ok, len(value))
			}
		}
	}
}

func TestPrefix(t *testing.T) {
	tests := []struct {
		data string
		want Beginning
	}{
		{`{"a":[1]} x`, Beginning{Whole: true, Len: 9, Looked: 9, Open: []int{}}},
		{`"a", 1`, Beginning{Whole: true, Len: 3, Looked: 3}},
		{` [1,{"a":[[2], {`, Beginning{Len: 16, Looked: 16, Open: []int{1, 4, 9, 15}}},
		{`[{} ,x]`, Beginning{Len: 3, Looked: 3, Open: []int{0}}},
		{`["a`, Beginning{Len: 1, Looked: 3, Open: []int{0}}},
		{`[}`, Beginning{Len: 1, Looked: 1, Open: []int{0}}},
		{`]`, Beginning{}},
	}
	for _, test := range tests {
		if got := Prefix([]byte(test.data)); !reflect.DeepEqual(got, test.want) {
			t.Errorf("%s: %+v, want %+v", test.data, got, test.want)
		}
	}
}

func TestHalfPair(t *testing.T) {
	tests := []struct{ data, want string }{
		{`""`, ``}, {`"\u0041\n"`, ``}, {`"\ud83d\ude00"`, ``}, {`"\\ud800"`, ``}, {`"\ud800"`, `\ud800`}, {`"\udc00\ud800"`, `\udc00`},
		{`"\\\ud800"`, `\ud800`}, {`"\ud83d\ude00\ud83d"`, `\ud83d`}, {`"x\ud83dx\ude00"`, `\ud83d`},
	}
	for _, test := range tests {
		if got := HalfPair([]byte(test.data)); got != test.want {
			t.Errorf("%s: %q, want %q", test.data, got, test.want)
		}
	}
}

// FuzzParts compares what the functions find with the standard library.
func FuzzParts(f *testing.F) {
	f.Add([]byte(`[ 1, {"a":"\"}"} ,[] ]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		Depth(data) // must not panic
		if Valid(data) != json.Valid(data) {
			t.Fatalf("%q is valid: %t", data, Valid(data))
		}
		if !json.Valid(data) {
			return
		}
		c := NewCursor(data)
		_, i := c.Peek()
		if end, ok := c.Skip(); !ok || !bytes.Equal(data[i:end], bytes.Trim(data, " \t\r\n")) {
			t.Fatalf("%q ends at %d, %t", data, end, ok)
		}
		var text string
		if data[i] == '"' && json.Unmarshal(data, &text) == nil {
			if changed := strings.Contains(text, "\uFFFD"); HalfPair(data) != "" && !changed {
				t.Fatalf("%q has no half of a pair", data)
			}
		}
	})
}
