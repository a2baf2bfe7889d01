package redact

import (
	"bytes"
	"strings"

	"redrive/internal/rawjson"
)

// mended returns the JSON that a text was meant to be, with every byte in its
// place: overwritten are words that JSON does not know, such as NaN and None,
// control characters and unknown escapes in strings, and a comma before a closing
// bracket; a comma that is missing is put in the place of white space.
func mended(data []byte) []byte {
	out := bytes.Clone(data)
	last, before := 0, byte('[') // the token before, and how it begins
	for i := 0; i < len(out); {
		c, end := out[i], i+1
		opens := false
		switch c {
		case ' ', '\t', '\r', '\n':
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
			opens, end = true, afterString(out, i)
			mendString(out[i:end])
		default:
			opens, end = true, mendWord(out, i)
		}
		if opens && strings.IndexByte(",:{[", before) < 0 && strings.IndexByte(" \t\r\n", out[i-1]) >= 0 {
			out[i-1] = ','
		}
		last, before, i = i, c, end
	}
	return out
}

// mendWord puts a number in the place of the word that begins at i, if JSON does
// not know it, and returns the index after it.
func mendWord(data []byte, i int) (end int) {
	end = len(data)
	if n := bytes.IndexAny(data[i:], "{}[],:\" \t\r\n"); n >= 0 {
		end = i + n
	}
	if word := data[i:end]; !rawjson.Valid(word) {
		copy(word, "0"+strings.Repeat(" ", len(word)-1))
	}
	return end
}

// mendString puts blanks in the place of what may not be in a string.
func mendString(s []byte) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] < ' ':
			s[i] = ' '
		case s[i] != '\\' || i+1 == len(s):
		case strings.IndexByte(`"\/bfnrt`, s[i+1]) >= 0, s[i+1] == 'u' && rawjson.Valid([]byte(`"`+string(s[i:min(i+6, len(s))])+`"`)):
			i++
		default:
			s[i], s[i+1] = ' ', ' '
		}
	}
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
