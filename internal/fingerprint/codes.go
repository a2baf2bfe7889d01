package fingerprint

import (
	"strings"
)

// codes are the words before the number of an error: that is the cause, not a value.
var codes = [...]string{"exit status", "exit code", "errno"}

// codeLength is a status of HTTP, a state of SQL or the number of an error.
func codeLength(s string, from int) int {
	if isStatus(s, from) {
		return len("503")
	}

	if n := sqlStateLength(s, from); n > 0 {
		return n
	}

	const longest = 5
	n := run(s[from:], isDigit)
	if n == 0 || n > longest || isWord(at(s, from+n)) {
		return 0
	}

	if ofPDO(s[:from]) {
		return n
	}

	// Any other number is a code only behind a word that says so.
	before := strings.ToLower(strings.TrimRight(s[max(0, from-16):from], " :=[("))
	for _, word := range codes {
		if strings.HasSuffix(before, word) {
			return n
		}
	}

	return 0
}

// ofPDO reports whether a text ends as PDO does before the number of an error: with the
// state, and what it calls such states.
func ofPDO(before string) bool {
	const longest = 80
	before, colon := strings.CutSuffix(before, ": ")
	i := strings.LastIndex(before, "SQLSTATE[")
	return colon && i >= 0 && len(before)-i < longest && strings.Count(before[i:], ": ") == 1
}

// sqlStates are the spellings of the name before a state of SQL, in small letters.
var sqlStates = [...]string{"sqlstate", "sql state", "sql_state"}

// sqlStateLength is a state of SQL after its name, with the quotes around it if there
// are any: five upper-case letters and digits, for example HY000.
func sqlStateLength(s string, from int) int {
	const length = 5

	begin, end := from, byte(0)
	if s[from] == '"' || s[from] == '\'' {
		begin, end = from+1, s[from]
	}

	n := run(s[begin:], func(c byte) bool { return isDigit(c) || 'A' <= c && c <= 'Z' })
	after := at(s, begin+n)
	if n != length || !strings.ContainsAny(s[begin:begin+n], "0123456789") || end != 0 && after != end || isWord(after) {
		return 0
	}

	before := strings.ToLower(strings.TrimRight(s[max(0, from-16):from], ` :=[("'`))
	for _, name := range sqlStates {
		if strings.HasSuffix(before, name) {
			return n + 2*(begin-from)
		}
	}

	return 0
}

// isStatus reports whether a number is the status of an HTTP answer that
// failed: it is named so, or followed by its words.
func isStatus(s string, from int) bool {
	if n := run(s[from:], isDigit); n != 3 || s[from] != '4' && s[from] != '5' || isWord(at(s, from+3)) {
		return false
	}

	if at(s, from+3) == ' ' && 'A' <= at(s, from+4) && at(s, from+4) <= 'Z' && isLetter(at(s, from+5)) {
		return true
	}

	before := strings.ToLower(strings.TrimRight(s[max(0, from-12):from], " :="))

	return strings.HasSuffix(before, "status") || strings.HasSuffix(before, "code") || strings.HasSuffix(before, "http") ||
		strings.HasSuffix(before, "ed error") // "returned error: 503" of curl
}
