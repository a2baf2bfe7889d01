package filter

import (
	"strings"
	"unicode"
)

// Contains reports whether one of the texts contains what is looked for, case
// ignored.
func Contains(wanted string, texts ...string) bool {
	if wanted == "" {
		return true
	}
	wanted = folded(wanted)
	for _, s := range texts {
		if strings.Contains(folded(s), wanted) {
			return true
		}
	}
	return false
}

// folded is a text in which letters that differ by case alone are the same.
func folded(s string) string {
	return strings.Map(func(r rune) rune {
		least := r
		for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
			least = min(least, next)
		}
		return least
	}, s)
}
