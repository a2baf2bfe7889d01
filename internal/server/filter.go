package server

import (
	"net/url"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// query reads the filter and the cursor of a list, and returns what is wrong
// with each field. The filter is what q says in the language of filters together
// with the parameters that have the names of its qualifiers. Parameters that are
// not known are ignored.
func query(values url.Values) (f job.Filter, after job.Cursor, wrong []*retry.FieldError) {
	now := time.Now()
	check := func(err error) bool {
		if field, ok := err.(*retry.FieldError); ok {
			wrong = append(wrong, field)
		}
		return err == nil
	}
	f, err := job.ParseFilter(values.Get("q"), now)
	check(err)
	for _, q := range job.Qualifiers() {
		part, err := job.ReadPart(q.Name, values.Get(q.Name), now)
		if !check(err) {
			continue
		}
		if sum, err := f.Combine(part); check(err) {
			f = sum
		}
	}
	if len(wrong) == 0 {
		check(f.Check())
	}
	after, err = job.ParseCursor(values.Get("after"))
	check(err)
	return f, after, wrong
}
