package redact

import (
	"bytes"
	"slices"
	"strings"
	"unicode/utf8"

	"redrive/internal/rawjson"
)

// walker goes through the values of a document, as far as it is JSON.
type walker struct {
	data     []byte
	src      string // the same, of which names and texts are parts
	broken   bool   // it is not JSON
	next     *rawjson.Cursor
	at       path                           // where it is
	redactor *Redactor                      // nil: nothing is secret
	visit    func(from, to int, whole bool) // is shown each value but those into which it goes; whole: it does not want to
	named    func(from, to int)             // is shown the value of a pair whose name is secret, see pair
	depth    int
	known    []int // the places of the first steps of at, see places
}

// isSecret reports whether the value that comes next is one.
func (w *walker) isSecret() bool {
	if w.redactor == nil {
		return false
	}

	if n := len(w.at); n > 0 && !w.at[n-1].element && (w.at[n-1].unclear || w.redactor.names.hide(w.at[n-1].name)) {
		return true
	}

	return slices.ContainsFunc(w.redactor.paths, func(p path) bool { return p.leads(w.at) })
}

// places numbers the places of documents. To write each of them out would take
// as much again for each value as its path is long.
type places map[place]int

// place is a step from another one; the root is 0.
type place struct {
	above int
	step  step
}

// of is the number of where the walker is.
func (p places) of(w *walker) (n int) {
	if k := len(w.known); k > 0 {
		n = w.known[k-1]
	}

	for _, s := range w.at[len(w.known):] {
		next := place{n, s}
		n = p[next]
		if n == 0 {
			n = len(p) + 1
			p[next] = n
		}

		w.known = append(w.known, n)
	}

	return n
}

// maxDepth is how deep brackets are followed. Anything deeper is taken for one
// value.
const maxDepth = 512

// walk goes through the document, whose tokens are where those of JSON are.
func (w *walker) walk(json []byte) {
	w.next = rawjson.NewCursor(json)
	defer w.next.Close()

	w.value(w.next.Peek())
}

// value goes through the value that comes next, and tells where it ends; ok is
// false where the document ends before it does.
func (w *walker) value(kind byte, from int) (to int, ok bool) {
	if kind == 0 || kind == '}' || kind == ']' {
		return len(w.data), false
	}

	bracket := kind == '{' || kind == '['

	// The value of a secret, or what is nested too deep, is one value, whatever is in it.
	whole := w.isSecret() || bracket && w.depth >= maxDepth
	if bracket && !whole {
		w.next.Next()

		w.depth++
		if kind == '{' {
			to, ok = w.members()
		} else {
			to, ok = w.elements()
		}

		w.depth--

		return to, ok
	}

	if bracket {
		to, ok = w.next.Skip()
	} else {
		kind, _, to = w.next.Next()
		ok = kind != 0

		// In a broken document, digits stand in the place of what is no value of JSON, and what
		// stands there may hold anything; see mended.
		whole = whole || kind == '0' && w.unclear(from, to)
	}

	// The document ends within the value: all of the rest belongs to it.
	if !ok {
		to = len(w.data)
	}

	w.visit(from, to, whole)

	return to, ok
}

// pair is an object that says what its value is called: {"name": "pin", "value": 1}.
type pair struct {
	secret bool
	values []member
}

// member is a name in an object, and where its value is.
type member struct {
	step
	from, to int
}

// member looks at a member of what may be a pair.
func (w *walker) member(p *pair, m member) {
	p.secret = p.secret || m.unclear
	switch strings.ToLower(m.name) {
	case "name", "key", "field", "header", "k":
		p.secret = p.secret || w.data[m.from] == '"' && (w.redactor.names.hide(w.stringAt(m.from, m.to)) || w.unclear(m.from, m.to))
	case "value", "values", "val", "v":
		p.values = append(p.values, m)
	}
}

// members goes through an object, and then once more to the values of a pair:
// their name may come behind them.
func (w *walker) members() (end int, ok bool) {
	var p pair
	end, ok = w.each(&p)
	if p.secret {
		for _, m := range p.values {
			w.enter(m.step)
			w.named(m.from, m.to)
			w.leave()
		}
	}

	return end, ok
}

// each goes through the members of an object, and gathers what a pair has.
func (w *walker) each(p *pair) (end int, ok bool) {
	for {
		kind, from, to := w.next.Next()
		if kind == '}' {
			return to, true
		} else if kind == 0 {
			return len(w.data), false
		}

		m := member{step: step{name: w.stringAt(from, to), unclear: w.unclear(from, to)}}

		// The value of the member stands behind its name.
		kind, m.from = w.next.Peek()
		w.enter(m.step)
		m.to, ok = w.value(kind, m.from)
		w.leave()

		if w.redactor != nil && m.from < m.to {
			w.member(p, m)
		}

		if !ok {
			return m.to, false
		}
	}
}

