package jobpage

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"redrive/internal/rawjson"
	"redrive/web/templates/format"
)

// A payload is shown as it was received: the tree below points into its bytes
// and never decodes a value. encoding/json would change large numbers, join
// duplicate keys and replace invalid UTF-8.

const (
	maxTreeNodes = 2000 // values that a tree shows; the rest is one link away
	maxTreeDepth = 24   // deeper values are shown as the text that they are
)

// nodeKind is what stands at a node, and how it is coloured.
type nodeKind string

const (
	objectNode  nodeKind = "object"
	arrayNode   nodeKind = "array"
	stringNode  nodeKind = "str"
	numberNode  nodeKind = "num"
	literalNode nodeKind = "lit"
	rawNode     nodeKind = "raw" // a value too deep to unfold, as text
)

// node is one value of a payload.
type node struct {
	kind     nodeKind
	keyed    bool
	key      string // in its quotes, exactly as in the payload
	text     string // of a value that is not unfolded, exactly as in the payload
	children []node
	cut      bool // the preview ends inside this value
}

// tree is a payload as a page shows it.
type tree struct {
	root  *node  // nil when the payload is not JSON
	text  string // the payload instead
	why   string // why there is no tree
	shown int    // bytes that are shown
	total int
}

// partial reports whether the page shows less than there is.
func (t tree) partial() bool { return t.shown < t.total }

// treeOf reads the first preview bytes of a payload. A payload that is not JSON, or
// not even text, is shown as it is, and why it has no tree.
func treeOf(payload []byte, preview int) tree {
	t := tree{shown: betweenCharacters(payload, preview), total: len(payload)}
	switch {
	case len(payload) == 0:
		t.why = "The payload is empty."
		return t
	case !utf8.Valid(payload):
		t.why = "The payload is not valid UTF-8: invalid bytes are shown as escapes."
	case !rawjson.Valid(payload):
		t.why = "The payload is not JSON."
	default:
		root, shown := readTree(payload[:t.shown], t.partial())
		t.root = &root

		// The value was read to its end.
		if shown < 0 {
			shown = t.total
		}

		t.shown = shown

		return t
	}

	t.text = string(payload[:t.shown])

	return t
}

// betweenCharacters is the last place up to a limit where no character is cut. Bytes that are
// no UTF-8 can be cut anywhere.
func betweenCharacters(text []byte, limit int) int {
	end := min(max(limit, 0), len(text))

	for from := end - 1; from >= max(0, end-utf8.UTFMax+1); from-- {
		if !utf8.RuneStart(text[from]) {
			continue
		}

		// This character is the last that begins before the end.
		if _, n := utf8.DecodeRune(text[from:]); from+n > end {
			return from
		}

		break
	}

	return end
}

// treeReader unfolds the beginning of a JSON text.
type treeReader struct {
	*rawjson.Cursor
	src   []byte
	more  bool // the payload goes on behind src
	nodes int
	ended int // where src or the budget of nodes ran out; negative while neither has
}

// readTree returns the value that src begins with, and where it stopped before
// the end of the value, or a negative number. more says that src is cut off.
func readTree(src []byte, more bool) (root node, ended int) {
	r := treeReader{Cursor: rawjson.NewCursor(src), src: src, more: more, ended: -1}
	defer r.Close()

	root = r.value(0)

	return root, r.ended
}

var nodeKinds = map[byte]nodeKind{
	'{': objectNode, '[': arrayNode, '"': stringNode, '0': numberNode, 'n': literalNode, 't': literalNode, 'f': literalNode,
}

// value reads the next value, and unfolds it unless it is too deep.
func (r *treeReader) value(depth int) node {
	r.nodes++
	kind, from := r.Peek()
	switch folded := depth >= maxTreeDepth; {
	// The text ends where a value should begin.
	case kind == 0:
		r.ended = len(r.src)
		return node{kind: rawNode, cut: true}
	// What is too deep is shown as text.
	case (kind == '{' || kind == '[') && folded:
		to, ok := r.Skip()
		return r.textNode(rawNode, from, to, ok)
	case kind == '{' || kind == '[':
		return r.members(node{kind: nodeKinds[kind]}, depth)
	}

	read, _, to := r.Next()
	// A number at the end of what there is may have more digits.
	return r.textNode(nodeKinds[kind], from, to, read == '"' || read != 0 && !(r.more && to == len(r.src)))
}

// textNode is a value that is shown as it was written, to its end if it is whole.
func (r *treeReader) textNode(kind nodeKind, from, to int, whole bool) node {
	if !whole {
		to, r.ended = len(r.src), len(r.src)
	}
	return node{kind: kind, text: string(r.src[from:to]), cut: !whole}
}

