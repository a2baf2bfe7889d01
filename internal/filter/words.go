package filter

import (
	"fmt"
	"strings"
	"time"
	"unicode"

	"redrive/internal/job"
)

// Words says for people what the filter selects: "dead letters of queue orders
// whose error contains timeout". Its values come from people and may be hostile.
func (f Filter) Words() string {
	s := f.noun()
	if of := f.of(); len(of) > 0 {
		s += " of " + strings.Join(of, " and ")
	}
	if whose := f.whose(); len(whose) > 0 {
		s += " whose " + strings.Join(whose, " and ")
	}
	if !f.From.IsZero() {
		s += " since " + moments(f.From)
	}
	if !f.To.IsZero() {
		s += " before " + moments(f.To)
	}
	return s
}

func (f Filter) noun() string {
	switch f.Status {
	case "":
		return "jobs"
	case job.StatusDeadLetter:
		return "dead letters"
	case job.StatusDLQFailed:
		return "refused dead letters"
	}
	return string(f.Status) + " jobs"
}

func (f Filter) of() []string {
	return said("queue", f.Queue, "type", f.Type, "error group", f.Group, "operation", Filter{Operation: f.Operation}.Value("operation"))
}

func (f Filter) whose() []string {
	all := said(
		"reason is", string(f.Reason), "error type is", f.Class, "error contains", f.Error, "payload contains", f.Payload,
		"meta contains", f.Meta, "id begins with", f.ID, "id, type, error, payload or meta contains", f.Text,
	)
	if f.Attempts != (Span{}) {
		all = append(all, "attempts are "+f.Attempts.words())
	}
	if f.Run != (Span{}) {
		all = append(all, "run is "+f.Run.words())
	}
	return all
}

// said joins pairs of a name and a value, without those that have no value.
func said(pairs ...string) []string {
	var all []string
	for i := 0; i < len(pairs); i += 2 {
		if value := pairs[i+1]; value != "" {
			if strings.ContainsFunc(value, unicode.IsSpace) {
				value = quoted(value)
			}
			all = append(all, pairs[i]+" "+value)
		}
	}
	return all
}

func (s Span) words() string {
	switch {
	case s.Max == 0:
		return fmt.Sprintf("%d or more", s.Min)
	case s.Min == 0:
		return fmt.Sprintf("%d or fewer", s.Max)
	case s.Min == s.Max:
		return fmt.Sprint(s.Min)
	}
	return fmt.Sprintf("%d to %d", s.Min, s.Max)
}

func moments(t time.Time) string {
	layout := "2006-01-02 15:04:05"
	if t.Nanosecond() != 0 {
		layout += ".999999"
	}
	return t.UTC().Format(layout) + " UTC"
}