// elements goes through an array. A value that looks like a secret is taken for
// one behind its name: ["Cookie", "sid=1"], as lists of headers are written.
func (w *walker) elements() (end int, ok bool) {
	named := false // by the element before
	for n := 0; ; n++ {
		kind, from := w.next.Peek()
		if kind == ']' {
			_, _, end = w.next.Next()
			return end, true
		}

		w.enter(step{element: true, n: n})

		end, ok = w.value(kind, from)
		if w.redactor != nil && kind == '"' {
			text := w.stringAt(from, end)
			if named && seemsSecret(text) {
				w.named(from, end)
			}

			named = len(text) <= maxKey && w.redactor.names.hide(text)
		} else {
			named = false
		}

		w.leave()

		if !ok {
			return end, false
		}
	}
}

// enter goes one step further from the root; leave goes back.
func (w *walker) enter(s step) { w.at = append(w.at, s) }

func (w *walker) leave() {
	w.at = w.at[:len(w.at)-1]
	w.known = w.known[:min(len(w.known), len(w.at))]
}

// stringAt is what the string of JSON from i to j says.
func (w *walker) stringAt(i, j int) string {
	if j-i > 1 && w.data[i] == '"' && w.data[j-1] == '"' {
		if inside := w.src[i+1 : j-1]; strings.IndexByte(inside, '\\') < 0 && utf8.ValidString(inside) {
			return inside
		}
	}

	return rawjson.Text(w.data[i:j])
}

// unclear reports whether it cannot be told what the string or the word from i to j
// says: the string has escapes that JSON does not know, or the word ends with
// brackets or with a string that has escapes, see [afterWord].
func (w *walker) unclear(i, j int) bool {
	raw := w.data[i:j]
	switch {
	case !w.broken:
		return false
	case raw[0] == '"':
		return bytes.IndexByte(raw, '\\') >= 0 && mendString(bytes.Clone(raw)) > 0
	}

	return bytes.ContainsAny(raw, `{[\`)
}

// mended returns the JSON that a text was meant to be, and the text with each byte
// in the place that it has there: commas are added where one is missing, at the
// places added. Overwritten in the JSON are words that it does not know, such as
// NaN and None, control characters and unknown escapes in strings, and a comma
// before a closing bracket.
func mended(data []byte) (out, text []byte, added []int) {
	last, before := 0, byte('[') // the token before, and how it begins
	i := 0
	for i < len(data) {
		c, end := data[i], i+1
		opens := false
		switch c {
		case ' ', '\t', '\r', '\n':
			out, text = append(out, c), append(text, c)
			i++
			continue
		case ',', ':':
		case '}', ']':
			// [1,] has a comma too many.
			if before == ',' {
				out[last] = ' '
			}
		case '{', '[':
			opens = true
		case '"':
			opens, end = true, afterString(data, i)
		default:
			opens, end = true, afterWord(data, i)
		}

		// {"a": 1 "b": 2} has a comma too few.
		if opens && strings.IndexByte(",:{[", before) < 0 {
			added = append(added, len(out))
			out, text = append(out, ','), append(text, ',')
		}

		last, before = len(out), c
		out, text = append(out, data[i:end]...), append(text, data[i:end]...)
		switch token := out[last:]; {
		case c == '"':
			mendString(token)
		// NaN becomes 111, a value of the same length that JSON knows.
		case opens && c != '{' && c != '[' && !rawjson.Valid(token):
			copy(token, strings.Repeat("1", len(token)))
		}

		i = end
	}

	return out, text, added
}

// afterWord returns the index after the word that begins at i, and after what
// stands in quotes or brackets at its end: b"a", Set([1]).
func afterWord(data []byte, i int) int {
	for level := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			i = afterString(data, i) - 1
			if level == 0 {
				return i + 1
			}
		case c == '{' || c == '[':
			level++
		case c == '}' || c == ']':
			level--

			// The bracket closes what the word is in: [None]
			if level < 0 {
				return i
			}

			if level == 0 {
				return i + 1
			}
		case level == 0 && strings.IndexByte(",: \t\r\n", c) >= 0:
			return i
		}
	}

	return len(data)
}

// mendString puts blanks in the place of what may not be in a string, control
// characters and backslashes with which no escape begins, and counts them.
func mendString(s []byte) (wrong int) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && (i+1 == len(s) || isEscape(s[i:])):
			i++
		case s[i] == '\\' || s[i] < ' ':
			s[i] = ' '
			wrong++
		}
	}

	return wrong
}

// isEscape reports whether a text, which begins with a backslash and does not end
// with it, begins with an escape that JSON knows.
func isEscape(s []byte) bool {
	if s[1] == 'u' {
		return rawjson.Valid([]byte(`"` + string(s[:min(len(s), len(`\u0000`))]) + `"`))
	}
	return strings.IndexByte(`"\/bfnrt`, s[1]) >= 0
}

// afterString returns the index after the string that begins at i, or the end of
// the text when it is never closed.
func afterString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}

	return len(data)
}
