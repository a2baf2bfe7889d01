package jobpage

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

// rebuild writes the tree back as compact JSON, up to where it was cut.
func rebuild(b *strings.Builder, n node) {
	if n.keyed {
		b.WriteString(n.key)
		if n.cut && n.kind == rawNode && n.text == "" {
			return
		}
		b.WriteByte(':')
	}
	brackets := map[nodeKind]string{objectNode: "{}", arrayNode: "[]"}[n.kind]
	if brackets == "" {
		b.WriteString(n.text)
		return
	}
	b.WriteByte(brackets[0])
	for i, c := range n.children {
		if i > 0 {
			b.WriteByte(',')
		}
		rebuild(b, c)
	}
	if !n.cut {
		b.WriteByte(brackets[1])
	}
}

func rebuilt(t tree) string {
	var b strings.Builder
	rebuild(&b, *t.root)
	return b.String()
}

// squeeze removes the space outside of strings, and changes nothing else.
func squeeze(t *testing.T, s string) string {
	t.Helper()
	var b bytes.Buffer
	if err := json.Compact(&b, []byte(s)); err != nil {
		t.Fatalf("json.Compact(%q): %v", s, err)
	}
	return b.String()
}

func TestTree_KeepsEveryScalarAsItWasWritten(t *testing.T) {
	for _, payload := range []string{
		`{"order_id": 12345678901234567890, "amount": 1.10, "x": 1E+02, "neg": -0.0}`,
		`{"a": 1, "a": 2, "": null, "with space": true}`,
		`{"s": "\u0041\/ \" \\ <b>é</b>", "e": {}, "l": [], "n": [[], {}, [1]]}`,
		`"just text"`, `42`, `null`, ` [1 , 2 ] `, `{}`,
	} {
		got := treeOf([]byte(payload), 1<<16)
		if got.root == nil {
			t.Fatalf("treeOf(%s): no tree: %s", payload, got.why)
		}
		if rebuilt(got) != squeeze(t, payload) {
			t.Errorf("treeOf(%s) holds %s", payload, rebuilt(got))
		}
		if got.partial() {
			t.Errorf("treeOf(%s) says that %d of %d bytes are shown", payload, got.shown, got.total)
		}
	}
}

func TestTree_CutsAtThePreviewAndSaysSo(t *testing.T) {
	payload := `{"name": "müller", "items": [1, 22, {"k": "v"}], "last": true}`
	want := squeeze(t, payload)
	for preview := range len(payload) {
		got := treeOf([]byte(payload), preview)
		if text := rebuilt(got); !strings.HasPrefix(want, text) {
			t.Errorf("cut at %d, the tree holds %q, no beginning of %q", preview, text, want)
		}
		if !got.partial() {
			t.Errorf("cut at %d, the tree says that it is whole", preview)
		}
	}
}

func TestTree_IsBoundedInNodesAndDepth(t *testing.T) {
	wide := treeOf([]byte("["+strings.Repeat("1,", 30000)+"1]"), 1<<16)
	if n := len(wide.root.children); n > maxTreeNodes || !wide.partial() {
		t.Errorf("a list of 30,001 numbers shows %d, partial %v", n, wide.partial())
	}
	deep := treeOf([]byte(strings.Repeat("[", 120)+`"x"`+strings.Repeat("]", 120)), 1<<16)
	depth, n := 0, *deep.root
	for len(n.children) > 0 {
		depth, n = depth+1, n.children[0]
	}
	if depth != maxTreeDepth || n.kind != rawNode || !strings.Contains(n.text, `["x"]`) {
		t.Errorf("120 brackets unfold to depth %d, ending in %+v", depth, n)
	}
}

