package filter

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// The limits of what can be looked for, in bytes unless said.
const (
	maxQuery  = 4000 // of a whole filter
	maxSearch = 200  // of each text
	MinSearch = 3    // characters of each text; a run of white space counts as one
	MinID     = 8    // characters of the beginning of an id
)

// Qualifier is a part of the language of filters, for those who suggest it.
type Qualifier struct{ Name, Example string }

// Qualifiers lists the parts of the language.
func Qualifiers() []Qualifier {
	var all []Qualifier
	for _, q := range qualifiers() {
		all = append(all, Qualifier{q.name, q.example})
		if q.alias != "" {
			all = append(all, Qualifier{q.alias, q.aliased})
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

// qualifierNamed returns the qualifier with a name or an alias, or nil.
func qualifierNamed(name string) *qualifier {
	all := qualifiers()

	i := slices.IndexFunc(all, func(q qualifier) bool { return q.name == name || q.alias == name && name != "" })
	if i < 0 {
		return nil
	}

	return &all[i]
}

// parts is the whole language, in the order in which filters are written. The
// last part is the text without a qualifier. Pages write hundreds of filters, so
// the list is made once.
var parts = sync.OnceValue(func() []qualifier {
	return []qualifier{
		oneWord("state", "state:dead_letter", func(f *Filter) *job.Status { return &f.Status }),
		oneWord("queue", "queue:orders", func(f *Filter) *string { return &f.Queue }),
		oneWord("source", "source:shop", func(f *Filter) *string { return &f.Source }),
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
		oneWord("text", "", func(f *Filter) *string { return &f.Text }),
	}
})

// qualifiers are the parts with a name that people write.
func qualifiers() []qualifier {
	all := parts()
	return all[:len(all)-1]
}

// oneWord is a qualifier whose value is kept as it is written.
func oneWord[T ~string](name, example string, field func(*Filter) *T) qualifier {
	return qualifier{
		name: name, example: example,
		read: func(f *Filter, _, value string, _ time.Time) error {
			*field(f) = T(value)
			if name == "id" {
				f.ID = strings.ToLower(value)
			}

			return nil
		},
		text:  func(f *Filter) string { return string(*field(f)) },
		clear: func(f *Filter) { *field(f) = "" },
	}
}

// span is a qualifier whose value is a range of numbers.
func span(name, example string, field func(*Filter) *Span) qualifier {
	return qualifier{
		name: name, example: example,
		read: func(f *Filter, name, value string, _ time.Time) (err error) {
			*field(f), err = parseSpan(name, value)
			return err
		},
		text:  func(f *Filter) string { return field(f).String() },
		clear: func(f *Filter) { *field(f) = Span{} },
	}
}

// moment is a qualifier whose value is a time. It is written as an absolute time.
func moment(name, alias, example, aliased string, field func(*Filter) *time.Time) qualifier {
	return qualifier{
		name: name, alias: alias, example: example, aliased: aliased,
		read: func(f *Filter, name, value string, now time.Time) (err error) {
			*field(f), err = parseMoment(name, value, now)
			return err
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

// operation is the qualifier whose value is the number of an operation.
func operation() qualifier {
	return qualifier{
		name: "operation", example: "operation:12",
		read: func(f *Filter, name, value string, _ time.Time) error {
			n, err := strconv.ParseUint(value, 10, 63)
			if err != nil || n == 0 {
				return invalid.Errorf(name, "%q is not the number of an operation", clip.Text(value, 64))
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
// another value for the qualifier already, that is a *invalid.Error.
func (f Filter) With(name, value string, now time.Time) (Filter, error) {
	if value == "" {
		return f, nil
	}

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
		return f, invalid.Errorf(q.name, "is given twice, as %q and as %q", clip.Text(was, 64), clip.Text(is, 64))
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

// Check returns a *invalid.Error for the first field that no job can match.
func (f Filter) Check() error {
	if err := f.checkEach(); err != nil || f.Sort != Next {
		return err
	}

	switch {
	case !f.waits():
		return invalid.Errorf("sort", "next sorts jobs that wait for their next run; add state:retryable or state:scheduled")
	case f.Searches():
		return invalid.Errorf("sort", "next cannot be combined with a text; text searches are sorted by enqueue time")
	}

	return nil
}

// checkEach checks every field on its own.
func (f Filter) checkEach() error {
	if f.Status != "" && !slices.Contains(job.Statuses(), f.Status) {
		var known []string
		for _, s := range job.Statuses() {
			known = append(known, string(s))
		}

		return invalid.Errorf("state", "%q is unknown; use %s", clip.Text(string(f.Status), 64), strings.Join(known, ", "))
	}

	if known := retry.Reasons(); f.Reason != "" && !slices.Contains(known, f.Reason) {
		return invalid.Errorf("reason", "%q is unknown; use one of %q", clip.Text(string(f.Reason), 64), known)
	}

	if f.Queue != "" {
		if err := CheckQueue(f.Queue); err != nil {
			return err
		}
	}

	if err := cmp.Or(CheckSource(f.Source), CheckPattern("type", f.Type), CheckPattern("class", f.Class)); err != nil {
		return err
	}

	for _, name := range []string{"error", "payload", "meta", "text"} {
		if text := f.Value(name); text != "" {
			if err := checkSearch(name, text); err != nil {
				return err
			}
		}
	}

	return f.checkRest()
}

// checkRest checks the fields that have a form of their own.
func (f Filter) checkRest() error {
	notHex := func(r rune) bool { return !strings.ContainsRune("0123456789abcdef-", r) }
	notPlain := func(r rune) bool { return r <= 0x20 || r >= 0x7f }
	switch {
	case f.ID != "" && (len(f.ID) < MinID || len(f.ID) > 36 || strings.ContainsFunc(f.ID, notHex)):
		return invalid.Errorf("id", "%q is not the beginning of a job's id: %d to 36 characters of it", clip.Text(f.ID, 64), MinID)
	case slices.ContainsFunc(f.Groups(), func(g string) bool { return g == "" || len(g) > 64 || strings.ContainsFunc(g, notPlain) }):
		return invalid.Errorf("group", "%q is not the fingerprint of an error group; separate several by commas", clip.Text(f.Group, 64))
	case len(f.Groups()) > MaxGroups:
		return invalid.Errorf("group", "names %d error groups; name at most %d", len(f.Groups()), MaxGroups)
	case !f.From.IsZero() && !f.To.IsZero() && !f.From.Before(f.To):
		return invalid.Errorf("to", "is not later than from, so no job can match")
	case !slices.Contains([]Sort{"", Newest, Oldest, Next}, f.Sort):
		return invalid.Errorf("sort", "%q is unknown; use newest, oldest or next", clip.Text(string(f.Sort), 64))
	}

	return nil
}

// CheckQueue returns a *invalid.Error unless s can name a queue, of Redrive's own or of a
// source's jobs.
func CheckQueue(s string) error {
	queue, source, foreign := strings.Cut(s, "@")
	if !foreign {
		return job.CheckQueue(s)
	}

	return cmp.Or(job.CheckQueue(queue), job.CheckQueue(source))
}

// CheckSource returns a *invalid.Error unless s can name a source, or is empty.
func CheckSource(s string) error {
	if s != "" && job.CheckQueue(s) != nil {
		return invalid.Errorf("source", "%q is not the name of a source", clip.Text(s, 64))
	}
	return nil
}

// CheckPattern refuses what is neither a type, of a job or of an error, nor a
// prefix of some, such as "email.*". Empty is right.
func CheckPattern(field, s string) error {
	switch {
	case s == "":
		return nil
	case strings.HasSuffix(s, "*") && !strings.HasSuffix(s, ".*"):
		return invalid.Errorf(field, "%q has a * in the wrong place; use a name, or a prefix up to a dot such as email.*", clip.Text(s, 64))
	case len(s) > job.MaxType || !utf8.ValidString(s):
		return invalid.Errorf(field, "%q is not a type, or a prefix of types such as http.*", clip.Text(s, 64))
	}

	return nil
}

// checkSearch refuses a text that cannot be looked for in the index of words.
func checkSearch(field, s string) error {
	if err := CheckText(field, s); err != nil {
		return err
	}

	// The index reads all white space as one blank, and none at either end.
	if utf8.RuneCountInString(clip.Line(s)) < MinSearch {
		return invalid.Errorf(field, "%q is too short to search for; use at least %d characters", s, MinSearch)
	}

	return nil
}

// CheckText refuses what no text contains that is searched.
func CheckText(field, s string) error {
	switch {
	case len(s) > maxSearch || !utf8.ValidString(s):
		return invalid.Errorf(field, "must be valid UTF-8 of at most %d bytes", maxSearch)
	case strings.ContainsRune(s, 0):
		return invalid.Errorf(field, "contains a NUL character, which cannot be searched for")
	}

	return nil
}