// members reads what is inside brackets, and the closing one.
func (r *treeReader) members(n node, depth int) node {
	r.Next()

	for r.ended < 0 {
		switch kind, from := r.Peek(); {
		case kind == '}' || kind == ']':
			r.Next()
			return n
		// The text or the budget of nodes has run out inside the container.
		case kind == 0 || r.nodes >= maxTreeNodes:
			r.ended = from
		case n.kind == arrayNode:
			n.children = append(n.children, r.value(depth+1))
		default:
			n.children = append(n.children, r.member(depth))
		}
	}

	n.cut = true

	return n
}

// member reads a name and its value. A name without its value is kept too: the
// preview ends between them.
func (r *treeReader) member(depth int) node {
	kind, from, to := r.Next()
	n := r.textNode(rawNode, from, to, kind != 0)

	key := n.text
	n.text = ""
	if kind != 0 {
		n = r.value(depth + 1)
	}

	n.keyed, n.key = true, key

	return n
}

// maxString is how many characters of a string are shown while it is folded.
const maxString = 120

// head is the beginning of a string that is too long for a line or two, in its quotes.
func (n node) head() (text string, long bool) {
	if n.kind != stringNode || len(n.text) <= 2*maxString {
		return "", false
	}

	cut := maxString
	for !utf8.RuneStart(n.text[cut]) {
		cut--
	}

	return format.Visible(unescaped(n.text[:cut])) + "…", true
}

// fullText is what a string says, in the lines that it has.
func (n node) fullText() string { return format.VisibleLines(rawjson.Text([]byte(n.text))) }

// escaped are the characters that a string of JSON writes as \u05e9, and a backslash
// that begins no such escape.
var escaped = regexp.MustCompile(`(?:\\u[0-9a-fA-F]{4})+|\\[^u]`)

// unescaped writes escapes as the characters that they stand for. What a reader could
// not see stays an escape, and so does what would end the string.
func unescaped(text string) string {
	return escaped.ReplaceAllStringFunc(text, func(escapes string) string {
		// An escape such as \n stays as it was written.
		if escapes[1] != 'u' {
			return escapes
		}

		// Several escapes in a row can be one character, as "\ud83d\ude00".
		said := rawjson.Text([]byte(`"` + escapes + `"`))
		if strings.ContainsFunc(said, func(r rune) bool { return format.Hides(r) || strings.ContainsRune("\"\\\uFFFD", r) }) {
			return escapes
		}

		return said
	})
}

var plainKey = regexp.MustCompile(`^"[\pL_$@][\pL\pN_.$@/-]*"$`)

// label is the key as the tree shows it: in quotes only where it would be
// misread without them.
func (n node) label() string {
	key := unescaped(n.key)
	if plainKey.MatchString(key) {
		return key[1 : len(key)-1]
	}

	return format.Visible(key)
}

// opens reports whether a container is shown unfolded at first: the outermost one,
// and small ones near to it.
func (n node) opens(depth int) bool {
	return depth == 0 || depth <= 2 && len(n.children) <= 12 && !n.flat()
}

// flat reports whether a container is said in one line when it is folded.
func (n node) flat() bool { return len(n.children) > 0 && n.gist() != "" && len(n.children) <= 3 }

// summary says what a folded container holds.
func (n node) summary() string {
	if n.flat() {
		return n.gist()
	}

	contents := format.Counted(len(n.children), "key", "keys")
	if n.kind == arrayNode {
		contents = format.Counted(len(n.children), "item", "items")
	}

	if n.cut {
		return "the first " + contents
	}

	return contents
}

// gist is a short object in one line, "sku TR-204, qty 2"; empty when it would be
// no shorter than the object. A list has none: its values have no names.
func (n node) gist() string {
	if n.kind != objectNode || n.cut {
		return ""
	}

	var parts []string
	for _, c := range n.children {
		if len(c.children) > 0 || c.kind == rawNode || len(c.key)+len(c.text) > 40 {
			return ""
		}

		parts = append(parts, c.label()+" "+format.Visible(strings.Trim(unescaped(c.text), `"`)))
	}

	return strings.Join(parts, ", ")
}

// keyOf is what stands before a value: its key, or its place in a list.
func keyOf(n node, i int) string {
	if n.keyed {
		return n.label()
	}
	return strconv.Itoa(i)
}

// bytesAsText writes any bytes so that each can be told: text as it is, and
// what is none as \x escapes.
func bytesAsText(s string) string {
	var b strings.Builder
	for s != "" {
		r, n := utf8.DecodeRuneInString(s)

		// This is how a byte that is no UTF-8 is decoded. A U+FFFD in the text has three bytes.
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(format.VisibleLines(s[:n]))
		}

		s = s[n:]
	}

	return b.String()
}
