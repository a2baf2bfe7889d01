package redact

import (
	"strings"
)

// separator finds what stands between the name [i, j) and its value, and returns
// where that begins.
func separator(s string, i, j int) (k int, ok bool) {
	if j+1 < len(s) && s[j] == ' ' && isWord(s[j+1]) && s[i] != '-' { // as most words of a sentence
		return j, false
	}

	quoted, closed, named := false, true, false // closed: the name, or an index behind it, ended there
	k = j
	for {
		c, n := char(s, k)
		if c == '\\' && literalBreak(s, k) > 0 {
			break // the end of a line
		} else if c == '\\' || c == '"' || c == '\'' || c == '`' {
			quoted = true
		} else if c == '[' && closed {
			var word bool
			if n, word = index(s, k); n == 0 {
				break
			}

			k, named = k+n, named || word

			continue
		} else if c != ']' && c != '*' && c != '_' && // of a form's field[password], of Markdown's **password**
			!(c == ')' && i > 0 && s[i-1] == '(') { // of Key (password)=(S)
			break
		}

		k, closed = k+n, c == ']'
	}

	sep := blanks(s, afterVisibility(s, k))
	c, n := char(s, sep)
	switch {
	case named && c != '=': // children[password].children[first]: it is too short
		return k, false
	case c == '=' || c == ':':
		for c == '=' || c == ':' || c == '>' {
			sep += n
			c, n = char(s, sep)
		}

		return blanks(s, afterEmphasis(s, i, j, sep)), true
	case quoted && c == ',' && strings.Contains(s[max(0, i-4):i], "("): // a pair: ('password', 'S')
		return blanks(s, sep+n), true
	case quoted && c == ',': // in a list of names and values: ['Cookie', 'S']
		k = blanks(s, sep+n)
		q := quoteAt(s, k)
		from := k + q.width()
		to := orEnd(s, from, strings.IndexAny(s[from:min(from+256, len(s))], q.raw+"\n"))

		return k, q.width() > 0 && seemsSecret(s[from:min(to, from+256)])
	case quoted && c == ';': // a text that PHP serialized: s:8:"password";s:1:"S"
		return serialized(s, sep+n)
	}

	return sep, sep > k && k == j && s[i] == '-' && (j-i > 2 && s[i+1] == '-' || j-i > 4 && i > 0 && s[i-1] == ' ')
}

// afterEmphasis passes the marks of Markdown at k that began before the name
// [i, j): **password:** S.
func afterEmphasis(s string, i, j, k int) int {
	end := k
	for end < len(s) && end < k+3 && (s[end] == '*' || s[end] == '_') {
		end++
	}

	if marks := s[k:end]; strings.HasPrefix(s[i:j], marks) || strings.HasSuffix(strings.TrimRight(s[:i], "\"'`"), marks) {
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

	if inside := s[k : k+end]; strings.HasSuffix(inside, ":protected") || strings.HasSuffix(inside, ":private") {
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
