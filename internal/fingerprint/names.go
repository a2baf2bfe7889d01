package fingerprint

import (
	"slices"
	"strings"
)

// isName reports whether a text can be a name of the code or of the schema, for
// example users.email or getTotal(). A value of capitals alone is none: it is a code
// that came with the data.
func isName(s string) bool {
	const longest = 100
	return s != "" && len(s) <= longest && (isLetter(s[0]) || s[0] == '_' || s[0] == '$') && strings.ContainsFunc(s, isLower) &&
		run(s, func(c byte) bool { return c < 0x80 && isWord(c) || strings.IndexByte(`$.:\()-`, c) >= 0 }) == len(s)
}

// operators are the methods of Ruby, Scala and Kotlin whose names have no letters.
var operators = strings.Fields("[] []= + - * / % ** == != === =~ !~ < <= > >= <=> << >> & | ^ ~ ! +@ -@ ++ :: ->")

// isMethod reports whether a text can be the name of a method: one that asks or changes
// ends with a mark of its own.
func isMethod(s string) bool {
	return slices.Contains(operators, s) || isName(strings.TrimRight(s, "?!="))
}

func isLower(r rune) bool { return 'a' <= r && r <= 'z' || r == '_' }

// naming are the words before a name, sorted.
var naming = strings.Fields(`argument arguments attribute because class column columns constraint field fields function import
	index interface into invoke key keyerror keys method module named option package parameter placeholder properties property reading
	relation sequence setting table trait type variable`)

// namedBefore reports whether a text ends with a word that a name follows: column "amount".
func namedBefore(s string) bool {
	if strings.HasSuffix(s, "key not found: ") { // of Ruby and Elixir
		return true
	}

	_, found := slices.BinarySearch(naming, strings.ToLower(lastWord(s)))

	return found
}

// isMethodBefore reports whether a text ends with a word that the name of a method follows.
func isMethodBefore(s string) bool {
	word := strings.ToLower(lastWord(s))
	return word == "method" || word == "function" || word == "operator"
}

// namedAfter reports whether a text goes on as it does after a plain name: "user" is null.
func namedAfter(s string) bool {
	return slices.ContainsFunc([]string{" object", " codec", " is null", " is not defined", " is undefined", " is not a function"},
		func(words string) bool { return strings.HasPrefix(s, words) })
}

// lastWord is the word that a text ends with, before spaces and opening marks.
func lastWord(s string) string {
	s = strings.TrimRight(s, " :([=\n\t")
	i := len(s)
	for i > 0 && isWord(s[i-1]) {
		i--
	}

	return s[i:]
}

// troubles are words of sentences that tell of an error.
var troubles = [...]string{
	"error", "exception", "fail", "cannot", "can't", "could not", "couldn't", "doesn't", "does not", "unable", "invalid", "denied",
	"refused", "timeout", "timed out", "exceed", "missing", "unknown", "unexpected", "undefined", "expired", "rejected", "forbidden",
	"unavailable", "duplicate", "deadlock", "violat", "not found", "must be", "is required",
}

// tellsError reports whether a quoted text is no value but the error, or a part of
// it: a sentence, or the status of an HTTP answer.
func tellsError(s string) bool {
	if isStatus(s, 0) {
		return true
	}

	if strings.Count(s, " ") < 2 {
		return false
	}

	s = strings.ToLower(s)

	return slices.ContainsFunc(troubles[:], func(word string) bool { return strings.Contains(s, word) })
}

// quotes are those that are not ASCII: how they begin, and how they can end.
var quotes = [...]struct{ open, close string }{
	{"«", "»"}, {"»", "«"}, {"„", "“”"}, {"“", "”"}, {"‘", "’"}, {"「", "」"}, {"『", "』"},
}

// untilQuote is the length of the word at the beginning of a text, or of what is
// before such a quote: languages that write no spaces join them.
func untilQuote(s string) int {
	length := wordLength(s)
	for i, r := range s[:length] {
		if i > 0 && r >= 0x80 && foreignQuote(s[i:]) > 0 {
			return i
		}
	}

	return length
}

