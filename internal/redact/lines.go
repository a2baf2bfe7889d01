package redact

import "strings"

// below is the value of a name that stands in the lines below it, when
// nothing but a block's indicator (password: |) follows on its own line.
// is reports whether it does.
func (t *scanner) below(begin int, name span) (found span, is bool) {
	s := t.s
	end, block := begin, false

	// The indicator of a block can have more signs: |-, >2.
	if c, n := char(s, begin); c == '|' || c == '>' {
		end, block = begin+n, true
		for end < len(s) && end < begin+n+3 && strings.IndexByte("+-0123456789", s[end]) >= 0 {
			end++
		}

		end = blanks(s, end)
	}

	if n := literalBreak(s, end); n > 0 {
		return t.literalLines(end, name, s[end:end+n], block), true
	}

	if end == len(s) || s[end] != '\r' && s[end] != '\n' {
		return span{}, false
	}

	from := nextLine(s, end)
	if from == len(s) || s[from] == '\r' || s[from] == '\n' { // a second empty line
		return span{}, true
	}

	// The line below is the value, a list or a block of them, or it has nothing to do with the
	// name.
	first := blanks(s, from)
	text := strings.TrimSpace(s[first:line(s, first)])
	word := blankless(s, first)

	seems := word.to < first+len(text) && seemsSecret(word.in(s)) && !isName(text) && !isFrame(text)
	deeper := first-from > indent(s, name.from)
	switch {
	case !block && valueAhead(s, first) && (deeper || !isPart(text) || strings.Contains(s[name.to:begin], "=>") || isQuoted(s, first)):
		return value(s, first, name), true
	case deeper && !block && (isFrame(text) || !seems && weak(plain(name.in(s))) && isProse(text)):
		return span{}, true
	case deeper:
		return span{first, blockEnd(s, from, indent(s, name.from))}, true
	case seems:
		return word, true
	case isPart(text) || isFrame(text):
		return span{}, true
	}

	return span{first, first + len(text)}, true
}

// isProse reports whether a line is a sentence or has a name of its own, and is no
// element of a list.
func isProse(text string) bool {
	return strings.ContainsAny(text, " :=") && !strings.HasPrefix(text, "- ")
}

// nextLine is the beginning of the next line that is not empty, when that is the
// next or the one after it.
func nextLine(s string, i int) int {
	for range 2 {
		i = line(s, i)
		if strings.HasPrefix(s[i:], "\r") {
			i++
		}

		if strings.HasPrefix(s[i:], "\n") {
			i++
		}

		if k := blanks(s, i); k < len(s) && s[k] != '\r' && s[k] != '\n' {
			return i
		}
	}

	return i
}

// indent is how far the line that contains i is indented, as far as that can be
// seen nearby.
func indent(s string, i int) int {
	const nearby = 256
	start := max(0, i-nearby)
	start += strings.LastIndexAny(s[start:i], "\r\n") + 1
	return blanks(s, start) - start
}

// blockEnd is the end of the lines from from on that are indented deeper than so.
func blockEnd(s string, from, indented int) (end int) {
	for from < len(s) {
		end = line(s, from)
		next := end
		for next < len(s) && (s[next] == '\r' || s[next] == '\n') {
			next++
		}

		if blanks(s, next)-next <= indented {
			return end
		}

		from = next
	}

	return end
}

// valueAhead reports whether a value begins at i that shows itself where it ends.
func valueAhead(s string, i int) bool {
	return quoteAt(s, prefixed(s, i)).width() > 0 || brackets(s, i)
}

// isQuoted reports whether a quoted text begins at i that is no name of something.
func isQuoted(s string, i int) bool {
	q := quoteAt(s, i)
	if q.width() == 0 {
		return false
	}

	end := blanks(s, min(closing(s, i+q.width(), q)+q.width(), len(s)))

	return end == len(s) || s[end] != ':' && s[end] != '='
}

