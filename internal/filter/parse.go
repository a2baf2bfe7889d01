package filter

import (
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
)

// Parse reads the language of filters, "since" counted back from now. Its
// error is a *invalid.Error about the field "q".
func Parse(q string, now time.Time) (Filter, error) {
	f, err := parse(q, now)
	if err == nil {
		err = f.Check()
	}

	// A line of a log is searched for as it is, with its colons and quotation marks.
	if err != nil && isPasted(q) {
		f = Filter{Text: strings.TrimSpace(q)}
		err = f.Check()
	}

	if wrong, ok := err.(*invalid.Error); ok && wrong.Field != "q" {
		err = &invalid.Error{Field: "q", Problem: wrong.Error()}
	}

	if err != nil {
		return Filter{}, err
	}

	return f, nil
}

// isPasted reports whether a query that is not a filter reads as a line of a log that a user
// pasted: some words, of which none is a qualifier with its value. Its colons and quotation
// marks are then those of the line.
func isPasted(q string) bool {
	const fewest = 3
	words := strings.Fields(q)
	if len(words) < fewest || len(q) > maxQuery || strings.HasPrefix(q, `"`) {
		return false
	}

	for i, w := range words {
		name, value := qualifierOf(w)
		unfinished := i == 0 && name != "error" // which begins many lines of logs
		if name != "" && qualifierNamed(name) != nil && (value != "" || unfinished) {
			return false
		}
	}

	return true
}

// parse reads a filter without checking whether a job can match it.
func parse(q string, now time.Time) (f Filter, err error) {
	words, err := splitQuery(q)
	if err != nil {
		return f, err
	}

	var text []string
	phrase, seen := false, map[string]bool{}
	for _, w := range words {
		// An id alone names a job. An id among other words is part of the text.
		if w.isBareID() && hasText(words) {
			text = append(text, w.value)
			continue
		}

		if name := w.qualifier(); name != "" {
			if err := f.read(name, w, now, seen); err != nil {
				return f, err
			}
			continue
		}

		// Words without quotation marks are one text. A quoted phrase is a text of its own, and
		// a filter has room for one.
		text, phrase = append(text, w.value), phrase || w.quoted
		if phrase && len(text) > 1 {
			return f, invalid.Errorf("q",
				"%s and %s are two texts, of which only one can be looked for; give the other a place, as error: or payload:",
				quoted(clip.Text(text[0], 64)), quoted(clip.Text(w.value, 64)))
		}
	}

	if len(text) == 0 {
		return f, nil
	}

	f.Text = strings.Join(text, " ")

	return f, checkSearch("text", f.Text)
}

// read reads the value of one qualifier. Its errors name the qualifier as it was
// written; seen holds the qualifiers that were read before.
func (f *Filter) read(name string, w word, now time.Time, seen map[string]bool) error {
	q := qualifierNamed(name)
	switch {
	case q == nil:
		return invalid.Errorf("q", "%q is not a qualifier; %s. To search for it as text, use %s",
			name+":", suggestion(name), quoted(name+":"+w.value))
	case seen[q.name]:
		return invalid.Errorf(name, "is given twice; each qualifier can be used once")
	case w.value == "":
		return invalid.Errorf(name, "has no value; write it right after the colon, for example %s", q.example)
	}

	seen[q.name] = true

	return q.read(f, name, w.value, now)
}

// word is one part of a query.
type word struct {
	name   string // before the colon, empty for text
	value  string
	quoted bool // the value stood in quotation marks
}

// qualifier is the name of the qualifier that the word uses; empty when it is
// text. What is pasted from an error, "dial:", "https://…" or "PG::Error", is text as long
// as it names no qualifier; a whole id is a job.
func (w word) qualifier() string {
	switch {
	case w.name != "" && (qualifierNamed(w.name) != nil || w.quoted || !w.isPart()):
		return w.name
	case w.isBareID():
		return "id"
	}

	return ""
}

// isPart reports whether the colon of a word is one within a text: at its end, or in a URL or
// the name of a class.
func (w word) isPart() bool {
	return w.value == "" || strings.HasPrefix(w.value, "//") || strings.HasPrefix(w.value, ":")
}

// isBareID reports whether a word is nothing but a whole id.
func (w word) isBareID() bool {
	_, err := job.ParseID(w.value)
	return w.name == "" && !w.quoted && err == nil
}

// hasText reports whether words are looked for: an id among them is one of them, as in a
// line of a log.
func hasText(words []word) bool {
	return slices.ContainsFunc(words, func(w word) bool { return w.qualifier() == "" })
}

// splitQuery cuts a query into its words.
func splitQuery(q string) ([]word, error) {
	if len(q) > maxQuery || !utf8.ValidString(q) {
		return nil, invalid.Errorf("q", "must be valid UTF-8 of at most %d bytes", maxQuery)
	}

	var words []word
	for {
		q = strings.TrimLeftFunc(q, unicode.IsSpace)
		if q == "" {
			return words, nil
		}

		w, rest, err := firstWord(q)
		if err != nil {
			return nil, err
		}

		words = append(words, w)
		q = rest
	}
}

// firstWord reads the first word of a query and returns the rest.
func firstWord(q string) (w word, rest string, err error) {
	w.name, rest = qualifierOf(q)
	if strings.HasPrefix(rest, `"`) {
		w.quoted = true
		w.value, rest, err = unquote(rest[1:])
		return w, rest, err
	}

	end := strings.IndexFunc(rest, unicode.IsSpace)
	if end < 0 {
		end = len(rest)
	}

	asWritten := q[:len(q)-len(rest)+end]
	w.value, rest = rest[:end], rest[end:]
	if w.qualifier() == "" && w.name != "" {
		w.name, w.value = "", asWritten
	}

	return w, rest, nil
}

// qualifierOf cuts the name before the first colon off, when there is one made
// of letters.
func qualifierOf(q string) (name, rest string) {
	name, rest, ok := strings.Cut(q, ":")
	char := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !char(r) }) {
		return "", q
	}

	return strings.ToLower(name), rest
}

// unquote reads up to the closing quotation mark. A backslash stands for itself
// unless a quotation mark or another backslash follows.
func unquote(q string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(q); i++ {
		switch {
		case q[i] == '\\' && i+1 < len(q) && (q[i+1] == '"' || q[i+1] == '\\'):
			i++
			b.WriteByte(q[i])
		case q[i] == '"':
			rest = q[i+1:]
			if rest != "" && strings.TrimLeftFunc(rest, unicode.IsSpace) == rest {
				return "", "", invalid.Errorf("q", "a space must follow the closing quotation mark of %s", quoted(clip.Text(b.String(), 64)))
			}

			return b.String(), rest, nil
		default:
			b.WriteByte(q[i])
		}
	}

	return "", "", &invalid.Error{Field: "q", Problem: "a quotation mark is not closed"}
}

// suggestion names the qualifier that was probably meant, or lists all of them.
func suggestion(name string) string {
	var names []string
	for _, q := range Qualifiers() {
		names = append(names, q.Name)
	}

	if best := invalid.Nearest(name, names); best != "" {
		return "did you mean " + best + ":"
	}

	return "there are " + strings.Join(names, ", ")
}
