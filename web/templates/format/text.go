// Package format writes what pages show: text in which nothing hides, numbers,
// times and durations as people say them. Nothing here reads a clock.
//
// Every text that came from outside passes through [Visible] or [VisibleLines]
// on its way to a page; the templates escape it for HTML.
package format

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Visible returns s as one line in which nothing hides: the end of a line is drawn as
// ⏎, other control characters as ␀ and so on, and characters that reorder, join or
// vanish are written as \u202e. Every string that came from outside passes through here,
// or through VisibleLines, on its way to a page.
func Visible(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "") }

// How much of a long name is kept at its end, and how long a name is that is not divided, in
// columns of Latin letters.
const (
	tailColumns  = 9
	wholeColumns = 2 * tailColumns
)

// HeadAndTail divides a long name so that its end can stay in sight where its beginning is
// cut. A short name is all head. Both parts are visible.
func HeadAndTail(name string) (head, tail string) {
	chars := []rune(Visible(name))
	from, columns := len(chars), 0
	for i, char := range slices.Backward(chars) {
		columns++
		if char >= '\u1100' { // from here on most scripts have letters that are twice as wide
			columns++
		}

		if columns <= tailColumns && !unicode.Is(unicode.M, char) { // a mark belongs to the letter before it
			from = i
		}
	}

	if columns <= wholeColumns {
		from = len(chars)
	}

	return string(chars[:from]), string(chars[from:])
}

// VisibleLines is Visible for text of several lines, as a trace: line breaks
// and tabs keep their meaning.
func VisibleLines(s string) string { return escape(strings.ReplaceAll(s, "\r\n", "\n"), "\n\t") }

// escape makes every hidden character visible, but for those to keep.
func escape(s, keep string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	hidden := func(r rune) bool { return Hides(r) && !strings.ContainsRune(keep, r) }
	if !strings.ContainsFunc(s, hidden) {
		return s
	}

	var b strings.Builder
	for _, r := range s {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(" ⏎ ") // lines can wrap there
		case r < ' ':
			b.WriteRune('\u2400' + r) // the picture of the control character
		case r == '\x7f':
			b.WriteRune('\u2421')
		case r <= 0xffff:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}

	return b.String()
}

// Hides reports whether a reader could not see r, or not where it stands:
// controls, formats (among them the marks that turn the direction of writing),
// separators of lines, private use, and letters without ink.
func Hides(r rune) bool {
	if ' ' <= r && r <= '~' {
		return false
	}

	switch r {
	case '\u115f', '\u1160', '\u3164', '\uffa0', '\u2800': // fillers
		return true
	}

	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Co, unicode.Zl, unicode.Zp)
}

// ShortID is the end of a job's id: enough to tell rows apart, and the random
// part of a UUIDv7. The whole id is one click away.
func ShortID(id string) string {
	if len(id) <= 6 {
		return id
	}
	return id[len(id)-6:]
}

// BriefID is the id with its middle left out. It ends like [ShortID].
func BriefID(id string) string {
	if len(id) <= 15 {
		return id
	}
	return id[:8] + "…" + ShortID(id)
}

// Sentence makes s a sentence: it begins with a capital and ends with a full
// stop.
func Sentence(s string) string {
	if s == "" || strings.HasSuffix(s, ".") {
		return UpperFirst(s)
	}
	return UpperFirst(s) + "."
}

// By names who did something, inside a sentence.
func By(name string) string { return cmp.Or(name, "someone") }

// Someone is By at the beginning of a sentence. Names keep their letters.
func Someone(name string) string { return cmp.Or(name, "Someone") }

// UpperFirst begins a sentence.
func UpperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if !unicode.IsLower(first) {
		return s
	}

	return string(unicode.ToUpper(first)) + s[size:]
}

// EscapeHidden writes characters that a reader could not see as JSON escapes, so that
// no one pastes into a shell what the page does not show. In valid JSON these
// characters stand inside strings only, where the escape means the same.
func EscapeHidden(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch {
		case !Hides(r) || strings.ContainsRune("\n\t\r", r):
			b.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}

	return b.String()
}
