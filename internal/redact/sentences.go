package redact

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// maxSaid is the longest value in a sentence, in bytes.
const maxSaid = 256

// said is the secret that a sentence tells after a name: password is S, password
// was changed to S, password -> S, Password 'S' rejected. As most sentences about secrets
// do not tell them (password is required), the value has to look like one.
func (t *scanner) said(before, name span) span {
	s := t.s

	// The name can be in quotes or brackets: 'password' is S.
	end := name.to
	for end < len(s) && end < name.to+4 && strings.IndexByte("\"'`*)]", s[end]) >= 0 {
		end++
	}

	k := blanks(s, end)
	if k >= len(s) {
		return span{}
	}

	var found span

	// password -> S, or Password 'S' rejected, or password was changed to S.
	if at := afterArrow(s, k, name.to); at > 0 {
		found = t.pointedTo(at, k > end)
	} else if q := quoteAt(s, k); q.width() > 0 && k > end {
		found = t.quotedBeside(before, k, name)
	} else if at, colon := afterCopula(s, k); at > 0 && k > end {
		found = told(s, at, colon)
	}

	if !found.empty() && t.hides(before, name) {
		return found
	}

	return span{}
}

// afterArrow is the index after the arrow -> at k, or of which the dash belongs to the word
// that ends at j; 0 if there is none.
func afterArrow(s string, k, wordEnd int) int {
	dashes := k
	for dashes < len(s) && dashes < k+3 && (s[dashes] == '-' || s[dashes] == '~') {
		dashes++
	}

	if c, n := char(s, dashes); c == '>' && (dashes > k || k == wordEnd && s[wordEnd-1] == '-') {
		return dashes + n
	}

	return 0
}

// pointedTo is the value after an arrow. Code has arrows too, mostly without blanks around
// them, and lists of names: token -> session.
func (t *scanner) pointedTo(k int, apart bool) span {
	s := t.s
	k = blanks(s, k)
	if at := quotedShort(s, k); !at.empty() {
		return at
	}

	found := word(s, k)
	text := found.in(s)

	follows := blanks(s, found.to)

	// A word in lower case before another word is part of a sentence.
	prose := isLower(text) && follows > found.to && follows < len(s) && unicode.IsLetter(rune(s[follows]))
	switch {
	case text == "", strings.ContainsAny(text, "([{<$"):
		return span{}
	case seemsSecret(text):
		return found
	case !apart, prose, t.names.hide(text), about([]byte(strings.ToLower(text))):
		return span{}
	}

	return found
}

// quotedBeside is the quoted text at k beside a name. It can also be what the
// secret is called (secret 'db-credentials' not found) or a token of a grammar.
func (t *scanner) quotedBeside(before span, k int, name span) span {
	s := t.s

	found := quotedShort(s, k)
	text := found.in(s)
	if text == "" || strings.ContainsAny(text, " \t") || before.to == name.from-1 && before.from >= 0 && isGrammar(before.in(s)) {
		return span{}
	}

	after := strings.ToLower(strings.TrimLeft(s[found.to:min(found.to+32, len(s))], "\"'`\\ \t"))
	if isObject(after) {
		return span{}
	}

	if seemsSecret(text) || hasSymbols(text) || isPassword(plain(name.in(s))) && isVerdict(after) {
		return found
	}

	return span{}
}

// isGrammar reports whether a word before "token" says that it is one of a grammar.
func isGrammar(word string) bool {
	switch strings.ToLower(word) {
	case "unexpected", "expected", "unknown", "illegal", "unrecognized", "syntax":
		return true
	}

	return false
}

// isObject reports whether a text goes on as one about a thing that has a name.
func isObject(after string) bool {
	return begins(after, "not found", "could not be found", "already", "exists", "does not exist", "doesn't exist",
		"is forbidden", "in namespace")
}

// isVerdict reports whether a text goes on as one about a value that was tried.
func isVerdict(after string) bool {
	return begins(after, "rejected", "denied", "refused", "incorrect", "invalid", "wrong", "is wrong", "is incorrect", "is invalid", "is not",
		"was rejected", "was refused", "was denied", "does not", "did not", "didn't", "doesn't")
}

