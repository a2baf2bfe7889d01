package db

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
)

// Unescape returns a text with its characters as themselves, where an encoder of JSON wrote
// them as \u00f6, and / as \/, also in strings of JSON within one another. What is
// looked for is read the same way, so that it is found however it is written.
func Unescape(s string) string {
	if !strings.Contains(s, `\u`) && !strings.Contains(s, `\/`) {
		return s
	}

	var b strings.Builder
	i := 0
	for i < len(s) {
		n := strings.IndexByte(s[i:], '\\')
		if n < 0 {
			b.WriteString(s[i:])
			break
		}

		b.WriteString(s[i : i+n])

		i += n
		char, length := escape(s[i:])
		if length == 0 { // of another kind, which stays
			length = len(s[i:]) - len(strings.TrimLeft(s[i:], `\`))
			char = s[i : i+length]
		}

		b.WriteString(char)

		i += length
	}

	return b.String()
}

// escape reads the escape of a character with which a text begins, and how long it is.
func escape(s string) (char string, length int) {
	rest := strings.TrimLeft(s, `\`)
	length = len(s) - len(rest)
	if strings.HasPrefix(rest, "/") {
		return "/", length + 1
	}

	r, n := unit(rest)
	if utf16.IsSurrogate(r) {
		second := strings.TrimLeft(rest[n:], `\`)

		low, m := unit(second)
		r = utf16.DecodeRune(r, low)
		if r != unicode.ReplacementChar {
			n = len(rest) - len(second) + m
		}
	}

	if n == 0 || unicode.IsControl(r) || r == unicode.ReplacementChar || r == '"' || r == '\\' {
		return "", 0
	}

	return string(r), length + n
}

// unit is the code unit u00f6 with which a text begins.
func unit(s string) (r rune, n int) {
	const digits = 4
	if len(s) <= digits || s[0] != 'u' {
		return 0, 0
	}

	code, err := strconv.ParseUint(s[1:1+digits], 16, 16)
	if err != nil {
		return 0, 0
	}

	return rune(code), 1 + digits
}
