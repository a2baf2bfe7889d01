package redact

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"redrive/internal/rawjson"
)

// walker goes through the values of a document, which may be cut off or be no
// JSON at all: then it stops early.
type walker struct {
	data  []byte
	src   string                  // the same, of which names and texts are parts
	at    path                    // where it is
	visit func(i int) (after int) // is shown where each value begins; the index after it when that is done with
	named func(i, end int)        // is shown the value of a pair whose name is secret, see pair; may be nil
	names *names
	depth int
	known []int // the places of the first steps of at, see places
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
		if n = p[next]; n == 0 {
			n = len(p) + 1
			p[next] = n
		}
		w.known = append(w.known, n)
	}
	return n
}

// maxDepth is how deep brackets are followed. What lies deeper is taken for one
// value.
const maxDepth = 512

// value goes through the value that begins at i, and returns the index after
// it; ok is false where there is none.
func (w *walker) value(i int) (end int, ok bool) {
	if i >= len(w.data) {
		return i, false
	}
	if after := w.visit(i); after > i {
		return after, true
	}
	deeper := w.depth < maxDepth
	w.depth++
	defer func() { w.depth-- }()
	switch {
	case deeper && w.data[i] == '{':
		return w.members(i + 1)
	case deeper && w.data[i] == '[':
		return w.elements(i + 1)
	}
	end = rawjson.AfterValue(w.data, i)
	return end, end > i
}

// pair is an object that says what its value is called: {"name": "pin", "value": 1}.
type pair struct {
	secret bool
	values []member
}

type member struct {
	name   string
	i, end int
}

// member looks at a member of what may be a pair.
func (w *walker) member(p *pair, m member) {
	switch strings.ToLower(m.name) {
	case "name", "key", "field", "header", "k":
		p.secret = p.secret || w.data[m.i] == '"' && w.names.hide(w.text(m.i, m.end))
	case "value", "values", "val", "v":
		p.values = append(p.values, m)
	}
}

// members goes through an object, and then once more to the values of a pair:
// their name may come behind them.
func (w *walker) members(i int) (end int, ok bool) {
	var p pair
	end, ok = w.each(i, &p)
	if p.secret {
		for _, m := range p.values {
			w.enter(step{name: m.name})
			w.named(m.i, m.end)
			w.leave()
		}
	}
	return end, ok
}

func (w *walker) each(i int, p *pair) (end int, ok bool) {
	for {
		i = rawjson.Space(w.data, i)
		if i < len(w.data) && w.data[i] == '}' {
			return i + 1, true
		}
		if i >= len(w.data) || w.data[i] != '"' {
			return i, false
		}
		after := rawjson.AfterString(w.data, i)
		name := w.text(i, after)
		i = rawjson.Space(w.data, after)
		if i >= len(w.data) || w.data[i] != ':' {
			return i, false
		}
		begin := rawjson.Space(w.data, i+1)
		i, ok = w.step(step{name: name}, begin)
		if w.named != nil && begin < i {
			w.member(p, member{name, begin, begin + len(bytes.TrimRight(w.data[begin:i], " \t\r\n"))})
		}
		if !ok {
			return i, false
		}
		if i >= len(w.data) || w.data[i] != ',' {
			continue
		}
		i++
	}
}

func (w *walker) elements(i int) (end int, ok bool) {
	for n := 0; ; n++ {
		i = rawjson.Space(w.data, i)
		if i < len(w.data) && w.data[i] == ']' {
			return i + 1, true
		}
		if i, ok = w.step(step{element: true, n: n}, i); !ok {
			return i, false
		}
		if i < len(w.data) && w.data[i] == ',' {
			i++
		}
	}
}

// step goes through a value within another, and the white space after it.
func (w *walker) step(s step, i int) (end int, ok bool) {
	w.enter(s)
	end, ok = w.value(i)
	w.leave()
	return rawjson.Space(w.data, end), ok
}

func (w *walker) enter(s step) { w.at = append(w.at, s) }

func (w *walker) leave() {
	w.at = w.at[:len(w.at)-1]
	w.known = w.known[:min(len(w.known), len(w.at))]
}

// text is what the string of JSON from i to j says.
func (w *walker) text(i, j int) string {
	if j-i > 1 && w.data[i] == '"' && w.data[j-1] == '"' {
		if inside := w.src[i+1 : j-1]; strings.IndexByte(inside, '\\') < 0 && utf8.ValidString(inside) {
			return inside
		}
	}
	return text(w.data[i:j])
}

// text is what a string of JSON says, also one that is cut off; of one that is
// none, its bytes.
func text(raw []byte) string {
	inside, quoted := bytes.CutPrefix(raw, []byte(`"`))
	inside, closed := bytes.CutSuffix(inside, []byte(`"`))
	if quoted && bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	if !quoted || closed && rawjson.AfterString(raw, 0) == len(raw) && json.Valid(raw) {
		return string(raw)
	}
	for cut := range min(len(raw), len(`\u0000`)+1) { // the end may be half an escape
		whole := append(bytes.Clone(raw[:len(raw)-cut]), '"')
		if json.Unmarshal(whole, &s) == nil {
			return s
		}
	}
	return string(raw)
}
