// Package clip cuts texts that others wrote to what is kept or shown of them.
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
