package redact

import "strings"

// maxMarkup is how far around a name its cell is looked at, in bytes.
const maxMarkup = 256

// beside is the content of the cell beside that of a name, in a table of Markdown,
// | password | S |, or of HTML, <td>password</td><td>S</td>.
func (t *scanner) beside(before, name span) span {
	if !t.tables {
		return span{}
	}

	s := t.s
	lead, rest := emphasized(s[max(0, name.from-maxMarkup):name.from]), cellEnd(s, name.to)
	switch {
	case strings.HasSuffix(lead, "|") && strings.HasPrefix(s[rest:], "|"):
		if t.hides(before, name) && !isHeader(s, rest) {
			return trimmed(s, span{rest + 1, orEnd(s, rest+1, strings.IndexAny(s[rest+1:], "|\n"))})
		}
	case strings.HasSuffix(lead, ">") && strings.HasPrefix(s[rest:], "</"):
		if from := nextCell(s, rest); from > 0 && t.hides(before, name) {
			return trimmed(s, span{from, cellText(s, from)})
		}
	}

	return span{}
}

// emphasized is what stands before the marks around a word.
func emphasized(lead string) string { return strings.TrimRight(lead, " \t*_`") }

// cellEnd is where the marks behind a word end.
func cellEnd(s string, j int) int {
	end := min(j+maxMarkup, len(s))
	return end - len(strings.TrimLeft(s[j:end], " \t*_`"))
}

// isHeader reports whether the row of the cell that ends at k is the header of a table: the
// next line is made of dashes.
func isHeader(s string, k int) bool {
	_, below, _ := strings.Cut(s[k:min(k+16*maxMarkup, len(s))], "\n")
	line, _, _ := strings.Cut(below, "\n")
	return strings.Contains(line, "--") && strings.Trim(line, "|-: \t\r") == ""
}

// nextCell is where the content of the next cell of HTML begins, or 0: past the end of this
// one and of what is in it.
func nextCell(s string, k int) int {
	end := min(k+maxMarkup, len(s))
	at := k
	for at < end {
		at += len(s[at:end]) - len(strings.TrimLeft(s[at:end], " \t\r\n"))
		to := strings.IndexByte(s[at:end], '>')
		if to < 0 || s[at] != '<' {
			return 0
		}

		tag := s[at : at+to+1]
		at += to + 1
		if strings.HasPrefix(tag, "<td") || strings.HasPrefix(tag, "<th") {
			return at
		}

		if strings.HasPrefix(tag, "</tr") || strings.HasPrefix(tag, "</table") {
			return 0
		}
	}

	return 0
}

// cellText is where the content of a cell of HTML ends: before the tag that ends it, or that
// begins the next one.
func cellText(s string, from int) int {
	at := from
	for {
		to := strings.IndexByte(s[at:], '<')
		if to < 0 {
			return len(s)
		}

		at += to
		for _, tag := range [...]string{"</td", "</th", "<td", "<th", "</tr", "<tr", "</table"} {
			if strings.HasPrefix(s[at:], tag) {
				return at
			}
		}

		at++
	}
}

// trimmed is a span without the blanks around it.
func trimmed(s string, at span) span {
	text := at.in(s)
	at.from += len(text) - len(strings.TrimLeft(text, " \t\r\n"))
	return span{at.from, at.from + len(strings.TrimSpace(text))}
}
