package redact

import (
	"strings"

	"redrive/internal/rawjson"
)

// inDocuments finds the secrets of the JSON inside a text: those of pairs, which
// only JSON as a whole shows, and those in strings.
func (r *Redactor) inDocuments(s, token string, nested int) (all []lock) {
	const most = 4 // times that a byte is read which may be the beginning of JSON
	var data []byte

	var open []int // brackets that the last attempt left open: read from there it would fail at the same place
	budget := most*len(s) + 1024
	for i := strings.IndexAny(s, "{["); i >= 0 && i < len(s) && budget > 0; i = orEnd(s, i, strings.IndexAny(s[i:], "{[")) {
		from, begins := documentAt(s, i)
		for len(open) > 0 && open[0] < i {
			open = open[1:]
		}

		if !begins || len(open) > 0 && open[0] == i {
			i++
			continue
		}

		if data == nil {
			data = []byte(s)
		}

		begin := rawjson.Prefix(data[from:])
		if !begin.Whole {
			open = begin.Open
			for k := range open {
				open[k] += from
			}

			budget -= begin.Looked
			i++

			continue
		}

		all = append(all, r.inDocument(data, from, from+begin.Len, token, nested)...)
		i = from + begin.Len
	}

	return all
}

// inDocument finds the secrets of the JSON from from to to.
func (r *Redactor) inDocument(data []byte, from, to int, token string, nested int) []lock {
	if nested >= maxNested {
		return []lock{{Edit: rawjson.Edit{From: from, To: to, Text: rawjson.Quote(token)}}}
	}

	m := masker{redactor: r.ByKey(), nested: nested + 1, token: token}

	locks := m.document(data[from:to:to], nil)
	for i := range locks {
		locks[i].From, locks[i].To = locks[i].From+from, locks[i].To+from
	}

	return locks
}

// isCutOff reports whether a text is the beginning of an object of JSON, or of an
// array of them.
func isCutOff(s string) bool {
	text := strings.TrimLeft(s, " \t\r\n")
	if text == "" || text[0] != '{' && text[0] != '[' {
		return false
	}

	if _, begins := documentAt(text, 0); !begins {
		return false
	}

	data := []byte(text)
	begin := rawjson.Prefix(data)
	rest := strings.TrimLeft(text[begin.Len:], " \t\r\n,:")

	return !begin.Whole && (rest == "" || rest[0] == '"' && afterString([]byte(rest), 0) == len(rest))
}

// documentAt reports whether JSON may begin with the bracket at i, or with the
// quote before it, that of a string of JSON.
func documentAt(s string, i int) (from int, ok bool) {
	k := i + 1
	for k < len(s) && k < i+64 && strings.IndexByte(" \t\r\n", s[k]) >= 0 {
		k++
	}

	if k == len(s) {
		return i, false
	}

	escaped := strings.HasPrefix(s[k:], `\"`) || strings.HasPrefix(s[k:], `\n`)
	switch {
	case i > 0 && s[i-1] == '"' && (escaped || s[i] == '[' && s[k] == '{'):
		return i - 1, true
	case s[k] == '"':
		return i, true
	}

	return i, s[i] == '[' && (s[k] == '{' || s[k] == '[')
}

// couple is a pair of which a text says in two places what the value is called
// and what it is: key: password, value: S.
type couple struct {
	end     int    // up to where a value belongs to the secret name that came before it
	element string // how < and > are written, when the name is an attribute of an element
	closes  string
	value   valueAt // whose name has not come yet
}

// valueAt is where the value of a name begins. Where the value ends is found
// out when that matters: the end can be far away, and the next value may be inside it.
type valueAt struct {
	begin int
	name  span
}

// reach is how long the name of a pair may be, and how far its value may be away
// from it.
const reach = 200

