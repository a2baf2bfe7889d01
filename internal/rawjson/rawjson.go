// Package rawjson finds its way through JSON without decoding it. What a
// decoder and an encoder would change, big numbers, 1.0 and the order of
// members, is kept to the byte by those who only need to know where a value
// begins and ends.
//
// Unless said otherwise, data is valid JSON, and i the index of a byte in it.
package rawjson

import (
	"bytes"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Depth is how deep the deepest bracket lies. The data may be anything.
func Depth(data []byte) (deepest int) {
	level := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			i = AfterString(data, i) - 1
		case '{', '[':
			level++
			deepest = max(deepest, level)
		case '}', ']':
			level--
		}
	}
	return deepest
}

// Space returns the index of the first byte from i on that is no white space.
func Space(data []byte, i int) int {
	for i < len(data) && (data[i] == ' ' || data[i] == '\t' || data[i] == '\r' || data[i] == '\n') {
		i++
	}
	return i
}

// AfterString returns the index after the string that begins at i.
func AfterString(data []byte, i int) int {
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

// AfterValue returns the index after the value that begins at i.
func AfterValue(data []byte, i int) int {
	level := 0
	for ; i < len(data); i++ {
		switch data[i] {
		case '"':
			if i = AfterString(data, i); level == 0 {
				return i
			}
			i--
		case '{', '[':
			level++
		case '}', ']':
			if level--; level == 0 {
				return i + 1
			} else if level < 0 {
				return i
			}
		case ',', ':', ' ', '\t', '\r', '\n':
			if level == 0 {
				return i
			}
		}
	}
	return i
}

// HalfPair returns the first escape that is half of a surrogate pair, as
// "\ud800", or nothing. It is no character, and a decoder would silently make
// another one of it.
func HalfPair(data []byte) string {
	for i := bytes.IndexByte(data, '\\'); i >= 0 && i < len(data); i++ {
		if data[i] != '\\' {
			continue
		}
		unit, next := escaped(data[i:]), escaped(data[min(i+6, len(data)):])
		switch {
		case utf16.DecodeRune(unit, next) != utf8.RuneError:
			i += 11
		case utf16.IsSurrogate(unit):
			return string(data[i : i+6])
		default:
			i++ // what is escaped may be a backslash
		}
	}
	return ""
}

// escaped is the UTF-16 unit with which a text begins, or zero.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil { // unreachable in valid JSON
		return 0
	}
	return rune(unit)
}