// foreignQuote is the length of a value in such quotes, at the beginning of a text.
func foreignQuote(s string) int {
	if s[0] < 0x80 {
		return 0
	}

	for _, q := range quotes {
		if rest, ok := strings.CutPrefix(s, q.open); ok {
			end := strings.IndexAny(rest[:min(len(rest), maxQuoted)], q.close)
			if end < 0 {
				return 0
			}

			for _, r := range rest[end:] {
				return len(q.open) + end + len(string(r))
			}
		}
	}

	return 0
}

// essence is what a normalised message and others of its cause have in common: which
// kind of value was replaced, how values are joined, and the class or the word
// "error" before a sentence say nothing about the cause.
func essence(message string) string {
	message = withoutClass(withoutTool(untranslated(message)))
	message = strings.ReplaceAll(message, "nil:NilClass", "nil") // as Ruby says it up to 3.3
	message = withoutCall(message)

	out := make([]byte, 0, len(message))

	const value = "‹›"
	i := 0
	for i < len(message) {
		if n := placeholder(message[i:]); n > 0 {
			if start := joined(out, value); start >= 0 {
				out = out[:start]
			}

			out = append(withoutMethod(out), value...)
			i += n
			i += run(message[i:], func(c byte) bool { return c == '=' }) // of base64

			continue
		}

		out = append(out, message[i])
		i++
	}

	return strings.TrimRight(string(out), ".") // one version ends a sentence, another does not
}

// withoutCall is a message of Ruby without the call of its interpreter that failed: "No such
// file or directory @ rb_sysopen - feeds.csv".
func withoutCall(message string) string {
	before, after, ok := strings.Cut(message, " @ ")
	call, rest, dashed := strings.Cut(after, " - ")
	if !ok || !dashed || run(call, func(c byte) bool { return isWord(c) && c < 0x80 }) != len(call) {
		return message
	}

	return before + " - " + rest
}

// withoutTool is a message without the command before the word that calls it an error:
// "psql: error: …", "docker: Error response from daemon: …".
func withoutTool(message string) string {
	tool, rest, ok := strings.Cut(message, ": ")
	isTool := ok && run(tool, func(c byte) bool { return 'a' <= c && c <= 'z' || c == '_' || c == '-' }) == len(tool)
	if !isTool || len(rest) < len("error") || !strings.EqualFold(rest[:len("error")], "error") {
		return message
	}

	return strings.TrimPrefix(rest, "error: ")
}

// placeholder is the length of the placeholder at the beginning of a text.
func placeholder(s string) int {
	if s[0] < 0x80 {
		return 0
	}

	for _, name := range [...]string{text, number, id, uuid, hexa, moment, duration, size, url, host, path, email, ip} {
		if strings.HasPrefix(s, name) {
			return len(name)
		}
	}

	return 0
}

// joined is where the value begins that a text ends with, apart from what joins two
// values to one, as in 12-B/7 and 1, 2; -1: it ends with something else.
func joined(out []byte, value string) int {
	const longest = 2
	glue := 0
	for glue < longest && glue < len(out) && strings.IndexByte("-._:/+=@#~, ", out[len(out)-1-glue]) >= 0 {
		glue++
	}

	if start := len(out) - glue - len(value); start >= 0 && string(out[start:start+len(value)]) == value {
		return start
	}

	return -1
}

// withoutMethod leaves out the method at the end of a text, as Go writes it before
// the URL of a request without an answer: the server is the cause.
func withoutMethod(out []byte) []byte {
	for _, method := range [...]string{"Get ", "Head ", "Post ", "Put ", "Patch ", "Delete "} {
		if start := len(out) - len(method); start >= 0 && string(out[start:]) == method && (start == 0 || !isWord(out[start-1])) {
			return out[:start]
		}
	}

	return out
}

// withoutClass is a sentence without the class of its error.
func withoutClass(message string) string {
	for {
		class, rest, ok := strings.Cut(strings.TrimPrefix(message, "Uncaught "), ": ")
		if !ok || strings.Count(rest, " ") < 2 || !isClass(class) {
			return message
		}

		message = rest
	}
}

// isClass reports whether a text is the name of an error's type, or only says that
// there is an error.
func isClass(s string) bool {
	if strings.Contains(s, " ") {
		return s == "Fatal error"
	}
	return slices.ContainsFunc([]string{"Error", "Exception", "ERROR", "Warning"}, func(end string) bool { return strings.HasSuffix(s, end) })
}
