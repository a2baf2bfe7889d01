package redact

import (
	"strings"
)

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isBlank reports whether a blank is at i, however it is written.
func isBlank(s string, i int) bool {
	c, _ := char(s, i)
	return c == ' ' || c == '\t'
}

// isScheme reports whether what follows the word are credentials of HTTP.
func isScheme(word string) bool {
	return strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
}

func blanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// char is the character at i, of those that are one byte, however it is written:
// as itself, %3D, %253D, \u003d, \x3d, &quot; or &#34;. n is how many bytes that takes.
func char(s string, i int) (c byte, n int) {
	if i >= len(s) {
		return 0, 1
	}

	c = s[i]
	if c != '%' && c != '\\' && c != '&' {
		return c, 1
	}

	rest := s[i:min(i+12, len(s))]

	// The two digits of the character, in hexadecimal, and how long the whole is.
	digits := ""
	switch rest[0] {
	case '%':
		digits, n = rest[1:min(3, len(rest))], 3
	// A text within texts has more backslashes: \\u003d.
	case '\\':
		escape := strings.TrimLeft(rest, `\`)
		n = len(rest) - len(escape)
		if strings.HasPrefix(escape, "u00") && len(escape) >= 5 {
			digits, n = escape[3:5], n+5
		} else if strings.HasPrefix(escape, "x") && len(escape) >= 3 {
			digits, n = escape[1:3], n+3
		}
	case '&':
		return entity(rest)
	}

	// Only characters of one byte are looked for.
	if high, low := digit(digits, 0), digit(digits, 1); high >= 0 && low >= 0 && high < 8 {
		c = byte(high<<4 | low)
		if c == '&' || c == '%' { // \u0026quot;, %253D
			if again, m := char(string(c)+s[i+n:min(i+n+8, len(s))], 0); m > 1 {
				return again, n + m - 1
			}
		}

		return c, n
	}

	return rest[0], 1
}

// digit is a hexadecimal digit, or -1.
func digit(s string, i int) int {
	if i >= len(s) {
		return -1
	}

	n := strings.IndexByte("0123456789abcdefABCDEF", s[i])
	if n > 15 {
		n -= 6
	}

	return n
}

// entity is the character that an entity of HTML stands for.
func entity(s string) (c byte, n int) {
	name, _, closed := strings.Cut(s[1:], ";")
	if !closed {
		return s[0], 1
	}

	switch strings.ToLower(name) {
	case "quot", "#34", "#x22", "#034":
		c = '"'
	case "apos", "#39", "#x27", "#039":
		c = '\''
	case "lt", "#60", "#x3c":
		c = '<'
	case "gt", "#62", "#x3e":
		c = '>'
	case "equals", "#61", "#x3d":
		c = '='
	case "colon", "#58", "#x3a":
		c = ':'
	default:
		return s[0], 1
	}

	return c, len(name) + 2
}

// plain is a word in which every character stands as itself.
func plain(word string) string {
	if !strings.ContainsAny(word, `%\&`) {
		return word
	}

	var b strings.Builder
	i := 0
	for i < len(word) {
		c, n := char(word, i)
		b.WriteByte(c)

		i += n
	}

	return b.String()
}
