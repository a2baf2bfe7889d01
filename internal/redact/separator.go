package redact

import (
	"strings"
)

// separator finds what stands between a name and its value, and returns
// where that begins.
func separator(s string, name span) (begin int, ok bool) {
	if name.to+1 < len(s) && s[name.to] == ' ' && isWord(s[name.to+1]) && s[name.from] != '-' { // as most words of a sentence
		return name.to, false
	}

	quoted, named := false, false

	closed := true // the name, or an index behind it, ended there
	begin = name.to
	for {
		c, n := char(s, begin)
		if c == '\\' && literalBreak(s, begin) > 0 {
			break // the end of a line
		} else if c == '\\' || c == '"' || c == '\'' || c == '`' {
			quoted = true
		} else if c == '[' && closed {
			length, word := index(s, begin)
			if length == 0 {
				break
			}

			begin += length
			named = named || word

			continue
		} else if c != ']' && c != '*' && c != '_' && // of a form's field[password], of Markdown's **password**
			!(c == ')' && name.from > 0 && s[name.from-1] == '(') { // of Key (password)=(S)
			break
		}

		begin, closed = begin+n, c == ']'
	}

	sep := blanks(s, afterVisibility(s, begin))
	c, n := char(s, sep)
	switch {
	case named && c != '=': // children[password].children[first]: it is too short
		return begin, false
	case c == '=' || c == ':':
		for c == '=' || c == ':' || c == '>' {
			sep += n
			c, n = char(s, sep)
		}

		return blanks(s, afterEmphasis(s, name, sep)), true
	case quoted && c == ',' && strings.Contains(s[max(0, name.from-4):name.from], "("): // a pair: ('password', 'S')
		return blanks(s, sep+n), true
	case quoted && c == ',': // in a list of names and values: ['Cookie', 'S']
		begin = blanks(s, sep+n)
		q := quoteAt(s, begin)
		from := begin + q.width()
		to := orEnd(s, from, strings.IndexAny(s[from:min(from+256, len(s))], q.raw+"\n"))

		return begin, q.width() > 0 && seemsSecret(s[from:min(to, from+256)])
	case quoted && c == ';': // a text that PHP serialized: s:8:"password";s:1:"S"
		return serialized(s, sep+n)
	}

	isOption := s[name.from] == '-' &&
		(name.len() > 2 && s[name.from+1] == '-' || name.len() > 4 && name.from > 0 && s[name.from-1] == ' ')

	return sep, sep > begin && begin == name.to && isOption
}

// afterEmphasis passes the marks of Markdown at k that began before a
// name: **password:** S.
func afterEmphasis(s string, name span, k int) int {
	end := k
	for end < len(s) && end < k+3 && (s[end] == '*' || s[end] == '_') {
		end++
	}

	marks := s[k:end]
	if strings.HasPrefix(name.in(s), marks) || strings.HasSuffix(strings.TrimRight(s[:name.from], "\"'`"), marks) {
		return end
	}

	return k
}

// index is the length of [], [0] or [first] at k, as forms have it behind a name, or zero.
// word says that there is more than digits in it.
func index(s string, k int) (n int, word bool) {
	i := k
	for i < len(s) && i < k+64 {
		c, n := char(s, i)
		i += n
		switch {
		case c == ']':
			return i - k, word
		case c == '[' && i == k+n || '0' <= c && c <= '9':
		case isWord(c):
			word = true
		default:
			return 0, false
		}
	}

	return 0, false
}

// afterVisibility passes what PHP writes after the name of a property:
// [password:protected] => S, ["password":"User":private]=>.
func afterVisibility(s string, k int) int {
	if k == len(s) || s[k] != ':' {
		return k
	}

	end := strings.IndexByte(s[k:min(k+128, len(s))], ']')
	if end < 0 {
		return k
	}

	inside := s[k : k+end]
	if strings.HasSuffix(inside, ":protected") || strings.HasSuffix(inside, ":private") {
		return k + end + 1
	}

	return k
}

// serialized finds the value after s:9: and the like.
func serialized(s string, i int) (k int, ok bool) {
	if !strings.HasPrefix(s[i:], "s:") {
		return i, false
	}

	for k = i + 2; k < len(s) && '0' <= s[k] && s[k] <= '9'; k++ {
	}

	return k + 1, k < len(s) && s[k] == ':'
}
