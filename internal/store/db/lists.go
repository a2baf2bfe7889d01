package db

import (
	"database/sql/driver"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Numbers are numbers that travel to one statement as one argument: the statement reads
// them with json_each. An engine that has arrays takes them as they are; for any other they
// are a JSON array.
type Numbers []int64

// Value is the JSON array.
func (n Numbers) Value() (driver.Value, error) {
	text := []byte{'['}
	for i, number := range n {
		if i > 0 {
			text = append(text, ',')
		}

		text = strconv.AppendInt(text, number, 10)
	}

	return string(append(text, ']')), nil
}

// Texts are texts that travel to one statement, as [Numbers] do.
type Texts []string

// Value is the JSON array.
func (t Texts) Value() (driver.Value, error) {
	if len(t) == 0 { // of a nil slice, JSON would be null, which is one value
		return "[]", nil
	}

	text, err := json.Marshal([]string(t))

	return string(text), err
}

// clean returns the texts as every database can keep them; nil: they are so already.
func (t Texts) clean() any {
	dirty := func(s string) bool { return Clean(s) != s }
	if !slices.ContainsFunc(t, dirty) {
		return nil
	}

	cleaned := make(Texts, len(t))
	for i, s := range t {
		cleaned[i] = Clean(s)
	}

	return cleaned
}

// Rows is how rows of several values travel to one statement: a JSON array of arrays, for
// every engine. Its texts are cleaned.
func Rows[T any](rows []T) string {
	text, _ := json.Marshal(rows) // numbers and texts: it never fails
	return withoutNUL.Replace(string(text))
}

// withoutNUL replaces what JSON writes for NUL. An escaped backslash comes first, because what
// follows it is no escape.
var withoutNUL = strings.NewReplacer(`\\`, `\\`, `\u0000`, "\uFFFD")
