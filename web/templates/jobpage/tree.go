package jobpage

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

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

// treeOf reads the first preview bytes of a payload.
func treeOf(payload []byte, preview int) tree {
	t := tree{shown: min(max(preview, 0), len(payload)), total: len(payload)}
	switch {
	case len(payload) == 0:
		t.why = "The payload is empty."
		return t
	case !utf8.Valid(payload):
		t.why = "The payload is not valid UTF-8: bytes that are no text are written as escapes."
	case !json.Valid(payload):
		t.why = "The payload is not JSON."
	default:
		for t.shown < len(payload) && t.shown > 0 && !utf8.RuneStart(payload[t.shown]) {
			t.shown--
		}
		s := scanner{src: string(payload[:t.shown]), more: t.partial()}
		root := s.value(0)
		t.root, t.shown = &root, s.shownOf(len(payload))
		return t
	}
	t.text = string(payload[:t.shown])
	return t
}

// scanner walks over the beginning of valid JSON. Whatever it is given, it
// ends, and never reads outside of src.
type scanner struct {
	src   string
	more  bool // the payload goes on behind src
	pos   int
	nodes int
	ended bool // src or the budget of nodes ran out
}

// shownOf is how many of total bytes the tree shows.
func (s *scanner) shownOf(total int) int {
	if s.ended {
		return min(s.pos, total)
	}
	return total
}

func (s *scanner) value(depth int) node {
	s.nodes++
	s.space()
	start := s.pos
	switch {
	case s.pos >= len(s.src):
		s.ended = true
		return node{kind: rawNode, cut: true}
	case depth >= maxTreeDepth && (s.src[s.pos] == '{' || s.src[s.pos] == '['):
		s.skip()
		return s.leaf(rawNode, start)
	case s.src[s.pos] == '{':
		return s.members(node{kind: objectNode}, '}', depth)
	case s.src[s.pos] == '[':
		return s.members(node{kind: arrayNode}, ']', depth)
	case s.src[s.pos] == '"':
		s.quoted()
		return s.leaf(stringNode, start)
	}
	s.bare()
	s.ended = s.ended || s.more && s.pos >= len(s.src)
	if c := s.src[start]; c == '-' || c >= '0' && c <= '9' {
		return s.leaf(numberNode, start)
	}
	return s.leaf(literalNode, start)
}

func (s *scanner) leaf(kind nodeKind, start int) node {
	return node{kind: kind, text: s.src[start:s.pos], cut: s.ended}
}

// members reads what is inside brackets, up to the closing one.
func (s *scanner) members(n node, closing byte, depth int) node {
	s.pos++
	for {
		s.separators()
		switch {
		case s.pos >= len(s.src) || s.nodes >= maxTreeNodes && s.src[s.pos] != closing:
			s.ended, n.cut = true, true
			return n
		case s.src[s.pos] == closing:
			s.pos++
			return n
		}
		n.children = append(n.children, s.member(n.kind, depth))
		if s.ended {
			n.cut = true
			return n
		}
	}
}

func (s *scanner) member(parent nodeKind, depth int) node {
	if parent == arrayNode || s.src[s.pos] != '"' {
		return s.value(depth + 1)
	}
	start := s.pos
	s.quoted()
	key := s.src[start:s.pos]
	if s.ended {
		return node{kind: rawNode, keyed: true, key: key, cut: true}
	}
	s.separators()
	n := s.value(depth + 1)
	n.keyed, n.key = true, key
	return n
}

// quoted moves behind a string.
func (s *scanner) quoted() {
	for s.pos++; s.pos < len(s.src); s.pos++ {
		switch s.src[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return
		}
	}
	s.pos, s.ended = len(s.src), true
}

// skip moves behind an object or array without unfolding it.
func (s *scanner) skip() {
	for open := 0; s.pos < len(s.src); {
		switch s.src[s.pos] {
		case '"':
			s.quoted()
			continue
		case '{', '[':
			open++
		case '}', ']':
			open--
		}
		s.pos++
		if open <= 0 {
			return
		}
	}
	s.ended = true
}

// bare moves behind a number or a word; at least one byte, so that every walk
// ends.
func (s *scanner) bare() {
	s.pos++
	for s.pos < len(s.src) && !strings.ContainsRune(" \t\r\n,:]}", rune(s.src[s.pos])) {
		s.pos++
	}
}

func (s *scanner) space()      { s.over(" \t\r\n") }
func (s *scanner) separators() { s.over(" \t\r\n,:") }

func (s *scanner) over(chars string) {
	for s.pos < len(s.src) && strings.IndexByte(chars, s.src[s.pos]) >= 0 {
		s.pos++
	}
}

var plainKey = regexp.MustCompile(`^"[\pL_$@][\pL\pN_.$@/-]*"$`)

// label is the key as the tree shows it: in quotes only where it would be
// misread without them.
func (n node) label() string {
	if plainKey.MatchString(n.key) {
		return n.key[1 : len(n.key)-1]
	}
	return format.Visible(n.key)
}

// opens reports whether a container is shown unfolded at first.
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
	held := format.Counted(len(n.children), "key", "keys")
	if n.kind == arrayNode {
		held = format.Counted(len(n.children), "item", "items")
	}
	if n.cut {
		return "the first " + held
	}
	return held
}

// gist is a short object in one line, "sku TR-204, qty 2"; empty when it would
// be no shorter than the object.
func (n node) gist() string {
	if n.kind != objectNode || n.cut {
		return ""
	}
	var parts []string
	for _, c := range n.children {
		if len(c.children) > 0 || c.kind == rawNode || len(c.key)+len(c.text) > 40 {
			return ""
		}
		parts = append(parts, c.label()+" "+format.Visible(strings.Trim(c.text, `"`)))
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
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(&b, `\x%02x`, s[0])
		} else {
			b.WriteString(format.VisibleLines(s[:n]))
		}
		s = s[n:]
	}
	return b.String()
}
