package redact

import (
	"strings"
)

// endsQuote reports whether a quoted text may end at i.
func endsQuote(s string, i int) bool { return i < len(s) && strings.IndexByte(`"'\`, s[i]) >= 0 }

// prefixed passes what languages write before a quoted text, as b'S', N'S',
// string(1) "S" or Secret('S').
func prefixed(s string, i int) int {
	j := i
	for j < len(s) && j < i+32 && isWord(s[j]) {
		j++
	}

	// string(1) "S" has a length in parentheses, and Secret('S') has the quoted text there.
	if j < len(s) && s[j] == '(' && j > i {
		k := j + 1
		for k < len(s) && k < j+12 && '0' <= s[k] && s[k] <= '9' {
			k++
		}

		if k == j+1 {
			return k
		}

		if k < len(s) && s[k] == ')' {
			return blanks(s, k+1)
		}
	} else if j-i <= 2 {
		// b'S', N'S'
		return j
	}

	return i
}

// delimiter is how a quoted text begins and ends: with a character, and with
// backslashes before it where the text is inside another quoted text.
type delimiter struct {
	raw     string
	escapes int
	coded   bool // as &quot; or %22
}

func (q delimiter) width() int { return len(q.raw) }

// quoteAt is the quote at i, if there is one.
func quoteAt(s string, i int) delimiter {
	k := i
	for k < len(s) && k < i+8 && s[k] == '\\' {
		k++
	}

	if k < len(s) && strings.IndexByte("\"'`", s[k]) >= 0 {
		return delimiter{raw: s[i : k+1], escapes: k - i}
	}

	if c, n := char(s, i); n > 1 && (c == '"' || c == '\'') {
		return delimiter{raw: s[i : i+n], coded: true}
	}

	return delimiter{}
}

// quotedValue is what stands in the quotes that begin at i; all of it and the
// quotes where more is joined to it, as a shell does: 'it'\"'S'.
func quotedValue(s string, i int) span {
	q := quoteAt(s, i)

	from := i + q.width()

	end := closing(s, from, q)
	after := end + q.width()
	if q.escapes == 0 && !q.coded && after < len(s) && quoteAt(s, after).width() > 0 {
		return span{i, blankless(s, after).to}
	}

	return span{from, end}
}

// closing is where the quoted text ends whose first character is at i; the end
// of the whole text when it is never closed. Neither a quote that is escaped, nor
// one that is doubled, nor one within a word ends it.
func closing(s string, i int, q delimiter) int {
	if q.coded {
		return orEnd(s, i, strings.Index(s[i:], q.raw))
	}

	c := q.raw[len(q.raw)-1]
	for k := i; k < len(s); k++ {
		n := strings.IndexByte(s[k:], c)
		if n < 0 {
			return len(s)
		}

		k += n
		escapes := k - i - len(strings.TrimRight(s[i:k], `\`))
		switch {
		// The quote is escaped within the text.
		case escapes%(2*q.escapes+2) == 2*q.escapes+1:
		// 'it''s'
		case q.escapes == 0 && k+1 < len(s) && s[k+1] == c:
			k++
		// 'it's'
		case q.escapes == 0 && k+1 < len(s) && isWord(s[k+1]):
		default:
			return k - min(escapes, q.escapes)
		}
	}

	return len(s)
}
