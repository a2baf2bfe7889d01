package redact

import (
	"strings"

	"redrive/internal/rawjson"
)

// Text hides the secrets of a text, as of an error or a trace, wherever a name
// stands before a value: key=value, "key": "value", key: value, ('key', 'value'),
// --key value, <key>value</key>, and so with each of = : " ' < > written as
// %3D, \u003d or &quot;. Hidden are also credentials of HTTP, those in addresses
// and command lines, private keys, tokens that show by their form what they are,
// and what [Redactor.Payload] hides by names in JSON inside the text. A value
// without quotes ends at the next blank, or with the lines below its name that are
// indented more.
func (r *Redactor) Text(s string) string { return r.TextFrom(s, 0) }

// TextFrom is the part of Text that begins at the byte from of s, or before it
// with the token of a secret that contains from.
func (r *Redactor) TextFrom(s string, from int) string {
	locks := r.find(s, Hidden, 0)
	if isCutOff(s) {
		locks = (&masker{redactor: r.ByKey(), token: Hidden}).document([]byte(s), nil)
	}

	for len(locks) > 0 && locks[0].To <= from {
		locks = locks[1:]
	}

	if len(locks) == 0 {
		return s[from:]
	}

	var b strings.Builder
	for _, l := range locks {
		b.WriteString(s[from:max(from, l.From)])
		b.Write(l.Text)
		from = l.To
	}

	b.WriteString(s[from:])

	return b.String()
}

// find returns where the secrets of a text are, in their order, and what is shown
// instead. The text is inside as many strings of JSON as nested says.
func (r *Redactor) find(s, token string, nested int) []lock {
	if !announces(s) {
		return nil
	}

	s, out := colourless(s)
	locks := r.inDocuments(s, token, nested)
	for _, at := range r.inText(s, nested) {
		locks = append(locks, lock{Edit: rawjson.Edit{From: at.from, To: at.to, Text: []byte(token)}})
	}

	locks = joined(locks, []byte(s), token)

	for i := range locks {
		l := &locks[i]
		at := out.places(span{l.From, l.To})
		l.From, l.To = at.from, at.to
	}

	return locks
}

// inText returns where the secrets are that stand behind names, or show by their form
// what they are.
func (r *Redactor) inText(s string, nested int) []span {
	text, foreign := asciiText(s)

	t := scanner{
		s: text, redactor: r, names: r.names, nested: nested, mailed: strings.Contains(text, "@"), runEnd: -1, closings: -1,
		tables: strings.Contains(text, "|") || strings.Contains(text, "</t"),
		word:   span{-1, -1},
	}
	i := 0
	for i < len(t.s) {
		found, next := t.secret(i)
		t.add(found)
		i = max(next, found.to)
	}

	if foreign == nil {
		return t.found
	}

	// Back to the characters that are written. A secret within the value before is not
	// extended, so that each part of the text is looked at once.
	end := 0
	for i := range t.found {
		at := foreign.places(t.found[i])
		if at.from >= end {
			at = withSpaces(s, at)
		}

		end = max(end, at.to)
		t.found[i] = at
	}

	return t.found
}

// announces reports whether a text has anything behind which a secret can stand,
// or can be a token itself.
func announces(s string) bool {
	return len(s) >= leastToken || strings.ContainsAny(s, `=: >%,&;|\@`) || !ascii(s)
}

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

