package redact

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// asciiText is a text in which names, signs and quotes are those of ASCII, as a person
// reads them: without the characters that are not seen, with plain blanks in the place of
// other spaces, and with ASCII in the place of typographic quotes, wide letters and arrows.
// It is meant for finding places only.
func asciiText(s string) (text string, out colours) {
	var b strings.Builder

	from, gone := 0, 0
	i := 0
	for i < len(s) {
		if c := s[i]; c < utf8.RuneSelf && c != '\\' && c != '&' && c != '%' { // as nearly all
			i++
			continue
		}

		r, n := foreign(s, i)
		instead, known := asciiOf(r)
		if n == 0 || !known {
			i += max(n, 1)
			continue
		}

		b.WriteString(s[from:i])
		b.WriteString(instead)

		i += n
		from, gone = i, gone+n-len(instead)
		out = append(out, colour{at: b.Len(), gone: gone, instead: instead != ""})
	}

	if out == nil {
		return s, nil
	}

	b.WriteString(s[from:])

	return b.String(), out
}

// foreign is the character beyond ASCII at i, however it is written, and its length; zero
// if there is none.
func foreign(s string, i int) (r rune, n int) {
	switch c := s[i]; {
	case c >= utf8.RuneSelf:
		return utf8.DecodeRuneInString(s[i:])
	case c == '\\' && i+1 < len(s) && (s[i+1] == 'u' || s[i+1] == '\\'):
		r, n = unescaped(s[i:min(i+16, len(s))])
	case c == '&':
		r, n = unicodeEntity(s[i:min(i+16, len(s))])
	case c == '%':
		r, n = percentDecoded(s[i:min(i+12, len(s))])
	}

	if r < utf8.RuneSelf {
		return 0, 0
	}

	return r, n
}

// unescaped reads \u00a0 and \u{a0}, also in strings within one another.
func unescaped(s string) (r rune, n int) {
	escape := strings.TrimLeft(s, `\`)
	n = len(s) - len(escape)
	if braced, ok := strings.CutPrefix(escape, "u{"); ok {
		digits, _, closed := strings.Cut(braced, "}")
		r = hexadecimal(digits)
		if closed && r >= 0 {
			return r, n + len("u{}") + len(digits)
		}
	}

	if strings.HasPrefix(escape, "u") && len(escape) >= 5 {
		r = hexadecimal(escape[1:5])
		if r >= 0 {
			return r, n + 5
		}
	}

	return 0, 0
}

// unicodeEntity reads &nbsp;, &#160; and &#xa0;.
func unicodeEntity(s string) (r rune, n int) {
	name, _, closed := strings.Cut(s[1:], ";")
	if !closed {
		return 0, 0
	}

	n = len(name) + len("&;")
	switch digits, number := strings.CutPrefix(name, "#"); {
	case number && strings.HasPrefix(strings.ToLower(digits), "x"):
		return max(hexadecimal(digits[1:]), 0), n
	case number:
		code, err := strconv.ParseUint(digits, 10, 20)
		if err != nil {
			return 0, 0
		}

		return rune(code), n
	}

	return entities[name], n // zero if it is another one
}

// entities are the names that HTML has for what asciiOf knows.
var entities = map[string]rune{
	"nbsp": '\u00a0', "ensp": '\u2002', "emsp": '\u2003', "thinsp": '\u2009', "shy": '\u00ad',
	"zwnj": '\u200c', "zwj": '\u200d', "lrm": '\u200e', "rlm": '\u200f', "ZeroWidthSpace": '\u200b',
	"rarr": '→', "rArr": '⇒', "laquo": '«', "raquo": '»', "ldquo": '“', "rdquo": '”', "bdquo": '„',
	"lsquo": '‘', "rsquo": '’', "sbquo": '‚', "lsaquo": '‹', "rsaquo": '›',
}

// percentDecoded reads %C2%A0.
func percentDecoded(s string) (r rune, n int) {
	var raw [utf8.UTFMax]byte
	for k := 0; k < utf8.UTFMax && strings.HasPrefix(s[3*k:], "%") && len(s) >= 3*k+3; k++ {
		code := hexadecimal(s[3*k+1 : 3*k+3])
		if code < utf8.RuneSelf {
			break
		}

		raw[k] = byte(code)
		if r, size := utf8.DecodeRune(raw[:k+1]); r != utf8.RuneError && size == k+1 {
			return r, 3*k + 3
		}
	}

	return 0, 0
}

// hexadecimal is a number of hexadecimal digits, or -1.
func hexadecimal(digits string) rune {
	n, err := strconv.ParseUint(digits, 16, 20)
	if err != nil {
		return -1
	}

	return rune(n)
}

// asciiOf is what a reader takes a character for; known is false for all that is text of
// its own.
func asciiOf(r rune) (instead string, known bool) {
	switch {
	case r < utf8.RuneSelf:
		return "", false
	case isInvisible(r):
		return "", true
	case unicode.IsSpace(r): // also between lines: such a text is one line elsewhere
		return " ", true
	case '\uff01' <= r && r <= '\uff5e': // wide forms, ！ to ～
		return string(r - 0xfee0), true
	case strings.ContainsRune("“”„‟«»〝〞〟「」『』", r):
		return `"`, true
	case strings.ContainsRune("‘’‚‛‹›′", r):
		return "'", true
	case strings.ContainsRune("→⇒⟶⟹➔➙➛➜➝➞➡➤↦⇨⇾⟼⮕", r):
		return "->", true
	case r == '≔', r == '﹦':
		return "=", true
	case r == '﹕', r == '∶', r == '꞉':
		return ":", true
	}

	return "", false
}

// isInvisible reports whether nothing is seen of a character, not even a space.
func isInvisible(r rune) bool {
	return unicode.Is(unicode.Cf, r) || unicode.Is(unicode.Variation_Selector, r) ||
		r == '\u034f' || r == '\u115f' || r == '\u1160' || r == '\u3164' || r == '\uffa0'
}

// visible is a name without the characters of which nothing is seen.
func visible(name string) string {
	return strings.Map(func(r rune) rune {
		if isInvisible(r) {
			return -1
		}
		return r
	}, name)
}

// withSpaces extends a value without quotes by what follows a space that is not of ASCII:
// such a space can be a part of it.
func withSpaces(s string, at span) span {
	if at.from > 0 && strings.IndexByte("\"'`", s[at.from-1]) >= 0 {
		return at
	}

	r, n := foreign(s, min(at.to, len(s)-1))
	if n > 0 && at.to < len(s) && unicode.IsSpace(r) {
		at.to = orEnd(s, at.to, strings.IndexAny(s[at.to:], " \t\r\n\v\f\"'<>"))
	}

	return at
}
