// Package clip cuts texts that others wrote to what is kept or shown of them, and folds them
// to one line.
package clip

import (
	"strings"
	"unicode/utf8"
)

// Text returns s as valid UTF-8 of at most limit bytes, with a marker where it
// was cut.
func Text(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}

	const marker = "… [cut]"

	cut := max(0, limit-len(marker))
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}

	return s[:cut] + marker
}

// Line returns s on one line: each run of white space is one blank, and neither end has any.
func Line(s string) string { return strings.Join(strings.Fields(s), " ") }