// isFrame reports whether a line is one of a trace.
func isFrame(text string) bool {
	for _, begin := range [...]string{"at ", "in ", "from ", "File ", "#", "->", "---"} {
		if strings.HasPrefix(text, begin) {
			return true
		}
	}

	return false
}

// isPart reports whether a line that is indented no deeper than a name is no value
// of it: it has a name of its own, or is a sentence, or only a mark.
func isPart(text string) bool {
	if strings.ContainsAny(text, " \t") || strings.Trim(text, `{}[]()<>,;"'-=*`) == "" || text[0] == '<' || text[0] == '[' {
		return true
	}
	return isName(text)
}

// isName reports whether a line begins with a name before a value.
func isName(text string) bool {
	name := 0
	for name < len(text) && (isWord(text[name]) || text[name] == '.') {
		name++
	}

	rest := strings.TrimRight(text[name:], "=") // as base64 ends

	return name > 0 && rest != "" && (rest[0] == '=' || rest[0] == ':')
}

// literalBreak is the length of the end of a line that is written as \n or \r\n, also
// in strings within one another, or zero.
func literalBreak(s string, i int) int {
	k := i
	for _, char := range "rn" {
		slashes := k
		for slashes < len(s) && slashes < k+maxNested && s[slashes] == '\\' {
			slashes++
		}

		if slashes > k && slashes < len(s) && rune(s[slashes]) == char {
			k = slashes + 1
		} else if char == 'n' {
			return 0
		}
	}

	return k - i
}

// literalLines is the value in the lines below a name in a text of which the ends
// of lines are written as \n: the next line, or of a block, or when that is indented,
// all that follows.
func (t *scanner) literalLines(i int, name span, literal string, block bool) span {
	s := t.s
	start := i

	// The end of the line and empty lines below it are skipped.
	for strings.HasPrefix(s[i:], literal) {
		start = i + len(literal)
		i = blanks(s, start)
	}

	// A line that is indented belongs to the name above it, and so does all that follows.
	deeper := i > start
	if !block && i < len(s) && valueAhead(s, i) {
		return value(s, i, name)
	}

	if i >= t.rowEnd {
		t.rowEnd = orEnd(s, i, strings.IndexAny(s[i:], "\r\n\""))
	}

	end := max(i, t.rowEnd)
	if next := strings.Index(s[i:end], literal); next >= 0 && !block && !deeper {
		end = i + next
	}

	text := s[i:end]
	if !block && (isFrame(text) || !deeper && isPart(text) && strings.ContainsAny(text, ":= ")) {
		return span{}
	}

	return span{i, end}
}

// restOfKey is what stands before the end of a private key whose beginning is
// not there: lines of base64.
func (t *scanner) restOfKey(i int) span {
	s := t.s

	// -----END RSA PRIVATE KEY-----
	if !strings.Contains(s[i:min(i+48, len(s))], "PRIVATE KEY") {
		return span{}
	}

	// The key goes back no further than to what was found before, or to the end of another key.
	floor := 0
	if n := len(t.found); n > 0 {
		floor = t.found[n-1].to
	}

	floor = max(floor, t.keyEnd)
	t.keyEnd = i

	from := i
	for from > floor {
		text := strings.TrimRight(s[floor:from], "\r\n")

		// A line can also end with \n written as two characters, as in a string of JSON.
		text = strings.TrimSuffix(strings.TrimSuffix(text, `\n`), `\r`)
		start := strings.LastIndexAny(text, "\r\n") + 1
		if literal := strings.LastIndex(text[start:], `\n`); literal >= 0 {
			start += literal + len(`\n`)
		}

		// The first line upwards that is not base64 is no part of the key.
		body := strings.TrimSpace(text[start:])
		if len(text) == 0 || !isBase64(body) {
			break
		}

		from = floor + start
	}

	return span{from, i}
}

func isBase64(text string) bool {
	for i := range len(text) {
		if c := text[i]; !isWord(c) && c != '+' && c != '/' && c != '=' {
			return false
		}
	}

	return text != ""
}
