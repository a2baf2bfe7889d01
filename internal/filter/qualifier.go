package filter

import (
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

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
		wordQualifier("state", "state:dead_letter", func(f *Filter) *job.Status { return &f.Status }),
		wordQualifier("queue", "queue:orders", func(f *Filter) *string { return &f.Queue }),
		wordQualifier("source", "source:shop", func(f *Filter) *string { return &f.Source }),
		wordQualifier("type", "type:email.*", func(f *Filter) *string { return &f.Type }),
		wordQualifier("reason", "reason:attempts_exhausted", func(f *Filter) *retry.Reason { return &f.Reason }),
		wordQualifier("class", "class:http.*", func(f *Filter) *string { return &f.Class }),
		wordQualifier("group", "group:4f1c92ab03de7761", func(f *Filter) *string { return &f.Group }),
		wordQualifier("error", "error:timeout", func(f *Filter) *string { return &f.Error }),
		wordQualifier("payload", "payload:1042", func(f *Filter) *string { return &f.Payload }),
		wordQualifier("meta", "meta:acme", func(f *Filter) *string { return &f.Meta }),
		wordQualifier("id", "id:019ce22a", func(f *Filter) *string { return &f.ID }),
		spanQualifier("attempts", "attempts:>3", func(f *Filter) *Span { return &f.Attempts }),
		spanQualifier("run", "run:>1", func(f *Filter) *Span { return &f.Run }),
		timeQualifier("from", "since", "from:2026-03-12", "since:2h", func(f *Filter) *time.Time { return &f.From }),
		timeQualifier("to", "before", "to:2026-03-13", "before:1d", func(f *Filter) *time.Time { return &f.To }),
		operationQualifier(),
		wordQualifier("sort", "sort:oldest", func(f *Filter) *Sort { return &f.Sort }),
		wordQualifier("text", "", func(f *Filter) *string { return &f.Text }),
	}
})

// qualifiers are the parts with a name that people write.
func qualifiers() []qualifier {
	all := parts()
	return all[:len(all)-1]
}

// wordQualifier is a qualifier whose value is kept as it is written.
func wordQualifier[T ~string](name, example string, field func(*Filter) *T) qualifier {
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

// spanQualifier is a qualifier whose value is a range of numbers.
func spanQualifier(name, example string, field func(*Filter) *Span) qualifier {
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

// timeQualifier is a qualifier whose value is a time. It is written as an absolute time.
func timeQualifier(name, alias, example, aliased string, field func(*Filter) *time.Time) qualifier {
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

// operationQualifier is the qualifier whose value is the number of an operation.
func operationQualifier() qualifier {
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
