package fingerprint

import (
	"strings"
	"unicode/utf8"
)

// clip returns the beginning of s, as valid UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}

		s = s[:limit]
	}

	return strings.ToValidUTF8(s, "\uFFFD")
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isWord reports whether a byte is part of a word: any other language's letters
// are.
func isWord(c byte) bool { return isDigit(c) || isLetter(c) || c == '_' || c >= utf8.RuneSelf }

func wordLength(s string) int { return run(s, isWord) }

// run is how many bytes at the beginning of s are of a kind.
func run(s string, of func(byte) bool) int {
	for i := range len(s) {
		if !of(s[i]) {
			return i
		}
	}

	return len(s)
}

// at is the byte at a place, 0 outside.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}
