package plaintext_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/plaintext"
)

func TestComplete_ClosesWhatIsOpen(t *testing.T) {
	for cut, want := range map[string]string{
		`{`:                               `{}`,
		`[`:                               `[]`,
		` {"a"`:                           ` {}`,
		`{"a":`:                           `{}`,
		`{"a":1`:                          `{}`,
		`{"a":1,`:                         `{"a":1}`,
		`{"a":1,"b`:                       `{"a":1}`,
		`{"a":1,"b":tru`:                  `{"a":1}`,
		`{"a":"te`:                        `{"a":"te… [cut]"}`,
		`{"a":"te\`:                       `{"a":"te… [cut]"}`,
		`{"a":"te\u00`:                    `{"a":"te… [cut]"}`,
		`{"a":"te\"`:                      `{"a":"te\"… [cut]"}`,
		`{"a":"te"`:                       `{"a":"te"}`,
		`{"a":{"b":[{"c":"d"},{"e":[1,2`:  `{"a":{"b":[{"c":"d"},{"e":[1]}]}}`,
		`{"a":[[],{}`:                     `{"a":[[],{}]}`,
		`{"a":false,"b":{"c":null ,"d":-`: `{"a":false,"b":{"c":null}}`,
		`{"a":"}]","b":"\\"`:              `{"a":"}]","b":"\\"}`,
		`{"a":1}`:                         `{"a":1}`,
		`{"a":1} and more`:                `{"a":1}`,
		`["a",`:                           `["a"]`,
	} {
		if whole, ok := plaintext.Complete([]byte(cut)); !ok || string(whole) != want {
			t.Errorf("%s is completed to %s, %t; want %s", cut, whole, ok, want)
		}
	}
}

func TestComplete_RefusesWhatBeginsNoDocument(t *testing.T) {
	for _, cut := range []string{"", " ", "<html>", "text {", `"text`, "12", "]", `{"a" "b":`, `{"a":1 "b":2`, `{a:`, `[1 2,`, "{\"a\":\"\n\"", strings.Repeat("[", 20_000)} {
		if whole, ok := plaintext.Complete([]byte(cut)); ok && !json.Valid(whole) {
			t.Errorf("%.40q is completed to %.40q", cut, whole)
		}
	}
	for _, cut := range []string{"", "<html>", "text {", `"text`, "12", "]"} {
		if _, ok := plaintext.Complete([]byte(cut)); ok {
			t.Errorf("%q is completed", cut)
		}
	}
}

// Wherever the body of a framework is cut, what was read before it is not read differently
// from what came.
func TestComplete_AnyPartOfABodyCanBeRead(t *testing.T) {
	names, err := filepath.Glob(filepath.Join("..", "errortext", "testdata", "bodies", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !json.Valid(text) {
			continue
		}
		for cut := 1; cut < len(text); cut += 1 + len(text)/200 {
			part := strings.ToValidUTF8(string(text[:cut]), "")
			if whole, ok := plaintext.Complete([]byte(part)); !ok || !json.Valid(whole) {
				t.Errorf("%s: the first %d bytes are completed to %s", name, cut, whole)
			}
		}
	}
}

func FuzzComplete(f *testing.F) {
	seed(f)
	f.Add(`{"error":{"type":"a","retryable":false,"details":[{"b":"c\u00e4\"`)
	f.Fuzz(func(t *testing.T, body string) {
		whole, ok := plaintext.Complete([]byte(body))
		if ok && !json.Valid(whole) {
			t.Errorf("%q is completed to %q", body, whole)
		}
		if !json.Valid([]byte(body)) || !strings.HasPrefix(strings.TrimSpace(body), "{") {
			return
		}
		for cut := strings.Index(body, "{") + 1; cut <= len(body); cut += 1 + len(body)/16 {
			if whole, ok := plaintext.Complete([]byte(body[:cut])); !ok {
				t.Errorf("%q is completed to %q", body[:cut], whole)
			}
		}
	})
}

// seed adds the bodies of which the errors are read.
func seed(f *testing.F) {
	f.Helper()
	names, err := filepath.Glob(filepath.Join("..", "errortext", "testdata", "bodies", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
}
