package redact

import (
	"slices"
	"strings"
)

// value is the span of the value that belongs to the name [i, j) and begins at k.
func value(s string, k, i, j int) span {
	if k >= len(s) {
		return span{}
	}

	if at := prefixed(s, k); quoteAt(s, at).width() > 0 {
		return quotedValue(s, at)
	}

	name := strings.ToLower(plain(s[i:j]))
	switch {
	case brackets(s, k):
		return span{k, bracketed(s, k)}
	case strings.Contains(name, "cookie"):
		return span{k, line(s, k)}
	}

	if n := literal(s[k:]); n > 0 && quoteAt(s, j).width() > 0 && k+n < len(s) && strings.IndexByte(",]}", s[k+n]) >= 0 {
		return span{k, k + n}
	}

	if n := k + len(Hidden); strings.HasPrefix(s[k:], Hidden) && endsQuote(s, n) {
		return span{k, n} // however long the run is in which it stands
	}

	found := blankless(s, k)
	if again := hiddenBefore(s, found); again.to < found.to {
		return again
	}

	if found.from < found.to && s[found.from] == '!' { // a tag of YAML: !!str S
		return span{found.from, max(found.to, value(s, blanks(s, found.to), i, j).to)}
	}

	if word := s[found.from:found.to]; isScheme(word) || strings.EqualFold(word, "token") {
		found.to = blankless(s, found.to).to
	} else if strings.Contains(name, "authorization") && !strings.HasPrefix(word, Hidden) {
		found.to = line(s, k)
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

// endsQuote reports whether a quoted text may end at i.
func endsQuote(s string, i int) bool { return i < len(s) && strings.IndexByte(`"'\`, s[i]) >= 0 }

// prefixed passes what languages write before a quoted text, as b'S', N'S',
// string(1) "S" or Secret('S').
func prefixed(s string, i int) int {
	j := i
	for j < len(s) && j < i+32 && isWord(s[j]) {
		j++
	}

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
	if after := end + q.width(); q.escapes == 0 && !q.coded && after < len(s) && quoteAt(s, after).width() > 0 {
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
		case escapes%(2*q.escapes+2) == 2*q.escapes+1:
		case q.escapes == 0 && k+1 < len(s) && s[k+1] == c:
			k++
		case q.escapes == 0 && k+1 < len(s) && isWord(s[k+1]):
		default:
			return k - min(escapes, q.escapes)
		}
	}

	return len(s)
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
			if level--; level <= 0 {
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

// run looks once at a run of characters without blanks and quotes.
func (t *scanner) run(i int) {
	if i < t.runEnd {
		return
	}

	t.runEnd = orEnd(t.s, i, strings.IndexAny(t.s[i:], " \t\r\n\"'`<>\\"))

	run := t.s[i:t.runEnd]
	t.at, t.network = i+strings.LastIndexByte(run, '@'), -1
	for k := range len(run) {
		if run[k] != '(' {
			continue
		}

		at := len(strings.TrimRight(run[:k], "abcdefghijklmnopqrstuvwxyz0123456789")) - 1
		if at >= 0 && at < k-1 && run[at] == '@' {
			t.network = i + at
		}
	}
}

// credentials are what stands before the host of an address. A password may hold
// what should have been escaped.
func (t *scanner) credentials(i int) span {
	t.run(i)

	authority, end := t.s[i:max(i, t.runEnd)], t.runEnd
	if n := strings.IndexAny(authority, "/?#"); n >= 0 {
		authority, end = authority[:n], i+n
	}

	at := strings.LastIndexByte(authority, '@')

	_, port, password := strings.Cut(authority, ":")
	number := port != "" && strings.Trim(port, "0123456789") == ""
	switch {
	case at > 0:
		return span{i, i + at}
	case at < 0 && password && t.at > end && !(number && t.web(i)):
		return span{i, t.at}
	case at < 0 && password && t.runEnd == len(t.s) && !number && port != "" && authority[0] != '[': // it is cut off
		return span{i, t.runEnd}
	}

	return span{}
}

// web reports whether the address whose host begins at i is one of the web, in
// which an @ in the path is nothing special.
func (t *scanner) web(i int) bool {
	scheme := strings.ToLower(t.s[max(0, i-8) : i-3])
	return slices.ContainsFunc([]string{"http", "https", "ws", "wss"}, func(known string) bool { return strings.HasSuffix(scheme, known) })
}

// privateKey is a private key as PEM that begins at i.
func privateKey(s string, i int) span {
	head := s[i:min(i+64, len(s))]
	if !strings.Contains(head, "PRIVATE KEY-----") && !strings.Contains(head, "PRIVATE KEY BLOCK-----") {
		return span{}
	}

	n := strings.Index(s[i:], "-----END")
	if n < 0 {
		return span{i, len(s)}
	}

	end := i + n + len("-----END")
	closed := strings.Index(s[end:], "-----")
	if closed < 0 {
		return span{i, len(s)}
	}

	return span{i, blankless(s, end+closed).to}
}

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
func (t *scanner) isElement(before span, i, j int) bool {
	if i > 0 && t.s[i-1] != '<' && t.s[i-1] != ':' {
		open, _ := escapedElement(t.s, i)
		return open != ""
	}

	if j >= len(t.s) || strings.IndexByte("> \t\r\n/", t.s[j]) < 0 {
		return false
	}

	if i > 0 && t.s[i-1] == ':' && before.to == i-1 {
		i = before.from
	}

	return i > 0 && t.s[i-1] == '<'
}

// element is what an element holds whose name is [i, j): all up to its end; the
// attributes of one that is empty; and of one that never ends what follows it,
// see unclosed.
func (t *scanner) element(i, j int) span {
	s := t.s
	if mark, end := escapedElement(s, i); mark != "" {
		const most = 256 // of its attributes

		n := strings.Index(s[j:min(j+most, len(s))], end)
		if n < 0 {
			return span{}
		}

		from := j + n + len(end)
		if closed := strings.Index(s[from:min(from+4<<10, len(s))], mark+"/"+s[i:j]); closed >= 0 {
			return span{from, from + closed}
		}

		to := orEnd(s, from, strings.Index(s[from:], mark))

		return span{from, from + line(s[from:to], 0)}
	}

	open := strings.IndexAny(s[j:], "<>")
	if open < 0 && strings.Contains(s[j:], "=") { // it is cut off
		return span{j, len(s)}
	}

	if open < 0 || s[j+open] == '<' {
		return span{}
	}

	open += j
	if s[open-1] == '/' {
		return span{min(j+1, open-1), open - 1}
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
			if level--; level == 0 {
				return i
			}
		case end > 0 && s[i+end-1] != '/' && s[i+1] != '!' && s[i+1] != '?':
			level++
		}

		if end < 0 {
			return len(s)
		}

		i += end
	}
}