// called looks at the parts of a pair: at its name, and at the value behind or
// before that.
func (t *scanner) called(begin int, word span) (found span) {
	s := t.s
	if word.len() > len("contents") || begin >= len(s) {
		return span{}
	}

	switch strings.ToLower(plain(word.in(s))) {
	case "name", "key", "field", "header", "k":
		// "name": "password"
		v := value(s[:min(begin+reach, len(s))], begin, word)

		name, _, _ := strings.Cut(s[v.from:max(v.from, v.to)], `\n`)
		name, _, _ = strings.Cut(name, "&") // of a form
		if !t.names.hide(strings.Trim(name, "\"'`,;:.)}]>\\")) {
			return span{}
		}

		// The value can stand before the name: {"value": "S", "name": "password"}.
		if first := t.pair.value; first.begin > 0 {
			if before := value(s[:min(word.from+reach, len(s))], first.begin, first.name); word.from-before.to < reach {
				t.add(before)
			}
		}

		t.pair = couple{end: v.to + reach}
		t.pair.element, t.pair.closes = elementBefore(s[max(0, word.from-reach):word.from])

		return t.part(v.to)
	case "value", "values", "val", "v", "content", "contents":
		// The name before was a hidden one, so this is its secret.
		if word.from < t.pair.end {
			t.pair = couple{}
			return value(s, begin, word)
		}

		t.pair.value = valueAt{begin, word}
	}

	return span{}
}

// part is the value of a part of a form, whose head ends with its name:
// name="password", a blank line, the value.
func (t *scanner) part(i int) span {
	s := t.s
	if i < len(s) && quoteAt(s, i).width() > 0 {
		i += quoteAt(s, i).width()
	}

	for _, end := range []string{"\r\n\r\n", "\n\n", `\r\n\r\n`, `\n\n`} {
		if strings.HasPrefix(s[i:], end) {
			from := i + len(end)

			to := line(s, from)
			literal := strings.Index(s[from:to], `\r\n`)
			if end[0] == '\\' && literal >= 0 {
				to = from + literal
			}

			return span{from, to}
		}
	}

	return span{}
}

// property is the content of the element behind that which ends at j with a name:
// <name>password</name><value>S</value>.
func property(s string, nameEnd int) span {
	k, named := nameEnd, false
	for _, end := range [...]string{"</name>", "</key>"} {
		if n := spelt(s, nameEnd, end); n > 0 {
			k, named = nameEnd+n, true
		}
	}

	if !named {
		return span{}
	}

	const near = 64 // bytes to the next element, and of its tag
	k = until(s, k, min(k+near, len(s)), '<')
	if k < len(s) {
		k = until(s, k, min(k+near, len(s)), '>')
	}

	c, n := char(s, k)
	if c != '>' || s[k-1] == '/' {
		return span{}
	}

	return span{k + n, until(s, k+n, len(s), '<')}
}

// spelt is the length of a text that stands at i, in whatever way its characters
// are written, or zero.
func spelt(s string, i int, text string) int {
	k := i
	for _, want := range []byte(text) {
		c, n := char(s, k)
		if k == len(s) || c != want {
			return 0
		}

		k += n
	}

	return k - i
}

// until is where the next such character is in [i, end), or end.
func until(s string, i, end int, want byte) int {
	for i < end {
		c, n := char(s, i)
		if c == want {
			return i
		}

		i += n
	}

	return end
}

// mark looks at a character that may end a pair, or begin the content of an
// element whose attribute is the name of it.
func (t *scanner) mark(i int) span {
	p := t.pair
	switch c := t.s[i]; {
	case c == '}' || c == ')':
		t.pair = couple{}
	case p.element != "" && i < p.end && c == p.closes[0] && strings.HasPrefix(t.s[i:], p.closes):
		t.pair = couple{}
		if t.s[i-1] == '/' {
			return span{}
		}

		return t.content(i+len(p.closes), p.element)
	}

	return span{}
}

// elementBefore is how < and > are written when a text ends within an element.
func elementBefore(s string) (open, closes string) {
	for _, mark := range append([][2]string{{"<", ">"}}, escapedMarks[:]...) {
		if n := strings.LastIndex(s, mark[0]); n >= 0 && !strings.Contains(s[n:], mark[1]) {
			return mark[0], mark[1]
		}
	}

	return "", ""
}

// content is the text at the beginning of what an element holds, up to the mark
// of the next one.
func (t *scanner) content(i int, mark string) span {
	s := t.s
	end := orEnd(s, i, strings.Index(s[i:], mark))
	if text := strings.TrimLeft(s[i:end], " \t\r\n"); text != "" {
		return span{end - len(text), end}
	}

	found := unclosed(s, i)
	if closed := strings.Index(found.in(s), "</"); closed >= 0 {
		found.to = found.from + closed
	}

	return found
}
