package filter

import (
	"strings"
	"time"
	"unicode"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
)

// String writes the filter in the language of filters: parts in a fixed order,
// times absolute. Parse reads it back as the same filter.
func (f Filter) String() string {
	var all []string
	for _, q := range qualifiers() {
		if value := q.text(&f); value != "" {
			all = append(all, Qualified(q.name, value))
		}
	}

	if f.Text != "" {
		all = append(all, quotedText(f.Text))
	}

	return strings.Join(all, " ")
}

// Qualified writes one part of a filter.
func Qualified(name, value string) string { return name + ":" + quotedIfNeeded(value) }

// Has lists the names of the qualifiers that the filter uses, "text" for the
// text without one.
func (f Filter) Has() []string {
	var names []string
	for _, q := range parts() {
		if q.text(&f) != "" {
			names = append(names, q.name)
		}
	}

	return names
}

// Value is what the filter says for a qualifier of Has.
func (f Filter) Value(name string) string {
	for _, q := range parts() {
		if q.name == name {
			return q.text(&f)
		}
	}

	return ""
}

// Without is the filter without one part of Has.
func (f Filter) Without(name string) Filter {
	for _, q := range parts() {
		if q.name == name {
			q.clear(&f)
		}
	}

	return f
}

// With returns the filter with the value of one qualifier, which is written as in
// a parameter of an address. An empty value adds nothing. When the filter has
// another value for the qualifier already, that is a *invalid.Error. Errors name the
// qualifier as it was written.
func (f Filter) With(name, value string, now time.Time) (Filter, error) {
	if value == "" {
		return f, nil
	}

	// The value is read alone, so that an error is about this value.
	var other Filter

	err := other.read(name, word{value: value}, now, map[string]bool{})
	if err == nil {
		err = other.checkEach()
	}

	if err != nil {
		return f, err
	}

	q := qualifierNamed(name)
	was, is := q.text(&f), q.text(&other)
	if was != "" && is != "" && was != is {
		return f, invalid.Errorf(name, "is given twice, as %q and as %q", clip.Text(was, 64), clip.Text(is, 64))
	}

	if is != "" {
		err = q.read(&f, q.name, is, now)
	}

	return f, err
}

// quoted is a text in quotation marks, as Parse reads it.
func quoted(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// quotedIfNeeded is the value of a qualifier, in quotation marks when it could
// not be read back without.
func quotedIfNeeded(s string) string {
	if s == "" || strings.HasPrefix(s, `"`) || strings.ContainsFunc(s, unicode.IsSpace) {
		return quoted(s)
	}
	return s
}

// quotedText is text without a qualifier; what looks like more is quoted.
func quotedText(s string) string {
	_, err := job.ParseID(s)
	if err == nil || s == "" || strings.ContainsAny(s, `":`) || strings.ContainsFunc(s, unicode.IsSpace) {
		return quoted(s)
	}

	return s
}