// begins reports whether a text begins with one of some words.
func begins(text string, words ...string) bool {
	return slices.ContainsFunc(words, func(word string) bool { return strings.HasPrefix(text, word) })
}

// isPassword reports whether what is called so is a value that a person types.
func isPassword(name string) bool {
	for _, last := range [...]string{"password", "passwd", "passphrase", "passcode", "pwd", "pass", "pin", "otp"} {
		if strings.HasSuffix(strings.ToLower(name), last) {
			return true
		}
	}

	return false
}

// afterCopula is the index of the value after "is", "was changed to" and the like at k, or
// 0 if there are other words. colon: the last of them has a colon.
func afterCopula(s string, k int) (at int, colon bool) {
	const maxWords = 4
	for n := range maxWords {
		end := k
		for end < len(s) && (s[end]|0x20 >= 'a' && s[end]|0x20 <= 'z') {
			end++
		}

		if end-k < 2 || end-k > 9 {
			break
		}

		// The first word has to begin a copula, and those after it have to go on with it: "was
		// changed to".
		kind := copulas[strings.ToLower(s[k:end])]
		if n == 0 && kind == "" || n > 0 && kind != "filler" && kind != "both" || n == 0 && kind == "filler" {
			break
		}

		at = end

		// "password is now: secret"
		if end < len(s) && s[end] == ':' {
			return blanks(s, end+1), true
		}

		// Without a blank no value follows: "password is, …".
		k = blanks(s, end)
		if k == end {
			return 0, false
		}
	}

	if at == 0 {
		return 0, false
	}

	return blanks(s, at), false
}

// copulas are the words between a name and its value: those with which they begin, those
// that follow, and those that do both.
var copulas = map[string]string{
	"is": "verb", "was": "verb", "are": "verb", "were": "verb", "equals": "verb", "equal": "verb", "reads": "verb", "being": "verb",
	"ist": "verb", "war": "verb", "lautet": "verb", "lautete": "verb", "est": "verb", "es": "verb", "era": "verb",
	"set": "both", "changed": "both", "reset": "both", "updated": "both",
	"to": "filler", "now": "filler", "still": "filler", "just": "filler", "currently": "filler", "jetzt": "filler", "as": "filler",
}

// told is the value at k that a sentence tells, if it looks like one.
func told(s string, k int, colon bool) span {
	if at := quotedShort(s, k); !at.empty() {
		if text := at.in(s); isState(text) || isLower(text) && strings.Contains(text, " ") {
			return span{}
		}
		return at
	}

	found := word(s, k)
	text := found.in(s)
	switch {
	case text == "" || isState(text) || isNotation(text):
		return span{}
	case colon, seemsSecret(text), hasSymbols(text):
		return found
	case len(text) >= 4 && strings.Trim(text, "0123456789") == "" && endsSentence(s, found.to): // and no unit follows
		return found
	}

	return span{}
}

// endsSentence reports whether no word follows at i.
func endsSentence(s string, i int) bool {
	rest := strings.TrimLeft(s[i:min(i+8, len(s))], " \t")
	return rest == "" || strings.IndexByte(".,;!?)\"'\r\n", rest[0]) >= 0
}

// word is the run of characters without blanks at k, without the marks that end a sentence.
func word(s string, k int) span {
	found := blankless(s[:min(k+maxSaid, len(s))], k)
	text := strings.TrimRight(found.in(s), ".,;:!?)]}>\"'`\\")
	return span{found.from, found.from + len(text)}
}

// quotedShort is what stands in the quotes that begin at k and end not far from there.
func quotedShort(s string, k int) span {
	if k >= len(s) {
		return span{}
	}

	q := quoteAt(s, k)
	if q.width() == 0 {
		return span{}
	}

	near := s[:min(k+q.width()+maxSaid, len(s))]

	from := k + q.width()
	to := closing(near, from, q)
	if to == len(near) && len(near) < len(s) || strings.ContainsAny(s[from:to], "\r\n") {
		return span{}
	}

	return span{from, to}
}

// isLower reports whether a text is of small letters and blanks only.
func isLower(text string) bool {
	return strings.Trim(text, "abcdefghijklmnopqrstuvwxyz ") == ""
}

