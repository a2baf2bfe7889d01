package redact

import (
	"strings"
)

// Text hides the secrets of a text, as of an error or a trace: key=value,
// "key": "value", key: value, --key value, <key>value<, credentials of HTTP and
// those in addresses. A value without quotes ends at the next blank.
func (r *Redactor) Text(s string) string {
	shown, _ := r.hide(s, Hidden)
	return shown
}

// hide puts a token in the place of each secret, and counts them.
func (r *Redactor) hide(s, token string) (shown string, n int) {
	if !strings.ContainsAny(s, "=:> ") {
		return s, 0
	}
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); {
		start, end, next := r.secret(s, i)
		if start < end {
			b.WriteString(s[from:start])
			b.WriteString(token)
			from = end
			n++
		}
		i = next
	}
	if n == 0 {
		return s, 0
	}
	b.WriteString(s[from:])
	return b.String(), n
}

// secret looks at i for a secret that a word or an address announces. It
// returns where that is, nowhere when start is end, and where to look next.
func (r *Redactor) secret(s string, i int) (start, end, next int) {
	if strings.HasPrefix(s[i:], "://") {
		return credentials(s, i+3)
	}
	if !isWord(s[i]) {
		return 0, 0, i + 1
	}
	j := i
	for j < len(s) && isWord(s[j]) {
		j++
	}
	word := s[i:j]
	if isScheme(word) {
		if start, end = blankless(s, j); end-start >= 16 || strings.ContainsAny(s[start:end], "0123456789") {
			return start, end, end
		}
		return 0, 0, j
	}
	if !r.hides([]byte(word)) {
		return 0, 0, j
	}
	k, announced := separator(s, i, j)
	if !announced {
		return 0, 0, j
	}
	start, end = value(s, k, word)
	return start, end, max(j, end)
}

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isScheme reports whether what follows the word are credentials of HTTP.
func isScheme(word string) bool {
	return strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
}

// separator finds what stands between a key and its value, and returns the
// index after it.
func separator(s string, i, j int) (k int, ok bool) {
	k = j
	for k < len(s) && strings.IndexByte("\\\"'`", s[k]) >= 0 {
		k++
	}
	if k == j && k < len(s) && s[k] == '>' && i > 0 && s[i-1] == '<' {
		return k + 1, true
	}
	if k < len(s) && s[k] == ']' && i > 0 && (s[i-1] == '[' || k > j) { // a form's field[password]
		k++
	}
	sep := blanks(s, k)
	if sep < len(s) && (s[sep] == '=' || s[sep] == ':') {
		for sep < len(s) && strings.IndexByte("=:>", s[sep]) >= 0 {
			sep++
		}
		return blanks(s, sep), true
	}
	return sep, strings.HasPrefix(s[i:], "--") && sep > k && k == j
}

func blanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// value is where the value of a key lies that begins at i.
func value(s string, i int, key string) (start, end int) {
	if i == len(s) {
		return i, i
	}
	k := i
	for k < len(s) && s[k] == '\\' {
		k++
	}
	switch {
	case k < len(s) && strings.IndexByte("\"'`", s[k]) >= 0:
		return k + 1, closing(s, k+1, s[i:k+1])
	case s[i] == '{' || s[i] == '[':
		return i, bracketed(s, i)
	case strings.Contains(normal(key), "cookie"):
		return i, line(s, i)
	}
	start, end = blankless(s, i)
	if word := s[start:end]; isScheme(word) || strings.EqualFold(word, "token") {
		_, end = blankless(s, end)
	} else if strings.Contains(normal(key), "authorization") && !strings.HasPrefix(word, Hidden) {
		end = line(s, i)
	}
	return start, end
}

// closing finds the end of a quoted value that begins at i: before the same
// quote again, or at the end of the line.
func closing(s string, i int, quote string) int {
	for k := i; k < len(s); k++ {
		if strings.HasPrefix(s[k:], quote) {
			return k
		}
		if len(quote) == 1 && s[k] == '\\' {
			k++
		}
	}
	return line(s, i)
}

// bracketed finds the end of a value in brackets that begins at i, or of the
// text when they are never closed.
func bracketed(s string, i int) int {
	level := 0
	for k := i; k < len(s); k++ {
		switch s[k] {
		case '{', '[':
			level++
		case '}', ']':
			if level--; level == 0 {
				return k + 1
			}
		}
	}
	return len(s)
}

// line is the end of the line.
func line(s string, i int) int {
	if n := strings.IndexAny(s[i:], "\r\n"); n >= 0 {
		return i + n
	}
	return len(s)
}

// blankless is where the next run of characters lies that can be a value
// without quotes.
func blankless(s string, i int) (start, end int) {
	start = blanks(s, i)
	end = start
	for end < len(s) && strings.IndexByte(" \t\r\n\"'`,;&<>)]}|\\", s[end]) < 0 {
		end++
	}
	return start, end
}

// credentials are what stands before the host of an address.
func credentials(s string, i int) (start, end, next int) {
	stop := i
	for stop < len(s) && strings.IndexByte(" \t\r\n\"'`<>/?#\\", s[stop]) < 0 {
		stop++
	}
	if at := strings.LastIndexByte(s[i:stop], '@'); at > 0 {
		return i, i + at, i + at
	}
	return i, i, i
}
