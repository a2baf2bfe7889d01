package redact

import (
	"strings"
)

type span struct{ from, to int }

// scanner looks for secrets in a text, once from its beginning to its end. It
// remembers what it once looked for and found far ahead, so that it takes no
// longer than the text is long.
type scanner struct {
	s        string
	redactor *Redactor
	names    *names
	nested   int
	found    []span
	mailed   bool // there is an @ in it
	tables   bool // there may be a table in it
	word     span // the last one
	dotted   int  // where the words begin that it ends, with dots between them
	runEnd   int  // the end of the newest run without blanks and quotes
	at       int  // where the last @ of that run is
	network  int  // where the last @ of user:password@tcp( in that run is; -1: nowhere
	closings int  // the last end of an element, once it was looked for
	tokenEnd int  // the end of the newest run of what base64 is made of
	keyEnd   int  // the newest end of a private key
	rowEnd   int  // the next quote or end of a line, once it was looked for
	columns  int  // the end of the columns of a statement that were looked at
	pair     couple
	command  command

	speaksOracle int // of a database of Oracle: 1 yes, -1 no, 0 not known yet
}

func (t *scanner) add(at span) {
	if at.from < at.to {
		t.found = append(t.found, at)
	}
}

// secret looks at i for a secret that a word or an address announces, and says
// where to look next.
func (t *scanner) secret(i int) (found span, next int) {
	s := t.s
	if s[i] == ':' && strings.HasPrefix(s[i:], "://") {
		return t.credentials(i + 3), i + 3
	}

	j := t.wordEnd(i)
	if j == i {
		_, n := char(s, i)
		return t.mark(i), i + n
	}

	before := t.word
	t.word = span{i, j}
	if i == 0 || before.to != i-1 || s[i-1] != '.' {
		t.dotted = i
	}

	if found = t.byItself(i, j); found.from == found.to && j > i+1 && afterEscape(s, i) {
		found = t.byItself(i+1, j)
	}

	if found.from < found.to {
		return found, j
	}

	if t.isElement(before, i, j) && t.hides(before, i, j) {
		return t.element(i, j), j
	}

	if found = property(s, j); found.from < found.to && (t.hides(before, i, j) || t.hidesWithin(i, j)) {
		return found, j
	}

	k, announced := separator(s, i, j)
	switch {
	case !announced:
		if found = t.beside(before, i, j); found.from < found.to {
			return found, found.to
		}

		if found = t.said(before, i, j); found.from < found.to {
			return found, found.to
		}

		return t.inStatement(i, j), j
	case t.hides(before, i, j):
		return t.value(k, i, j), j
	case t.hidesWithin(i, j):
		return t.valueOfDotted(k, i, j), j
	}

	return t.called(k, i, j), j
}

// byItself is a secret that no name announces.
func (t *scanner) byItself(i, j int) span {
	s := t.s
	switch {
	case s[i] == '-' && strings.HasPrefix(s[i:], "-----BEGIN "):
		return privateKey(s, i)
	case s[i] == '-' && strings.HasPrefix(s[i:], "-----END "):
		return t.restOfKey(i)
	case isScheme(s[i:j]) && isBlank(s, j):
		if value := blankless(s, j); value.from < value.to && strings.IndexByte("=:", s[value.from]) >= 0 {
			break // a name
		} else if value.to-value.from >= 16 || strings.ContainsAny(s[value.from:value.to], "0123456789") {
			return value
		}
	case t.mailed && j < len(s) && s[j] == ':' && !strings.HasPrefix(s[j:], "://"):
		if t.run(i); t.network > j {
			return span{i, t.network}
		}
	}

	if found := t.option(i, j); found.from < found.to {
		return found
	}

	if found := t.connectString(i, j); found.from < found.to {
		return found
	}

	return t.token(i, j)
}

// value is the span of the value that belongs to the name [i, j) and begins at k.
func (t *scanner) value(k, i, j int) span {
	s := t.s
	if found, below := t.below(k, i, j); below {
		return hiddenBefore(s, found)
	}

	found := value(s, k, i, j)
	if s[j] == ':' && k > j+1 && weak(plain(s[i:j])) && quoteAt(s, k).width() == 0 && !seemsSecret(s[found.from:found.to]) {
		return span{} // auth: connection refused
	}

	return found
}

// valueOfDotted is the value of a name of which only a word before the last one is
// secret. Files, classes and hosts are called so too, token.js:10, auth.Login: denied:
// behind a colon it has to look like one.
func (t *scanner) valueOfDotted(k, i, j int) span {
	s := t.s
	if s[j] != ':' {
		return t.value(k, i, j)
	}

	found := value(s, k, i, j)
	class := j > i+1 && kind(s[i]) == 'A' && kind(s[i+1]) == 'a'
	if k == j+1 || class || quoteAt(s, k).width() == 0 && !seemsSecret(s[found.from:found.to]) {
		return span{}
	}

	return found
}

// hides reports whether the word is a name of what is hidden: on its own, after
// the escape of a line's end, or together with the word before it.
func (t *scanner) hides(before span, i, j int) bool {
	name := plain(t.s[i:j])
	return t.names.hide(name) || signs(t.s, i, name) ||
		afterEscape(t.s, i) && t.names.hide(name[1:]) ||
		before.to == i-1 && before.from >= 0 && (t.s[i-1] == ' ' || t.s[i-1] == '.') && t.names.exact(t.s[before.from:j])
}

// hidesWithin reports whether a name of words with dots between them, of which this
// is the last, has one of what is hidden: db.password.main.
func (t *scanner) hidesWithin(i, j int) bool {
	return t.dotted < i && t.names.hide(plain(t.s[t.dotted:j]))
}

// signs reports whether a name stands in an address before what makes it a key: the
// signature of a link that lets in everyone who has the link.
func signs(s string, i int, name string) bool {
	if !strings.EqualFold(name, "sig") && !strings.EqualFold(name, "signature") {
		return false
	}

	for _, before := range [...]string{"?", "&", "&amp;", `\u0026`} {
		if strings.HasSuffix(s[:i], before) {
			return true
		}
	}

	return false
}

// afterEscape reports whether the letter at i belongs to the escape of the end of a
// line, or of the like.
func afterEscape(s string, i int) bool {
	return i > 0 && s[i-1] == '\\' && strings.IndexByte("nrtbf", s[i]) >= 0
}

// wordEnd is the end of the word that begins at i, or i.
func (t *scanner) wordEnd(i int) int {
	for i < len(t.s) {
		c, n := t.s[i], 1
		if c == '%' || c == '\\' || c == '&' {
			if c, n = char(t.s, i); n == 1 {
				return i
			}
		}

		if !isWord(c) {
			return i
		}

		i += n
	}

	return i
}
