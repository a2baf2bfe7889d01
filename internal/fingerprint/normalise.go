package fingerprint

import (
	"strings"
	"unicode/utf8"
)

// maxInput is how much of a message is read.
const maxInput = 1000

// Normalise returns a message with everything that differs from job to job
// replaced by placeholders, on one line.
func Normalise(message string) string {
	s := clip(message, maxInput)
	if len(s) < len(message) { // the last word may be cut: it would differ
		s = s[:strings.LastIndexAny(s, " \n\t")+1] + "…"
	}

	s = withoutStatement(s)
	n := scanner{in: s, out: make([]byte, 0, len(s)+64), close: -1}
	n.values, n.named = schemaNames(s)

	return clip(n.all(), maxMessage)
}

// appended are the marks with which databases and the libraries before them begin
// what follows an error: details with values, the statement, its parameters.
var appended = [...]string{
	"\nDETAIL:", "\nHINT:", "\nCONTEXT:", "\nWHERE:",
	"\n  Detail:", "\n  Hint:", "\n  Where:", "[SQL: ", " (Connection: ", " (SQL: ", "\nThe SQL being executed was: ",
}

// withoutStatement is a message up to the first of those marks.
func withoutStatement(s string) string {
	for _, mark := range appended {
		if i := strings.Index(s, mark); i > 0 {
			s = s[:i]
		}
	}

	return s
}

// scanner reads a message once, from its beginning to its end.
type scanner struct {
	in    string
	pos   int
	out   []byte
	close int // where the quote ends that is being read like any other text
	tried int // how many brackets were read as objects

	named  bool // quotes hold names of the schema of a database
	values int  // but for so many of the next
}

// all reads the whole message.
func (n *scanner) all() string {
	for n.pos < len(n.in) {
		n.step()

		// A value that is too long to be read whole can end within a character.
		for n.pos < len(n.in) && !utf8.RuneStart(n.in[n.pos]) {
			n.pos++
		}
	}

	return strings.TrimSpace(string(n.out))
}

// step takes over the next thing of the message, or what stands for it.
func (n *scanner) step() {
	rest := n.in[n.pos:]
	if c := rest[0]; c <= ' ' || c == 0x7f {
		n.pos++
		if len(n.out) > 0 && n.out[len(n.out)-1] != ' ' {
			n.out = append(n.out, ' ')
		}

		return
	}

	if length := foreignQuote(rest); length > 0 { // before the words: its bytes are those of letters
		n.foreignQuote(length)
		return
	}

	if strings.IndexByte("{[(<", rest[0]) >= 0 && n.object() {
		return
	}

	if (n.pos == 0 || !isWord(n.in[n.pos-1])) && n.value() {
		return
	}

	if !isWord(rest[0]) {
		n.keep(1)
		return
	}

	n.word(untilQuote(rest))
}

// value takes over what begins here and is more than a word; false: it is none.
func (n *scanner) value() bool {
	// Codes tell errors apart, so they stay as they are.
	if length := codeLength(n.in, n.pos); length > 0 {
		n.keep(length)
		return true
	}

	if length := quoted(n.in, n.pos); length > 0 && n.pos != n.close {
		n.quote(length)
		return true
	}

	for _, m := range matchers {
		if length := m.match(n.in, n.pos); length > 0 {
			n.replace(length, m.as)
			return true
		}
	}

	return false
}

// quote takes over a text in quotes: a name, a sentence that is read on, or else
// a value.
func (n *scanner) quote(length int) {
	inside, end := n.in[n.pos+1:n.pos+length-1], n.pos+length
	switch {
	case isMethod(inside) && isMethodBefore(n.in[:n.pos]):
		n.pos = end
		n.out = append(append(append(n.out, '\''), inside...), '\'')
	// A name stays, but for the numbers and ids in it.
	case isName(inside) && (n.schemaName() || namedBefore(n.in[:n.pos]) || !strings.Contains(inside, ".") && namedAfter(n.in[end:])):
		n.pos++
		n.out = append(n.out, '\'')
		for n.pos < end-1 {
			if length := wordLength(n.in[n.pos : end-1]); length > 0 {
				n.word(length)
			} else {
				n.keep(1)
			}
		}

		n.pos = end
		n.out = append(n.out, '\'')
	// Only the quote is taken over here, and the sentence behind it is read on.
	case tellsError(inside):
		n.close = end - 1
		n.keep(1)
	default:
		n.replace(length, text)
	}
}

// foreignQuote takes over a text in quotes that are not ASCII: a name that a database
// says, or else a value.
func (n *scanner) foreignQuote(length int) {
	inside := strings.Trim(n.in[n.pos:n.pos+length], "«»„“”‘’「」『』 \u00a0\u202f")
	if isName(inside) && n.schemaName() {
		n.out = append(append(append(n.out, '\''), inside...), '\'')
		n.pos += length
		return
	}

	n.replace(length, text)
}

// schemaName reports whether the quote that was reached holds a name of the schema of a
// database, which says so.
func (n *scanner) schemaName() bool {
	if n.values > 0 {
		n.values--
		return false
	}

	return n.named
}

func (n *scanner) keep(length int) {
	n.out = append(n.out, n.in[n.pos:n.pos+length]...)
	n.pos += length
}

// replace writes a placeholder, and one only for a list of such values: lists
// differ in their lengths.
func (n *scanner) replace(length int, as string) {
	n.pos += length
	end := string(n.out[max(0, len(n.out)-len(as)-2):])
	for _, separator := range [...]string{", ", ",", " "} {
		if strings.HasSuffix(end, as+separator) {
			n.out = n.out[:len(n.out)-len(separator)]
			return
		}
	}

	n.out = append(n.out, as...)
}

// word takes over a word: ids as a whole, and of any other the letters, because
// the digits of "user42" and "attempt_3" differ.
func (n *scanner) word(length int) {
	if n.literal(n.in[n.pos : n.pos+length]) {
		n.replace(length, text)
		return
	}

	end := n.pos + length
	for n.pos < end {
		part := n.in[n.pos:end]

		// attempt_3 is read in three parts: "attempt", "_" and "3".
		if i := strings.IndexByte(part, '_'); i >= 0 {
			part = part[:max(1, i)]
		}

		if isID(part) {
			n.replace(len(part), id)
			continue
		}

		digits := run(part, isDigit)
		if digits > 0 {
			n.replace(digits, number)
			continue
		}

		n.keep(run(part, func(c byte) bool { return !isDigit(c) }))
	}
}

// isID reports whether a word is made by chance: its letters and digits, and
// its cases, change too often for a name, or it is digits for the most part.
func isID(s string) bool {
	if len(s) < 10 {
		return false
	}

	switches, digits := 0, 0
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}

		if isDigit(s[i]) {
			digits++
		}

		if i == 0 {
			continue
		}

		before, now := kind(s[i-1]), kind(s[i])
		if before != now && !(before == 'A' && now == 'a') { // as a name begins
			switches++
		}
	}

	return switches*3 >= len(s) || digits < len(s) && digits*2 >= len(s)
}

// kind is '0' for a digit, 'A' for an upper-case letter, 'a' for anything else.
func kind(c byte) byte {
	switch {
	case isDigit(c):
		return '0'
	case 'A' <= c && c <= 'Z':
		return 'A'
	}

	return 'a'
}
