package config

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"redrive/internal/invalid"
)

// Error says what is wrong with a file, and where.
type Error struct {
	File    string
	Line    int    // 0 when it is about the whole file
	Field   string // the path, as queues.orders.policy.max_attempts; may be empty
	Problem string

	Unset bool // it is about a variable of the environment that is missing or empty
}

// Error is one line, FILE:LINE: FIELD: PROBLEM, so that editors find the
// place. It is printed and logged, so it has no login of a URL.
func (e *Error) Error() string {
	var place strings.Builder
	place.WriteString(e.File)

	if e.Line > 0 {
		fmt.Fprintf(&place, ":%d", e.Line)
	}

	if e.Field != "" {
		place.WriteString(": " + printable(withoutLogins(e.Field)))
	}

	return place.String() + ": " + printable(withoutLogins(strings.ReplaceAll(e.Problem, "\n", " ")))
}

// urlLogin is the login of a URL, or what was left of it where the URL was cut.
var urlLogin = regexp.MustCompile(`://\S*(@|…)`)

// withoutLogins takes the logins out of the URLs in a text.
func withoutLogins(text string) string { return urlLogin.ReplaceAllString(text, "://…@") }

// printable escapes what a terminal obeys or does not show.
func printable(s string) string {
	var b strings.Builder
	for _, r := range s {
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(strings.Trim(strconv.QuoteRune(r), "'"))
		}
	}

	return b.String()
}

// Errors are several errors of a file, in the order of their lines.
type Errors []*Error

// Error has a line for each error.
func (all Errors) Error() string {
	var lines []string
	for _, e := range all {
		lines = append(lines, e.Error())
	}

	return strings.Join(lines, "\n")
}

// Unwrap returns the errors one by one.
func (all Errors) Unwrap() []error {
	errs := make([]error, len(all))
	for i, e := range all {
		errs[i] = e
	}

	return errs
}

// collect makes one error of all that are joined in another: an *Error if it is only
// one, otherwise Errors.
func collect(err error) error {
	var all Errors
	seen := map[Error]bool{}
	for _, err := range split(err) {
		if e, ok := errors.AsType[*Error](err); ok && !seen[*e] {
			seen[*e] = true
			all = append(all, e)
		}
	}

	switch len(all) {
	case 0:
		return err
	case 1:
		return all[0]
	}

	slices.SortStableFunc(all, func(a, b *Error) int { return cmp.Compare(a.Line, b.Line) })

	return all
}

// NamesUnsetVariable reports whether one of the errors of a file is about a variable of the
// environment that is missing or empty.
func NamesUnsetVariable(err error) bool {
	return slices.ContainsFunc(split(err), func(err error) bool {
		wrong, ok := errors.AsType[*Error](err)
		return ok && wrong.Unset
	})
}

// Locate adds file and line to an error about a field of this file, as other
// packages return it for what they were configured with, or to several of them.
func (c *Config) Locate(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, err := range joined.Unwrap() {
			all = append(all, c.Locate(err))
		}

		return collect(errors.Join(all...))
	}

	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return c.file.wrong(wrong.Field, wrong.Problem)
	}

	return err
}

// under puts a path before the field of an error, or of each that is joined in it.
func under(path string, err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var all []error
		for _, err := range joined.Unwrap() {
			all = append(all, under(path, err))
		}

		return errors.Join(all...)
	}

	if wrong, ok := errors.AsType[*invalid.Error](err); ok {
		return &invalid.Error{Field: path + "." + wrong.Field, Problem: wrong.Problem}
	}

	return err
}
