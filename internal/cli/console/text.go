package console

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Printable is a text without control characters, which a terminal would obey.
func Printable(s string) string {
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

// Counted is a number with its noun.
func Counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// ToTheDay is a date in UTC, or a dash for the zero time.
func ToTheDay(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02")
}

// ToTheSecond is a time in UTC, exact to the second, or a dash for the zero time.
func ToTheSecond(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04:05Z")
}