func TestTree_ShowsWhatIsNotJSONAsText(t *testing.T) {
	for payload, why := range map[string]string{
		"":             "empty",
		"=cmd()|'/C'!": "not JSON",
		"{\"a\":":      "not JSON",
		"{\"a\":\xff}": "not valid UTF-8",
		"1 2":          "not JSON",
	} {
		got := treeOf([]byte(payload), 1<<16)
		if got.root != nil || !strings.Contains(got.why, why) || got.text != payload {
			t.Errorf("treeOf(%q) = %+v, want its text and why: %s", payload, got, why)
		}
	}
}

// The preview of a text ends between two characters, and that of other bytes where it is told.
func TestTree_CutsNoCharacter(t *testing.T) {
	for _, test := range []struct {
		payload string
		preview int
		text    string
	}{
		{"müller", 1, "m"}, {"müller", 2, "m"}, {"müller", 3, "mü"}, {"müller", 9, "müller"},
		{"a😀b", 2, "a"}, {"a😀b", 4, "a"}, {"a😀b", 5, "a😀"}, {"😀", 3, ""},
		{"a😀b\xff", 4, "a"},
		{"\xff\xe2\x82x", 3, "\xff\xe2\x82"}, {"a\x80\x80\x80\x80", 3, "a\x80\x80"}, {"\xf0\x9f\x98", 2, "\xf0\x9f"},
	} {
		got := treeOf([]byte(test.payload), test.preview)
		if got.text != test.text || got.shown != len(test.text) {
			t.Errorf("%q cut at %d shows %q, %d bytes; want %q", test.payload, test.preview, got.text, got.shown, test.text)
		}
	}
}

func TestTree_KeyKeepsItsQuotesWhereItWouldBeMisread(t *testing.T) {
	for key, want := range map[string]string{
		`"order_id"`: "order_id", `"größe"`: "größe", `"a b"`: `"a b"`, `""`: `""`, `"a:"`: `"a:"`, `"1"`: `"1"`,
		"\"\u202ea\"": `"\u202ea"`,
	} {
		if got := (node{keyed: true, key: key}).label(); got != want {
			t.Errorf("label of %s = %s, want %s", key, got, want)
		}
	}
}

func TestTree_FoldedObjectSaysWhatItHolds(t *testing.T) {
	root := treeOf([]byte(`{"line": {"sku": "TR-204", "qty": 2}, "list": [1, 2], "deep": {"a": {"b": 1}}, "none": {}}`), 1<<16).root
	for i, want := range []string{"sku TR-204, qty 2", "2 items", "1 key", "0 keys"} {
		if got := root.children[i].summary(); got != want {
			t.Errorf("summary of %s = %q, want %q", root.children[i].key, got, want)
		}
	}
}

func FuzzTree(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2,{"b":"c\\\""}],"a":null}`, `[[[[`, `"\`, `{"a`, `{"a":`, `tru`, "\xff", `{,:]}`, `-`, `[1,]`,
	} {
		f.Add([]byte(seed), 1<<16)
		f.Add([]byte(seed), 3)
	}
	f.Fuzz(func(t *testing.T, payload []byte, preview int) {
		readTree(payload, false) // any bytes: it only has to end
		got := treeOf(payload, preview)
		if got.shown < 0 || got.shown > len(payload) {
			t.Fatalf("shown %d of %d bytes", got.shown, len(payload))
		}
		if got.root == nil {
			if got.text != string(payload[:got.shown]) {
				t.Fatalf("text %q is not the beginning of %q", got.text, payload)
			}
			return
		}
		want := squeeze(t, string(payload))
		if text := rebuilt(got); got.partial() && !strings.HasPrefix(want, text) || !got.partial() && treeShows(got) && text != want {
			t.Fatalf("the tree of %q holds %q", want, text)
		}
	})
}

// treeShows reports whether every value is a node: none was kept as raw text,
// in which spaces remain.
func treeShows(t tree) bool {
	var raw func(n node) bool
	raw = func(n node) bool {
		if n.kind == rawNode {
			return true
		}
		for _, c := range n.children {
			if raw(c) {
				return true
			}
		}
		return false
	}
	return !raw(*t.root)
}
