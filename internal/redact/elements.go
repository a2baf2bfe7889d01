package redact

import (
	"strings"
)

// escapedMarks are the ways in which < and > are written where they may not stand.
var escapedMarks = [...][2]string{{"&lt;", "&gt;"}, {`\u003c`, `\u003e`}, {`\u003C`, `\u003E`}, {"%3C", "%3E"}, {"%3c", "%3e"}}

// escapedElement is what stands for < and > when an element begins so before i.
func escapedElement(s string, i int) (open, end string) {
	for _, mark := range escapedMarks {
		if strings.HasSuffix(s[:i], mark[0]) {
			return mark[0], mark[1]
		}
	}

	return "", ""
}

// isElement reports whether the word is the name of an element that begins here,
// <word, <prefix:word or &lt;word.
func (t *scanner) isElement(before, word span) bool {
	begin := word.from
	if begin > 0 && t.s[begin-1] != '<' && t.s[begin-1] != ':' {
		open, _ := escapedElement(t.s, begin)
		return open != ""
	}

	if word.to >= len(t.s) || strings.IndexByte("> \t\r\n/", t.s[word.to]) < 0 {
		return false
	}

	if begin > 0 && t.s[begin-1] == ':' && before.to == begin-1 {
		begin = before.from
	}

	return begin > 0 && t.s[begin-1] == '<'
}

// element is what an element holds with a name: all up to its end; the
// attributes of one that is empty; and of one that never ends what follows it,
// see unclosed.
func (t *scanner) element(name span) span {
	s := t.s
	if mark, end := escapedElement(s, name.from); mark != "" {
		const most = 256 // of its attributes

		n := strings.Index(s[name.to:min(name.to+most, len(s))], end)
		if n < 0 {
			return span{}
		}

		from := name.to + n + len(end)
		if closed := strings.Index(s[from:min(from+4<<10, len(s))], mark+"/"+name.in(s)); closed >= 0 {
			return span{from, from + closed}
		}

		to := orEnd(s, from, strings.Index(s[from:], mark))

		return span{from, from + line(s[from:to], 0)}
	}

	open := strings.IndexAny(s[name.to:], "<>")
	if open < 0 && strings.Contains(s[name.to:], "=") { // it is cut off
		return span{name.to, len(s)}
	}

	if open < 0 || s[name.to+open] == '<' {
		return span{}
	}

	open += name.to
	if s[open-1] == '/' {
		return span{min(name.to+1, open-1), open - 1}
	}

	if t.closings < 0 {
		t.closings = max(0, strings.LastIndex(s, "</"))
	}

	from := open + 1
	if t.closings < from {
		return unclosed(s, from)
	}

	return span{from, inner(s, from)}
}

// unclosed is what an element holds that never ends and whose content begins at
// i: the rest of the line, unless a blank comes first, as after a placeholder.
func unclosed(s string, i int) span {
	const maxInside = 8 // elements whose names are passed
	for range maxInside {
		if !strings.HasPrefix(s[i:], "<") || strings.HasPrefix(s[i:], "<!") {
			break
		}

		n := strings.IndexByte(s[i:], '>')
		if n < 0 {
			return span{}
		}

		i += n + 1
	}

	if i == len(s) || strings.IndexByte(" \t\r\n", s[i]) >= 0 {
		return span{}
	}

	return span{i, line(s, i)}
}

// inner is where the element ends whose content begins at i.
func inner(s string, i int) int {
	level := 1
	for {
		n := strings.IndexByte(s[i:], '<')
		if n < 0 {
			return len(s)
		}

		i += n
		end := strings.IndexByte(s[i:], '>')
		switch {
		case strings.HasPrefix(s[i:], "<![CDATA["):
			end = strings.Index(s[i:], "]]>")
		case strings.HasPrefix(s[i:], "</"):
			level--
			if level == 0 {
				return i
			}
		// <br/>, <!-- … --> and <?xml … ?> open nothing.
		case end > 0 && s[i+end-1] != '/' && s[i+1] != '!' && s[i+1] != '?':
			level++
		}

		if end < 0 {
			return len(s)
		}

		i += end
	}
}
