package filter

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/wire"
)

// # The language of filters
//
// A filter is written as words, each a qualifier and its value:
//
//	state:dead_letter queue:orders type:email.* error:timeout attempts:>3 since:2h
//
// Every part has to hold. Words without a qualifier are one text, found as it
// stands anywhere in what failed, so that an error can be pasted; a word that is a whole job id means that job. A value with
// spaces stands in quotation marks, in which \" and \\ stand for " and \. The
// same language is spoken by pages, the API, exports, operations and the command
// line, and each part can be said once.

// Parse reads the language of filters, "since" counted back from now. Its
// error is a *invalid.Error about the field "q".
func Parse(q string, now time.Time) (Filter, error) {
	var f Filter
	words, err := splitQuery(q)
	var text []string
	phrase, seen := false, map[string]bool{}
	for _, w := range words {
		if err != nil {
			break
		}
		if name := w.says(); name != "" {
			err = f.read(name, w, now, seen)
			continue
		}
		text, phrase = append(text, w.value), phrase || w.quoted
		if phrase && len(text) > 1 {
			err = &invalid.Error{Field: "q", Problem: fmt.Sprintf("%s and %s are two texts, of which only one can be looked for; give the other a place, as error: or payload:",
				quoted(clip.Text(text[0], 64)), quoted(clip.Text(w.value, 64)))}
		}
	}
	if err == nil && len(text) > 0 {
		f.Text, err = checkSearch("text", strings.Join(text, " "))
	}
	if err == nil {
		err = f.Check()
	}
	if err != nil {
		return Filter{}, aboutQuery(err)
	}
	return f, nil
}

// aboutQuery names the field in which people write filters.
func aboutQuery(err error) error {
	if wrong, ok := err.(*invalid.Error); ok && wrong.Field != "q" {
		return &invalid.Error{Field: "q", Problem: wrong.Field + ": " + wrong.Problem}
	}
	return err
}

// read reads the value of one qualifier.
func (f *Filter) read(name string, w word, now time.Time, seen map[string]bool) error {
	all := qualifiers()
	i := slices.IndexFunc(all, func(q qualifier) bool { return q.name == name || q.alias == name })
	if i < 0 {
		return &invalid.Error{Field: "q", Problem: fmt.Sprintf("%s: is no qualifier; %s. To look for it as text, write %s",
			name, suggestion(name), quoted(name+":"+w.value))}
	}
	q := all[i]
	if seen[q.name] {
		return &invalid.Error{Field: name, Problem: "is given twice; each qualifier can be used once"}
	}
	seen[q.name] = true
	if w.value == "" {
		return &invalid.Error{Field: name, Problem: "has no value; write it right behind the colon, as " + q.example}
	}
	return q.read(f, name, w.value, now)
}

// word is one part of a query.
type word struct {
	name   string // before the colon, empty for text
	value  string
	quoted bool // the value stood in quotation marks
}

// says is the name of the qualifier that the word uses; empty when it is text.
// What is pasted from an error, "dial:" or "https://…", is text as long as it
// names no qualifier; a whole id is a job.
func (w word) says() string {
	known := slices.ContainsFunc(qualifiers(), func(q qualifier) bool { return q.name == w.name || q.alias == w.name })
	switch {
	case w.name != "" && (known || w.quoted || w.value != "" && !strings.HasPrefix(w.value, "//")):
		return w.name
	case w.name == "" && !w.quoted:
		if id, err := job.ParseID(w.value); err == nil && id != "" {
			return "id"
		}
	}
	return ""
}

// splitQuery cuts a query into its words.
func splitQuery(q string) ([]word, error) {
	if len(q) > MaxQuery || !utf8.ValidString(q) {
		return nil, &invalid.Error{Field: "q", Problem: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", MaxQuery)}
	}
	var words []word
	for {
		q = strings.TrimLeftFunc(q, unicode.IsSpace)
		if q == "" {
			return words, nil
		}
		var w word
		var err error
		if w, q, err = firstWord(q); err != nil {
			return nil, err
		}
		words = append(words, w)
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
	w.value, rest = rest[:end], rest[end:]
	if w.says() == "" && w.name != "" {
		w.name, w.value = "", w.name+":"+w.value
	}
	return w, rest, nil
}

// qualifierOf cuts the name before the first colon off, when there is one made
// of letters.
func qualifierOf(q string) (name, rest string) {
	name, rest, ok := strings.Cut(q, ":")
	letter := func(r rune) bool { return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r == '_' }
	if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !letter(r) }) {
		return "", q
	}
	return strings.ToLower(name), rest
}

