package filter

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// The limits of what can be looked for, in bytes unless said.
const (
	MaxQuery  = 4000 // of a whole filter
	MaxSearch = 200  // of each text
	MinSearch = 3    // characters of each text
	MinID     = 8    // characters of the beginning of an id
)

// Sort is the order of a list.
type Sort string

// The orders of a list.
const (
	Newest Sort = ""
	Oldest Sort = "oldest"
)

// Qualifier is a part of the language of filters, for those who suggest it.
type Qualifier struct{ Name, Example string }

// Qualifiers lists the parts of the language.
func Qualifiers() []Qualifier {
	var all []Qualifier
	for _, q := range qualifiers() {
		all = append(all, Qualifier{q.name, q.example})
		if q.alias != "" {
			all = append(all, Qualifier{q.alias, strings.Replace(q.aliased, q.name, q.alias, 1)})
		}
	}
	return all
}

// qualifier is one part of the language: how it is read and written.
type qualifier struct {
	name    string
	alias   string // another name for the same
	example string
	aliased string // the example of the alias
	read    func(f *Filter, name, value string, now time.Time) error
	text    func(f *Filter) string // empty when the filter does not say it
	clear   func(f *Filter)
}

// qualifiers is the whole language, in the order in which filters are written.
// Pages write hundreds of filters, so it is made once.
var qualifiers = sync.OnceValue(func() []qualifier {
	return []qualifier{
		oneWord("state", "state:dead_letter", func(f *Filter) *job.Status { return &f.Status }),
		oneWord("queue", "queue:orders", func(f *Filter) *string { return &f.Queue }),
		oneWord("type", "type:email.*", func(f *Filter) *string { return &f.Type }),
		oneWord("reason", "reason:attempts_exhausted", func(f *Filter) *retry.Reason { return &f.Reason }),
		oneWord("class", "class:http.*", func(f *Filter) *string { return &f.Class }),
		oneWord("group", "group:4f1c92ab03de7761", func(f *Filter) *string { return &f.Group }),
		oneWord("error", "error:timeout", func(f *Filter) *string { return &f.Error }),
		oneWord("payload", "payload:1042", func(f *Filter) *string { return &f.Payload }),
		oneWord("meta", "meta:acme", func(f *Filter) *string { return &f.Meta }),
		oneWord("id", "id:019ce22a", func(f *Filter) *string { return &f.ID }),
		span("attempts", "attempts:>3", func(f *Filter) *Span { return &f.Attempts }),
		span("run", "run:>1", func(f *Filter) *Span { return &f.Run }),
		moment("from", "since", "from:2026-03-12", "since:2h", func(f *Filter) *time.Time { return &f.From }),
		moment("to", "before", "to:2026-03-13", "before:1d", func(f *Filter) *time.Time { return &f.To }),
		operation(),
		oneWord("sort", "sort:oldest", func(f *Filter) *Sort { return &f.Sort }),
	}
})

// oneWord is a qualifier whose value is kept as it is written.
func oneWord[T ~string](name, example string, field func(*Filter) *T) qualifier {
	return qualifier{
		name: name, example: example,
		read: func(f *Filter, _, value string, _ time.Time) error {
			*field(f) = T(value)
			if name == "id" {
				f.ID = strings.ToLower(value)
			}
			if name == "sort" && value == "newest" {
				f.Sort = Newest
			}
			return nil
		},
		text:  func(f *Filter) string { return string(*field(f)) },
		clear: func(f *Filter) { *field(f) = "" },
	}
}

func span(name, example string, field func(*Filter) *Span) qualifier {
	return qualifier{
		name: name, example: example,
		read: func(f *Filter, name, value string, _ time.Time) (err error) {
			*field(f), err = ParseSpan(value)
			return inField(name, err)
		},
		text:  func(f *Filter) string { return field(f).String() },
		clear: func(f *Filter) { *field(f) = Span{} },
	}
}

func moment(name, alias, example, aliased string, field func(*Filter) *time.Time) qualifier {
	return qualifier{
		name: name, alias: alias, example: example, aliased: aliased,
		read: func(f *Filter, name, value string, now time.Time) (err error) {
			*field(f), err = ParseMoment(value, now)
			return inField(name, err)
		},
		text: func(f *Filter) string {
			if t := *field(f); !t.IsZero() {
				return t.UTC().Format(time.RFC3339Nano)
			}
			return ""
		},
		clear: func(f *Filter) { *field(f) = time.Time{} },
	}
}

func operation() qualifier {
	return qualifier{
		name: "operation", example: "operation:12",
		read: func(f *Filter, name, value string, _ time.Time) error {
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || n == 0 {
				return &invalid.Error{Field: name, Problem: fmt.Sprintf("%q is not the number of an operation", clip.Text(value, 64))}
			}
			f.Operation = int64(n)
			return nil
		},
		text: func(f *Filter) string {
			if f.Operation == 0 {
				return ""
			}
			return strconv.FormatInt(f.Operation, 10)
		},
		clear: func(f *Filter) { f.Operation = 0 },
	}
}

