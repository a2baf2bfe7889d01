package fingerprint

import "strings"

// A database says in the language of its server what went wrong, and beside it a state of
// five characters, which is the same in all languages. Where the state and the names in the
// message are the whole cause, the words between them are left out of the fingerprint.

// worded are the classes of states, their first two characters, that are a cause of their
// own together with the names in the message: integrity (23), rollback (40), syntax and
// access (42), resources (53), objects not in their state (55) and intervention (57).
// Others, such as data (22) and connections (08), need the words.
var worded = [...]string{"23", "40", "42", "53", "55", "57"}

// valued are the numbers of MySQL's errors that name a value before the names of the
// schema: duplicate entries and wrong values.
var valued = [...]string{" 1062 ", " 1366 "}

// state returns the state of a database that a message has, and where it stands, with the
// brackets around it.
func state(s string) (code string, from, to int) {
	const length = len("23505")
	for _, mark := range [...]string{"SQLSTATE[", "SQLSTATE ", "SQLSTATE=", "SQLSTATE: "} {
		i := strings.Index(s, mark)
		if i < 0 || len(s) < i+len(mark)+length {
			continue
		}

		from, to = i, i+len(mark)+length
		code = s[to-length : to]
		if run(code, func(c byte) bool { return isDigit(c) || 'A' <= c && c <= 'Z' }) == length {
			return code, from, to
		}
	}

	return "", 0, 0
}

// schemaNames reports whether the quotes in a message of a database hold names of the
// schema, and how many values stand before them.
func schemaNames(s string) (values int, ok bool) {
	code, _, to := state(s)
	if code == "" || !isWorded(code) {
		return 0, false
	}

	for _, number := range valued {
		if strings.Contains(s[to:], number) {
			return 1, true
		}
	}

	return 0, true
}

func isWorded(code string) bool {
	for _, class := range worded {
		if strings.HasPrefix(code, class) {
			return true
		}
	}

	return false
}

// severities are how PostgreSQL begins a message in the languages that it speaks.
var severities = [...]string{
	"ERROR: ", "FEHLER: ", "ERREUR: ", "ERRORE: ", "ERRO: ", "BŁĄD: ", "FEL: ", "HATA: ",
	"ОШИБКА: ", "ПОМИЛКА: ", "エラー: ", "错误: ", "錯誤: ", "오류: ",
	"FATAL: ", "VERHÄNGNISVOLL: ",
}

// untranslated is a normalised message in which a database's words are left out: what stands
// before them, the state, the number of the error and the names in it.
func untranslated(message string) string {
	code, from, to := state(message)
	if code == "" || !isWorded(code) {
		return message
	}

	before, said := message[:from], message[to:]
	for _, severity := range severities {
		i := strings.Index(before, severity)
		if i >= 0 {
			before, said = before[:i], before[i:]
			break
		}
	}

	return before + "SQLSTATE " + code + numberOf(said) + namesIn(said)
}

// numberOf is the number of an error of MySQL, as PDO writes it behind the state.
func numberOf(said string) string {
	for _, word := range strings.Fields(said) {
		if isDigit(word[0]) && run(word, isDigit) == len(word) {
			return " " + word
		}
	}

	return ""
}

// namesIn are the names that a normalised message has, which stand in single quotes.
func namesIn(said string) string {
	var names strings.Builder
	for {
		_, rest, opened := strings.Cut(said, "'")
		name, after, closed := strings.Cut(rest, "'")
		if !opened || !closed {
			return names.String()
		}

		if isName(name) {
			names.WriteString(" '" + name + "'")

			said = after
		} else {
			said = rest
		}
	}
}
