package redact

import (
	"strings"

	"redrive/internal/rawjson"
)

// mended returns the JSON that a text was meant to be, as long as the text but
// for the commas that are added where one is missing: added says where they
// stand. Overwritten are words that JSON does not know, such as NaN and None,
// control characters and unknown escapes in strings, and a comma before a closing
// bracket.
func mended(data []byte) (out []byte, added []int) {
	out = make([]byte, 0, len(data)+len(data)/8)
	last, before := 0, byte('[') // the token before, and how it begins
	for i := 0; i < len(data); {
		c, end := data[i], i+1
		opens := false
		switch c {
		case ' ', '\t', '\r', '\n':
			out = append(out, c)
			i++
			continue
		case ',', ':':
		case '}', ']':
			if before == ',' {
				out[last] = ' '
			}
		case '{', '[':
			opens = true
		case '"':
			opens, end = true, afterString(data, i)
		default:
			opens, end = true, afterWord(data, i)
		}
		if opens && strings.IndexByte(",:{[", before) < 0 {
			added = append(added, len(out))
			out = append(out, ',')
		}
		last, before = len(out), c
		out = append(out, data[i:end]...)
		switch token := out[last:]; {
		case c == '"':
			mendString(token)
		case opens && c != '{' && c != '[' && !rawjson.Valid(token):
			copy(token, strings.Repeat("1", len(token)))
		}
		i = end
	}
	return out, added
}

// afterWord returns the index after the word that begins at i, and after what
// stands in quotes or brackets at its end: b"a", Set([1]).
func afterWord(data []byte, i int) int {
	for level := 0; i < len(data); i++ {
		switch c := data[i]; {
		case c == '"':
			if i = afterString(data, i) - 1; level == 0 {
				return i + 1
			}
		case c == '{' || c == '[':
			level++
		case c == '}' || c == ']':
			if level--; level < 0 {
				return i
			} else if level == 0 {
				return i + 1
			}
		case level == 0 && strings.IndexByte(",: \t\r\n", c) >= 0:
			return i
		}
	}
	return len(data)
}

// mendString puts blanks in the place of what may not be in a string, control
// characters and backslashes with which no escape begins, and counts them.
func mendString(s []byte) (wrong int) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && (i+1 == len(s) || isEscape(s[i:])):
			i++
		case s[i] == '\\' || s[i] < ' ':
			s[i] = ' '
			wrong++
		}
	}
	return wrong
}

// isEscape reports whether a text, which begins with a backslash and does not end
// with it, begins with an escape that JSON knows.
func isEscape(s []byte) bool {
	if s[1] == 'u' {
		return rawjson.Valid([]byte(`"` + string(s[:min(len(s), len(`\u0000`))]) + `"`))
	}
	return strings.IndexByte(`"\/bfnrt`, s[1]) >= 0
}

// afterString returns the index after the string that begins at i, or the end of
// the text when it is never closed.
func afterString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(data)
}