// unquote reads up to the closing quotation mark.
func unquote(q string) (value, rest string, err error) {
	var b strings.Builder
	for i := 0; i < len(q); i++ {
		switch {
		case q[i] == '\\' && i+1 < len(q) && (q[i+1] == '"' || q[i+1] == '\\'):
			i++
			b.WriteByte(q[i])
		case q[i] == '"':
			if rest = q[i+1:]; rest != "" && strings.TrimLeftFunc(rest, unicode.IsSpace) == rest {
				return "", "", &invalid.Error{Field: "q", Problem: "a space must follow the closing quotation mark of " + quoted(clip.Text(b.String(), 64))}
			}
			return b.String(), rest, nil
		default:
			b.WriteByte(q[i])
		}
	}
	return "", "", &invalid.Error{Field: "q", Problem: "a quotation mark is not closed"}
}

// suggestion is what somebody may have meant.
func suggestion(name string) string {
	best, distance := "", 3
	var names []string
	for _, q := range qualifiers() {
		names = append(names, q.name)
		if d := editDistance(name, q.name); d < distance {
			best, distance = q.name, d
		}
	}
	if best != "" {
		return "did you mean " + best + ":"
	}
	return "there are " + strings.Join(names, ", ")
}

// editDistance is the number of letters to change, add or leave out.
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// checkSearch returns a text that can be looked for in the index of words.
func checkSearch(field, s string) (string, error) {
	if err := CheckText(field, s); err != nil {
		return "", err
	}
	if utf8.RuneCountInString(s) < MinSearch {
		return "", &invalid.Error{Field: field, Problem: fmt.Sprintf("%q is too short to look for; write %d characters at least", s, MinSearch)}
	}
	return s, nil
}

// CheckText refuses what no text contains that is searched.
func CheckText(field, s string) error {
	switch {
	case len(s) > MaxSearch || !utf8.ValidString(s):
		return &invalid.Error{Field: field, Problem: fmt.Sprintf("must be valid UTF-8 of at most %d bytes", MaxSearch)}
	case strings.ContainsRune(s, 0):
		return &invalid.Error{Field: field, Problem: "holds a NUL character, which no text has that can be searched"}
	}
	return nil
}

// ParseSpan reads a range of numbers: 3, >3, >=3, <3, <=3, 2..5.
func ParseSpan(s string) (Span, error) {
	bad := fmt.Errorf("%q is not a range of numbers as 3, >3, >=3, <3, <=3 or 2..5", clip.Text(s, 64))
	for _, form := range []struct {
		prefix string
		span   func(n int) Span
	}{
		{">=", func(n int) Span { return Span{Min: n} }},
		{">", func(n int) Span { return Span{Min: n + 1} }},
		{"<=", func(n int) Span { return Span{Max: n} }},
		{"<", func(n int) Span { return Span{Max: n - 1} }},
	} {
		if digits, ok := strings.CutPrefix(s, form.prefix); ok {
			n, ok := parseCount(digits)
			if !ok {
				return Span{}, bad
			}
			return form.span(n).checked(bad)
		}
	}
	low, high, isRange := strings.Cut(s, "..")
	if !isRange {
		high = low
	}
	a, ok1 := parseCount(low)
	b, ok2 := parseCount(high)
	if !ok1 || !ok2 || a > b {
		return Span{}, bad
	}
	return Span{a, b}.checked(bad)
}

// checked refuses what a Span cannot say: nothing but zero.
func (s Span) checked(bad error) (Span, error) {
	if s.Max <= 0 && s.Min <= 0 {
		return Span{}, fmt.Errorf("%w; it begins at 1", bad)
	}
	return s, nil
}

func parseCount(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && n < math.MaxInt32 && !strings.HasPrefix(s, "+")
}

// String is the form in which people write the range.
func (s Span) String() string {
	switch {
	case s == Span{}:
		return ""
	case s.Max == 0:
		return ">=" + strconv.Itoa(s.Min)
	case s.Min == 0:
		return "<=" + strconv.Itoa(s.Max)
	case s.Min == s.Max:
		return strconv.Itoa(s.Min)
	}
	return fmt.Sprintf("%d..%d", s.Min, s.Max)
}

// Holds reports whether n lies in the range.
func (s Span) Holds(n int) bool { return n >= s.Min && (s.Max == 0 || n <= s.Max) }

// ParseMoment reads a time as people write one: RFC 3339, a date, a date and a
// time of day in UTC, or how long ago it was, as 2h.
func ParseMoment(s string, now time.Time) (time.Time, error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", time.DateOnly} {
		t, err := time.Parse(layout, s)
		if err != nil {
			continue
		}
		if t = t.UTC().Truncate(time.Microsecond); t.Year() < 1971 || t.Year() > 9999 {
			return time.Time{}, fmt.Errorf("%q is not between the years 1971 and 9999", clip.Text(s, 64))
		}
		return t, nil
	}
	ago, err := wire.ParseGoDuration(s)
	if err != nil {
		return time.Time{}, fmt.Errorf("%q is neither a time as 2026-03-12T14:00:00Z or 2026-03-12, nor how long ago it was, as 2h or 7d", clip.Text(s, 64))
	}
	return now.Add(-ago).UTC().Truncate(time.Second), nil
}
