package preset

import (
	"fmt"
	"slices"
	"strings"
)

// Expand puts the names and values of a statement in: what name makes of each name in
// braces, and what value makes of each value with a colon.
func Expand(statement string, name, value func(string) string) string {
	var text strings.Builder
	for statement != "" {
		t := token(statement)
		statement = statement[len(t):]

		switch {
		case t[0] == '{' && len(t) > 1:
			text.WriteString(name(t[1 : len(t)-1]))
		case t[0] == ':' && len(t) > 1 && t != "::":
			text.WriteString(value(t[1:]))
		default:
			text.WriteString(t)
		}
	}

	return text.String()
}

// token is what a statement begins with: a placeholder, what must not be taken for one (a text, a
// quoted name, a cast of PostgreSQL), or all that stands before the next of these. A regular
// expression would take longer than some databases take for the statement.
func token(statement string) string {
	switch first := statement[0]; first {
	case '\'', '"', '`':
		end := strings.IndexByte(statement[1:], first)
		if end >= 0 {
			return statement[:end+2]
		}
	case '{':
		end := 1 + nameLength(statement[1:])
		if end > 1 && strings.HasPrefix(statement[end:], "}") {
			return statement[:end+1]
		}
	case ':':
		if strings.HasPrefix(statement, "::") {
			return "::"
		}

		return statement[:1+nameLength(statement[1:])]
	default:
		next := strings.IndexAny(statement, "'\"`{:")
		if next > 0 {
			return statement[:next]
		}

		return statement
	}

	return statement[:1] // a quote or a brace without its other half
}

// nameLength is how long the name is with which a text begins.
func nameLength(text string) int {
	rest := strings.TrimLeft(text, "abcdefghijklmnopqrstuvwxyz_")
	return len(text) - len(rest)
}

// placeholders are the names and the values of a statement.
func placeholders(statement string) (names, values []string) {
	note := func(to *[]string) func(string) string {
		return func(s string) string {
			*to = append(*to, s)
			return s
		}
	}
	Expand(statement, note(&names), note(&values))

	return names, values
}

// Uses reports whether one of the statements has a value.
func Uses(statements []string, value string) bool {
	return slices.ContainsFunc(statements, func(s string) bool {
		_, values := placeholders(s)
		return slices.Contains(values, value)
	})
}

// Given are the values that every act has.
var Given = []string{"key", "witness", "clean", "edited", "target", "unix", "wall", "wait", "due", "due_wall", "allowed"}

// checkAct refuses statements that could change what the person did not see: the last
// one, which decides whether the others count, must name the record and its version token.
func (p *Preset) checkAct(act string, statements []string) error {
	if len(statements) == 0 {
		return nil
	}

	last := statements[len(statements)-1:]
	for _, value := range []string{"key", "witness"} {
		if !Uses(last, value) {
			return fmt.Errorf("the last statement of %s must compare :%s, so that it finds the record only as it was seen", act, value)
		}
	}

	for _, s := range statements {
		names, values := placeholders(s)
		for _, name := range names {
			if _, ok := p.Names[name]; !ok && !p.word(name) {
				return fmt.Errorf("%s names {%s}, which there is not", act, name)
			}
		}

		for _, value := range values {
			if _, ok := p.Values[value]; !ok && !slices.Contains(Given, value) {
				return fmt.Errorf("%s has the value :%s; there are :%s", act, value, strings.Join(Given, ", :"))
			}
		}
	}

	return nil
}

// word reports whether every database has a word for a name.
func (p *Preset) word(name string) bool {
	for _, engine := range p.Engines {
		if _, ok := p.Words[engine][name]; !ok {
			return false
		}
	}

	return true
}