func isWord(c byte) bool {
	return c == '_' || c == '-' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// isBlank reports whether a blank is at i, however it is written.
func isBlank(s string, i int) bool {
	c, _ := char(s, i)
	return c == ' ' || c == '\t'
}

// isScheme reports whether what follows the word are credentials of HTTP.
func isScheme(word string) bool {
	return strings.EqualFold(word, "bearer") || strings.EqualFold(word, "basic")
}

// separator finds what stands between the name [i, j) and its value, and returns
// where that begins.
func separator(s string, i, j int) (k int, ok bool) {
	if j+1 < len(s) && s[j] == ' ' && isWord(s[j+1]) && s[i] != '-' { // as most words of a sentence
		return j, false
	}

	quoted, closed, named := false, true, false // closed: the name, or an index behind it, ended there
	k = j
	for {
		c, n := char(s, k)
		if c == '\\' && literalBreak(s, k) > 0 {
			break // the end of a line
		} else if c == '\\' || c == '"' || c == '\'' || c == '`' {
			quoted = true
		} else if c == '[' && closed {
			var word bool
			if n, word = index(s, k); n == 0 {
				break
			}

			k, named = k+n, named || word

			continue
		} else if c != ']' && c != '*' && c != '_' && // of a form's field[password], of Markdown's **password**
			!(c == ')' && i > 0 && s[i-1] == '(') { // of Key (password)=(S)
			break
		}

		k, closed = k+n, c == ']'
	}

	sep := blanks(s, afterVisibility(s, k))
	c, n := char(s, sep)
	switch {
	case named && c != '=': // children[password].children[first]: it is too short
		return k, false
	case c == '=' || c == ':':
		for c == '=' || c == ':' || c == '>' {
			sep += n
			c, n = char(s, sep)
		}

		return blanks(s, afterEmphasis(s, i, j, sep)), true
	case quoted && c == ',' && strings.Contains(s[max(0, i-4):i], "("): // a pair: ('password', 'S')
		return blanks(s, sep+n), true
	case quoted && c == ',': // in a list of names and values: ['Cookie', 'S']
		k = blanks(s, sep+n)
		q := quoteAt(s, k)
		from := k + q.width()
		to := orEnd(s, from, strings.IndexAny(s[from:min(from+256, len(s))], q.raw+"\n"))

		return k, q.width() > 0 && seemsSecret(s[from:min(to, from+256)])
	case quoted && c == ';': // a text that PHP serialized: s:8:"password";s:1:"S"
		return serialized(s, sep+n)
	}

	return sep, sep > k && k == j && s[i] == '-' && (j-i > 2 && s[i+1] == '-' || j-i > 4 && i > 0 && s[i-1] == ' ')
}

// afterEmphasis passes the marks of Markdown at k that began before the name
// [i, j): **password:** S.
func afterEmphasis(s string, i, j, k int) int {
	end := k
	for end < len(s) && end < k+3 && (s[end] == '*' || s[end] == '_') {
		end++
	}

	if marks := s[k:end]; strings.HasPrefix(s[i:j], marks) || strings.HasSuffix(strings.TrimRight(s[:i], "\"'`"), marks) {
		return end
	}

	return k
}

// index is the length of [], [0] or [first] at k, as forms have it behind a name, or zero.
// word says that there is more than digits in it.
func index(s string, k int) (n int, word bool) {
	i := k
	for i < len(s) && i < k+64 {
		c, n := char(s, i)
		i += n
		switch {
		case c == ']':
			return i - k, word
		case c == '[' && i == k+n || '0' <= c && c <= '9':
		case isWord(c):
			word = true
		default:
			return 0, false
		}
	}

	return 0, false
}

// afterVisibility passes what PHP writes after the name of a property:
// [password:protected] => S, ["password":"User":private]=>.
func afterVisibility(s string, k int) int {
	if k == len(s) || s[k] != ':' {
		return k
	}

	end := strings.IndexByte(s[k:min(k+128, len(s))], ']')
	if end < 0 {
		return k
	}

	if inside := s[k : k+end]; strings.HasSuffix(inside, ":protected") || strings.HasSuffix(inside, ":private") {
		return k + end + 1
	}

	return k
}

// serialized finds the value after s:9: and the like.
func serialized(s string, i int) (k int, ok bool) {
	if !strings.HasPrefix(s[i:], "s:") {
		return i, false
	}

	for k = i + 2; k < len(s) && '0' <= s[k] && s[k] <= '9'; k++ {
	}

	return k + 1, k < len(s) && s[k] == ':'
}

func blanks(s string, i int) int {
	for i < len(s) && (s[i] == ' ' || s[i] == '\t') {
		i++
	}
	return i
}

// char is the character at i, of those that are one byte, however it is written:
// as itself, %3D, %253D, \u003d, \x3d, &quot; or &#34;. n is how many bytes that takes.
func char(s string, i int) (c byte, n int) {
	if i >= len(s) {
		return 0, 1
	}

	if c = s[i]; c != '%' && c != '\\' && c != '&' {
		return c, 1
	}

	rest := s[i:min(i+12, len(s))]
	digits := ""
	switch rest[0] {
	case '%':
		digits, n = rest[1:min(3, len(rest))], 3
	case '\\':
		escape := strings.TrimLeft(rest, `\`)
		n = len(rest) - len(escape)
		if strings.HasPrefix(escape, "u00") && len(escape) >= 5 {
			digits, n = escape[3:5], n+5
		} else if strings.HasPrefix(escape, "x") && len(escape) >= 3 {
			digits, n = escape[1:3], n+3
		}
	case '&':
		return entity(rest)
	}

	if high, low := digit(digits, 0), digit(digits, 1); high >= 0 && low >= 0 && high < 8 {
		c = byte(high<<4 | low)
		if c == '&' || c == '%' { // \u0026quot;, %253D
			if again, m := char(string(c)+s[i+n:min(i+n+8, len(s))], 0); m > 1 {
				return again, n + m - 1
			}
		}

		return c, n
	}

	return rest[0], 1
}

// digit is a hexadecimal digit, or -1.
func digit(s string, i int) int {
	if i >= len(s) {
		return -1
	}

	n := strings.IndexByte("0123456789abcdefABCDEF", s[i])
	if n > 15 {
		n -= 6
	}

	return n
}

// entity is the character that an entity of HTML stands for.
func entity(s string) (c byte, n int) {
	name, _, closed := strings.Cut(s[1:], ";")
	if !closed {
		return s[0], 1
	}

	switch strings.ToLower(name) {
	case "quot", "#34", "#x22", "#034":
		c = '"'
	case "apos", "#39", "#x27", "#039":
		c = '\''
	case "lt", "#60", "#x3c":
		c = '<'
	case "gt", "#62", "#x3e":
		c = '>'
	case "equals", "#61", "#x3d":
		c = '='
	case "colon", "#58", "#x3a":
		c = ':'
	default:
		return s[0], 1
	}

	return c, len(name) + 2
}

// plain is a word in which every character stands as itself.
func plain(word string) string {
	if !strings.ContainsAny(word, `%\&`) {
		return word
	}

	var b strings.Builder
	i := 0
	for i < len(word) {
		c, n := char(word, i)
		b.WriteByte(c)

		i += n
	}

	return b.String()
}