func inField(name string, err error) error {
	if err == nil {
		return nil
	}
	return &invalid.Error{Field: name, Problem: err.Error()}
}

// String writes the filter in the language of filters: parts in a fixed order,
// times absolute. Parse reads it back as the same filter.
func (f Filter) String() string {
	var parts []string
	for _, q := range qualifiers() {
		if value := q.text(&f); value != "" {
			parts = append(parts, Qualified(q.name, value))
		}
	}
	if f.Text != "" {
		parts = append(parts, quotedText(f.Text))
	}
	return strings.Join(parts, " ")
}

// Qualified writes one part of a filter.
func Qualified(name, value string) string { return name + ":" + quotedIfNeeded(value) }

// Has lists the names of the qualifiers that the filter uses, "text" for the
// text without one.
func (f Filter) Has() []string {
	var names []string
	for _, q := range qualifiers() {
		if q.text(&f) != "" {
			names = append(names, q.name)
		}
	}
	if f.Text != "" {
		names = append(names, "text")
	}
	return names
}

// Value is what the filter says for a qualifier of Has.
func (f Filter) Value(name string) string {
	if name == "text" {
		return f.Text
	}
	for _, q := range qualifiers() {
		if q.name == name {
			return q.text(&f)
		}
	}
	return ""
}

// Without is the filter without one part of Has.
func (f Filter) Without(name string) Filter {
	for _, q := range qualifiers() {
		if q.name == name {
			q.clear(&f)
		}
	}
	if name == "text" {
		f.Text = ""
	}
	return f
}

// Set is the filter with another value for one qualifier; one that cannot be
// read changes nothing.
func (f Filter) Set(name, value string) Filter {
	changed := f
	for _, q := range qualifiers() {
		if q.name == name && q.read(&changed, name, value, time.Time{}) == nil {
			return changed
		}
	}
	return f
}

// quoted is a text in quotation marks.
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

// Check returns a *invalid.Error for the first field that no job can match.
func (f Filter) Check() error {
	if f.Status != "" && !slices.Contains(job.Statuses(), f.Status) {
		return &invalid.Error{Field: "state", Problem: fmt.Sprintf("%q is unknown; use %s", clip.Text(string(f.Status), 64), statusNames())}
	}
	if known := retry.Reasons(); f.Reason != "" && !slices.Contains(known, f.Reason) {
		return &invalid.Error{Field: "reason", Problem: fmt.Sprintf("%q is unknown; use one of %q", clip.Text(string(f.Reason), 64), known)}
	}
	if f.Queue != "" {
		if err := job.CheckQueue(f.Queue); err != nil {
			return err
		}
	}
	if err := cmp.Or(CheckPattern("type", f.Type), CheckPattern("class", f.Class)); err != nil {
		return err
	}
	for _, text := range []struct{ field, value string }{
		{"error", f.Error}, {"payload", f.Payload}, {"meta", f.Meta}, {"text", f.Text},
	} {
		if text.value != "" {
			if _, err := checkSearch(text.field, text.value); err != nil {
				return err
			}
		}
	}
	return f.checkMore()
}

// CheckPattern refuses what is neither a type, of a job or of an error, nor a
// prefix of some, as email.*.
func CheckPattern(field, s string) error {
	switch {
	case s == "":
		return nil
	case job.CheckType(s) != nil:
		return &invalid.Error{Field: field, Problem: fmt.Sprintf("%q is not a type, or a prefix of types as http.*", clip.Text(s, 64))}
	case strings.HasSuffix(s, "*") && !strings.HasSuffix(s, ".*"):
		return &invalid.Error{Field: field, Problem: fmt.Sprintf(
			"%q has a * that nothing matches; write the whole, or a prefix up to a dot as email.*", clip.Text(s, 64))}
	}
	return nil
}

func (f Filter) checkMore() error {
	notHex := func(r rune) bool { return !strings.ContainsRune("0123456789abcdef-", r) }
	plain := func(r rune) bool { return r > 0x20 && r < 0x7f }
	switch {
	case f.ID != "" && (len(f.ID) < MinID || len(f.ID) > 36 || strings.ContainsFunc(f.ID, notHex)):
		return &invalid.Error{Field: "id", Problem: fmt.Sprintf("%q is not the beginning of a job's id: %d to 36 characters of it", clip.Text(f.ID, 64), MinID)}
	case len(f.Group) > 64 || strings.ContainsFunc(f.Group, func(r rune) bool { return !plain(r) }):
		return &invalid.Error{Field: "group", Problem: fmt.Sprintf("%q is not the fingerprint of an error group", clip.Text(f.Group, 64))}
	case !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To):
		return &invalid.Error{Field: "to", Problem: "is not later than from: no job lies between them"}
	case f.Sort != Newest && f.Sort != Oldest:
		return &invalid.Error{Field: "sort", Problem: fmt.Sprintf("%q is unknown; use newest or oldest", clip.Text(string(f.Sort), 64))}
	}
	return nil
}

func statusNames() string {
	var names []string
	for _, s := range job.Statuses() {
		names = append(names, string(s))
	}
	return strings.Join(names, ", ")
}