// hasSymbols reports whether a word has a character in its midst that words of sentences,
// names of files and addresses do not have there.
func hasSymbols(text string) bool {
	return len(text) >= 5 && strings.ContainsAny(text[1:len(text)-1], "#$%^!*~") && !strings.ContainsAny(text, "/<>(){}")
}

// isState reports whether a word says how a secret is and not what it is.
func isState(text string) bool {
	switch strings.ToLower(text) {
	case "required", "missing", "empty", "invalid", "expired", "null", "nil", "none", "true", "false", "wrong", "incorrect",
		"undefined", "optional", "blank", "set", "unset", "default", "unknown", "rejected", "hidden", "redacted", "secret":
		return true
	}

	return strings.HasPrefix(text, Hidden)
}

// isNotation reports whether a word names how something is written or made, or a place:
// base64-encoded, 2024-01-31, /run/secrets/db1.
func isNotation(text string) bool {
	lower := strings.ToLower(text)
	if len(text) < 64 && begins(lower, "base64", "base32", "sha1", "sha2", "sha3", "sha5", "md5", "utf", "ascii", "bcrypt", "argon2", "pbkdf2",
		"oauth", "rs256", "hs256", "es256", "x509", "http", "rfc", "ipv", "/", "./", "../", "~/") {
		return true
	}

	return len(text) >= 8 && strings.Trim(text[:8], "0123456789-:.TZ") == "" && strings.ContainsAny(text, "-:") // a time
}

// connectString is the password in what Oracle calls a connect string, of which a word
// is the user: user/S@db. Packages, images and paths are written like it
// (lodash/fp@4.17): without a word of Oracle in the text, it has to look like a secret.
func (t *scanner) connectString(user span) span {
	s := t.s
	if !t.mailed || user.to >= len(s) || s[user.to] != '/' || user.from > 0 && strings.IndexByte(" \t\r\n\"'`(=[,:", s[user.from-1]) < 0 {
		return span{}
	}

	// The password ends before the @; between quotation marks it can have any character but
	// that.
	from := user.to + 1

	near := s[from:min(from+64, len(s))]
	n := strings.IndexAny(near, " \t\r\n/\\@<>,;|&")
	if quote := quoteAt(s, from); quote.width() > 0 {
		n = strings.IndexByte(near, '@')
	}

	if n <= 0 || near[n] != '@' {
		return span{}
	}

	found := span{from, from + n}
	switch host := s[from+n+1 : min(from+n+65, len(s))]; {
	// ana/S@//db:1521/orders and ana/S@(DESCRIPTION=…) are always taken for Oracle's.
	case strings.HasPrefix(host, "//"), strings.HasPrefix(host, "("):
		return found
	// lodash/fp@4.17 is a package.
	case !isHost(host):
		return span{}
	case t.aboutOracle() || seemsSecret(found.in(s)) || hasSymbols(found.in(s)):
		return found
	}

	return span{}
}

// isHost reports whether a text begins with what can be a database, and not with a version,
// a digest or a branch.
func isHost(text string) bool {
	end := 0
	for end < len(text) && (isWord(text[end]) || text[end] == '.') {
		end++
	}

	name := strings.ToLower(strings.TrimRight(text[:end], "."))
	switch name {
	case "", "main", "master", "latest", "develop", "head", "next", "stable", "beta", "canary", "sha256":
		return false
	}

	if strings.Trim(name, "0123456789.") == "" && strings.Count(name, ".") == 3 { // of IPv4
		return true
	}

	version := strings.TrimPrefix(name, "v")

	return version == "" || version[0] < '0' || version[0] > '9'
}

// oracleWords are what texts about databases of Oracle say. The short words are parts of
// others: of "permanent", of "German" and of "flora-1".
var oracleWords = regexp.MustCompile(`(?i)oracle|sqlplus|sqlldr|expdp|impdp|tnsnames|` +
	`(?:^|[^a-z])(?:ora-[0-9]|(?:rman|tns)(?:[^a-z]|$))`)

// aboutOracle reports whether the text is about a database of Oracle.
func (t *scanner) aboutOracle() bool {
	if t.oracle == unasked {
		t.oracle = no
		if oracleWords.MatchString(t.s) {
			t.oracle = yes
		}
	}

	return t.oracle == yes
}
