package redact

import (
	"redrive/internal/rawjson"
	"slices"
	"strconv"
	"strings"
)

// Path is where a value stands, as $.items[0].card.
type Path string

// step is one step of a path: into a member, into the element n, or into each
// element.
type step struct {
	name    string
	unclear bool // the name is not what it says for sure
	element bool
	any     bool
	n       int
}

type path []step

const maxSteps = 32

func parsePaths(texts []string) ([]path, error) {
	all := make([]path, len(texts))
	for i, text := range texts {
		p, ok := parsePath(text)
		if !ok {
			return nil, &Error{text, `is not a path as $.customer.email, $.items[*].card, $.items[0] or $["a b"]`}
		}
		all[i] = p
	}
	return all, nil
}

func parsePath(text string) (p path, ok bool) {
	rest, ok := strings.CutPrefix(text, "$")
	for ok && rest != "" {
		var s step
		s, rest, ok = parseStep(rest)
		p = append(p, s)
	}
	return p, ok && len(p) > 0 && len(p) <= maxSteps
}

func parseStep(text string) (s step, rest string, ok bool) {
	if after, dot := strings.CutPrefix(text, "."); dot {
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}
		return step{name: after[:end]}, after[end:], end > 0 && !strings.ContainsAny(after[:end], "]*\"' ")
	}
	if quoted, is := strings.CutPrefix(text, `["`); is {
		name, err := strconv.QuotedPrefix(text[1:])
		if err != nil || !strings.HasPrefix(quoted[len(name)-1:], "]") {
			return s, "", false
		}
		s.name, err = strconv.Unquote(name)
		return s, quoted[len(name):], err == nil
	}
	inside, rest, closed := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if !strings.HasPrefix(text, "[") || !closed {
		return s, "", false
	}
	if inside == "*" {
		return step{element: true, any: true}, rest, true
	}
	n, err := strconv.ParseUint(inside, 10, 31)
	return step{element: true, n: int(n)}, rest, err == nil
}

// leads reports whether the path leads to where a value stands.
func (p path) leads(at path) bool {
	return slices.EqualFunc(p, at, func(want, got step) bool {
		return want.element == got.element && (want.any || want.n == got.n && want.name == got.name)
	})
}

func (p path) String() string {
	var b strings.Builder
	b.WriteByte('$')
	for _, s := range p {
		switch {
		case s.element:
			b.WriteString("[" + strconv.Itoa(s.n) + "]")
		case s.name != "" && !strings.ContainsAny(s.name, ".[]*\"' "):
			b.WriteString("." + s.name)
		default:
			b.WriteString("[" + string(rawjson.Quote(s.name)) + "]")
		}
	}
	return b.String()
}
