package redact

import (
	"strings"
)

// scanner looks for secrets in a text, once from its beginning to its end. It
// remembers what it once looked for and found far ahead, so that it takes no
// longer than the text is long.
type scanner struct {
	// The text, and what is known of all of it.
	s      string
	nested int  // how many strings of JSON it is in
	mailed bool // there is an @ in it
	tables bool // there may be a table in it

	// What is hidden, and what was found.
	redactor *Redactor
	names    *names
	found    []span

	// What stands before the place that is looked at.
	word    span // the last word
	dotted  int  // where the words begin that it ends, with dots between them
	pair    couple
	command command

	// What was looked for ahead. Before these ends it is not looked for again.
	run      run
	closings int // the last end of an element; -1: it was not looked for
	tokenEnd int // the end of the newest run of what base64 is made of
	keyEnd   int // the newest end of a private key
	rowEnd   int // the next quote or end of a line
	columns  int // the end of the columns of a statement that were looked at
	oracle   verdict
}

// verdict is what was found out of a text: nothing as long as nothing had to be.
type verdict int

const (
	unasked verdict = iota
	yes
	no
)

// newScanner is a scanner of a text that is inside so many strings of JSON.
func newScanner(r *Redactor, text string, nested int) *scanner {
	return &scanner{
		s:        text,
		nested:   nested,
		mailed:   strings.Contains(text, "@"),
		tables:   strings.Contains(text, "|") || strings.Contains(text, "</t"),
		redactor: r,
		names:    r.names,
		word:     span{-1, -1},
		run:      run{end: -1},
		closings: -1,
	}
}

// scan returns the secrets of the text.
func (t *scanner) scan() []span {
	i := 0
	for i < len(t.s) {
		found, next := t.secret(i)
		t.add(found)
		i = max(next, found.to)
	}

	return t.found
}

// add keeps a secret, if there is one.
func (t *scanner) add(found span) {
	if !found.empty() {
		t.found = append(t.found, found)
	}
}

// secret looks at i for a secret that a word or an address announces, and says
// where to look next.
func (t *scanner) secret(i int) (found span, next int) {
	s := t.s
	if s[i] == ':' && strings.HasPrefix(s[i:], "://") {
		return t.credentials(i + 3), i + 3
	}

	word := span{i, t.wordEnd(i)}
	if word.empty() {
		_, n := char(s, i)
		return t.mark(i), i + n
	}

	before := t.word
	t.word = word
	if i == 0 || before.to != i-1 || s[i-1] != '.' {
		t.dotted = i
	}

	// A secret that shows itself.
	found = t.byItself(word)
	if found.empty() && word.to > i+1 && afterEscape(s, i) {
		found = t.byItself(span{i + 1, word.to})
	}

	if !found.empty() {
		return found, word.to
	}

	// The content of an element, or of the one behind it, whose name is a secret's.
	if t.isElement(before, word) && t.hides(before, word) {
		return t.element(word), word.to
	}

	found = property(s, word.to)
	if !found.empty() && (t.hides(before, word) || t.hidesWithin(word)) {
		return found, word.to
	}

	// The value behind a name.
	begin, announced := separator(s, word)
	switch {
	case !announced:
		return t.unannounced(before, word)
	case t.hides(before, word):
		return t.value(begin, word), word.to
	case t.hidesWithin(word):
		return t.valueOfDotted(begin, word), word.to
	}

	return t.called(begin, word), word.to
}

// unannounced is the secret of a word with no mark of a value behind it: in the cell beside
// it, later in the sentence, or in a statement of SQL.
func (t *scanner) unannounced(before, word span) (found span, next int) {
	found = t.beside(before, word)
	if !found.empty() {
		return found, found.to
	}

	found = t.said(before, word)
	if !found.empty() {
		return found, found.to
	}

	return t.inStatement(word), word.to
}

// byItself is a secret that no name announces.
func (t *scanner) byItself(word span) span {
	s := t.s
	switch {
	case s[word.from] == '-' && strings.HasPrefix(s[word.from:], "-----BEGIN "):
		return privateKey(s, word.from)
	case s[word.from] == '-' && strings.HasPrefix(s[word.from:], "-----END "):
		return t.restOfKey(word.from)
	case isScheme(word.in(s)) && isBlank(s, word.to):
		if value := blankless(s, word.to); !value.empty() && strings.IndexByte("=:", s[value.from]) >= 0 {
			break // a name
		} else if value.len() >= 16 || strings.ContainsAny(value.in(s), "0123456789") {
			return value
		}
	case t.mailed && word.to < len(s) && s[word.to] == ':' && !strings.HasPrefix(s[word.to:], "://"):
		run := t.runAt(word.from)
		if run.network > word.to {
			return span{word.from, run.network}
		}
	}

	if found := t.option(word); !found.empty() {
		return found
	}

	if found := t.connectString(word); !found.empty() {
		return found
	}

	return t.token(word)
}

// value is the span of the value that belongs to a name and begins at begin.
func (t *scanner) value(begin int, name span) span {
	s := t.s
	if found, below := t.below(begin, name); below {
		return hiddenBefore(s, found)
	}

	found := value(s, begin, name)
	if s[name.to] == ':' && begin > name.to+1 && weak(plain(name.in(s))) && quoteAt(s, begin).width() == 0 && !seemsSecret(found.in(s)) {
		return span{} // auth: connection refused
	}

	return found
}

// valueOfDotted is the value of a name of which only a word before the last one is
// secret. Files, classes and hosts are called so too, token.js:10, auth.Login: denied:
// behind a colon it has to look like one.
func (t *scanner) valueOfDotted(begin int, name span) span {
	s := t.s
	if s[name.to] != ':' {
		return t.value(begin, name)
	}

	found := value(s, begin, name)
	class := name.to > name.from+1 && kind(s[name.from]) == 'A' && kind(s[name.from+1]) == 'a'
	if begin == name.to+1 || class || quoteAt(s, begin).width() == 0 && !seemsSecret(found.in(s)) {
		return span{}
	}

	return found
}

// hides reports whether the word is a name of what is hidden: on its own, after
// the escape of a line's end, or together with the word before it.
func (t *scanner) hides(before, word span) bool {
	name := plain(word.in(t.s))
	joined := before.from >= 0 && before.to == word.from-1 && (t.s[word.from-1] == ' ' || t.s[word.from-1] == '.')

	return t.names.hide(name) || signs(t.s, word.from, name) ||
		afterEscape(t.s, word.from) && t.names.hide(name[1:]) ||
		joined && t.names.exact(t.s[before.from:word.to])
}

// hidesWithin reports whether a name of words with dots between them, of which this
// is the last, has one of what is hidden: db.password.main.
func (t *scanner) hidesWithin(word span) bool {
	return t.dotted < word.from && t.names.hide(plain(t.s[t.dotted:word.to]))
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
			c, n = char(t.s, i)
			if n == 1 {
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
