package redact

import (
	"strings"
)

// value is the span of the value that belongs to a name and begins at begin.
func value(s string, begin int, name span) span {
	if begin >= len(s) {
		return span{}
	}

	if at := prefixed(s, begin); quoteAt(s, at).width() > 0 {
		return quotedValue(s, at)
	}

	called := strings.ToLower(plain(name.in(s)))
	switch {
	case brackets(s, begin):
		return span{begin, bracketed(s, begin)}
	case strings.Contains(called, "cookie"):
		return span{begin, line(s, begin)}
	}

	if n := literal(s[begin:]); n > 0 && quoteAt(s, name.to).width() > 0 && begin+n < len(s) && strings.IndexByte(",]}", s[begin+n]) >= 0 {
		return span{begin, begin + n}
	}

	maskEnd := begin + len(Hidden)
	if strings.HasPrefix(s[begin:], Hidden) && endsQuote(s, maskEnd) {
		return span{begin, maskEnd} // however long the run is in which it stands
	}

	found := blankless(s, begin)
	if again := hiddenBefore(s, found); again.to < found.to {
		return again
	}

	if !found.empty() && s[found.from] == '!' { // a tag of YAML: !!str S
		return span{found.from, max(found.to, value(s, blanks(s, found.to), name).to)}
	}

	if word := found.in(s); isScheme(word) || strings.EqualFold(word, "token") {
		found.to = blankless(s, found.to).to
	} else if strings.Contains(called, "authorization") && !strings.HasPrefix(word, Hidden) {
		found.to = line(s, begin)
	}

	return found
}

// hiddenBefore is the mask with which a value begins, when nothing but marks or the
// rest of a quoted text follows; else it is the value.
func hiddenBefore(s string, found span) span {
	rest, masked := strings.CutPrefix(s[found.from:max(found.from, found.to)], Hidden)
	if masked && (strings.Trim(rest, ")]},;.:\"'\\ \t\r\n") == "" || endsQuote(rest, 0)) {
		return span{found.from, found.from + len(Hidden)}
	}

	return found
}

// brackets reports whether a value in brackets begins at i, also one that Go
// printed: map[…], &{…}.
func brackets(s string, i int) bool {
	rest := strings.TrimPrefix(s[i:], "&")
	return strings.HasPrefix(rest, "map[") || rest != "" && strings.IndexByte("{[(", rest[0]) >= 0
}

// bracketed finds the end of a value in brackets that begins at i, or of the
// text when they are never closed. Brackets in quotes do not count.
func bracketed(s string, i int) int {
	level := 0
	for k := i; k < len(s); k++ {
		switch c := s[k]; {
		case strings.IndexByte("{[(", c) >= 0:
			level++
		case strings.IndexByte("}])", c) >= 0:
			level--
			if level <= 0 {
				return k + 1
			}
		case k > i && strings.IndexByte("{[(,:= \n\t", s[k-1]) >= 0:
			if q := quoteAt(s, k); q.width() > 0 {
				k = closing(s, k+q.width(), q) + q.width() - 1
			}
		}
	}

	return len(s)
}

// line is the end of the line.
func line(s string, i int) int {
	return orEnd(s, i, strings.IndexAny(s[i:], "\r\n"))
}

// orEnd is the index n after i; the end of the text when n is none.
func orEnd(s string, i, n int) int {
	if n < 0 {
		return len(s)
	}
	return i + n
}

// blankless is where the next run of characters without blanks is.
func blankless(s string, i int) span {
	i = blanks(s, i)
	return span{i, orEnd(s, i, strings.IndexAny(s[i:], " \t\r\n\v\f"))}
}

// literal is the length of the number, the word of JSON or the mask with which a
// text begins.
func literal(s string) int {
	for _, word := range []string{"true", "false", "null", "None", Hidden} {
		if strings.HasPrefix(s, word) {
			return len(word)
		}
	}

	return len(s) - len(strings.TrimLeft(s, "0123456789+-.eE"))
}
