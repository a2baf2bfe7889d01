package redact

import (
	"bytes"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"redrive/internal/rawjson"
)

// names says which names stand before secrets. Names are in lower case, and
// their words are joined.
type names struct {
	hidden map[string]bool
	shown  map[string]bool // taken out, although they have the words of a hidden one
}

// defaults are the names that are hidden unless they are taken out.
const defaults = `password passwd passphrase pass pwd secret token access_token refresh_token id_token auth_token session_token
	csrf_token api_token user_password db_password new_password old_password current_password api_key apikey x_api_key
	x_auth_token x_csrf_token api_secret secret_key access_key secret_access_key aws_secret_access_key authorization
	proxy_authorization cookie set_cookie session_id card_number credit_card cc_number cvv cvc cvv2 iban ssn private_key
	client_secret signing_key encryption_key webhook_secret otp pin passcode pw jwt bearer auth credential session sessid
	connect_sid account_key storepass keypass x_amz_signature x_goog_signature`

// defaultKeys lists the names that are hidden by default.
func defaultKeys() []string { return strings.Fields(defaults) }

// about reports whether a name that ends so tells something about a secret, and
// not the secret: token_count, password_reset_at.
func about(word []byte) bool {
	switch string(word) {
	case "count", "counts", "counter", "total", "used", "usage", "limit", "limits", "length", "len", "size", "max", "min", "rate",
		"at", "in", "on", "date", "time", "timestamp", "expires", "expiry", "expired", "expiration", "age", "ttl", "version",
		"reset", "changed", "updated", "created", "rotated", "sent", "verified", "attempt", "attempts", "retries",
		"type", "kind", "format", "policy", "status", "state", "required", "enabled", "valid", "invalid", "protected", "strength",
		"method", "methods", "mode", "scheme", "provider", "server", "service", "host", "port", "path", "file", "filename", "dir",
		"start", "started", "end", "ended", "duration", "minutes", "seconds", "failed", "failure", "failures", "result", "results",
		"id", "ids", "name", "names", "url", "uri", "endpoint", "domain", "consent", "banner", "error", "errors":
		return true
	}

	return false
}

// weak reports whether a name also begins messages, as auth: connection refused.
func weak(name string) bool {
	switch strings.ToLower(name) {
	case "auth", "session", "bearer", "jwt", "credential", "credentials":
		return true
	}

	return false
}

// counting reports whether tokens that are called so are counted: max_tokens.
func counting(word []byte) bool {
	switch string(word) {
	case "max", "min", "total", "num", "prompt", "completion", "input", "output", "cached", "reasoning":
		return true
	}

	return false
}

const (
	maxKey   = 64 // the longest name that can be hidden, in bytes
	maxWords = 5  // of a name that stands within a longer one
	leastEnd = 5  // the shortest name that hides a word which ends with it: smtppassword, but not compass
)

// hide reports whether values under this name are hidden.
func (n *names) hide(name string) bool {
	if !ascii(name) {
		name = strings.ToLower(visible(name))
	}

	var buffer [maxKey]byte
	var bounds [8]int

	joined, ends := split(name, buffer[:0], bounds[:0])
	if n.shown[string(joined)] || len(ends) == 0 {
		return false
	}

	if n.hidden[string(joined)] {
		return true
	}

	// A hidden name can be some words of a longer one: user_password_hash. It can also be the
	// end of a word: smtppassword.
	start := 0
	for i, end := range ends {
		for _, to := range ends[i:min(i+maxWords, len(ends))] {
			if n.means(joined, start, to, ends) {
				return true
			}
		}

		for k := max(start+1, end-maxKey); k+leastEnd <= end; k++ {
			if n.means(joined, k, end, ends) && !another(joined[start:end], k-start) {
				return true
			}
		}

		start = end
	}

	return false
}

// another reports whether a word that ends with a hidden name is one word of its own, which has
// nothing to do with it: possession, obsession. The end begins at k.
func another(word []byte, k int) bool {
	if end := bytes.TrimSuffix(word[k:], []byte("s")); string(end) != "session" {
		return false
	}

	switch string(word[:k]) {
	case "pos", "dispos", "prepos", "repos", "selfpos", "ob", "super":
		return true
	}

	return false
}

// ascii reports whether a name is of one-byte characters only.
func ascii(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}

	return true
}

// means reports whether some words of a name are one that is hidden, also in the
// plural, and the name means what is called so.
func (n *names) means(joined []byte, from, to int, ends []int) bool {
	word := joined[from:to]
	if !n.hidden[string(word)] {
		if word[len(word)-1] != 's' || !n.hidden[string(word[:len(word)-1])] {
			return false
		}

		// max_tokens is a number of tokens.
		if string(word) == "tokens" && counting(joined[:ends[0]]) {
			return false
		}
	}

	// The last word can say that the value is about the secret: token_count, password_reset_at.
	last := 0
	if len(ends) > 1 {
		last = ends[len(ends)-2]
	}

	return to > last || !about(joined[last:])
}

// exact reports whether this is a hidden name as a whole.
func (n *names) exact(name string) bool {
	var buffer [maxKey]byte
	joined, _ := split(name, buffer[:0], nil)
	return n.hidden[string(joined)]
}

// split appends the words of a name in lower case to joined, and to ends where
// each of them ends. Words end at dashes, underscores, blanks and dots, before
// and after digits, and where capitals begin or end: SMTPPassword2.
func split(name string, joined []byte, ends []int) ([]byte, []int) {
	last := byte('a')
	for i := range len(name) {
		c := name[i]
		before := last

		last = kind(c)
		if c == '-' || c == '_' || c == ' ' || c == '.' {
			ends = ended(joined, ends)
			continue
		}

		// A word begins at a digit, behind digits, where capitals begin, and at the last of several
		// capitals: SMTP, Password, 2.
		if i > 0 && (last != before && (last != 'a' || before != 'A') || last == 'A' && i+1 < len(name) && kind(name[i+1]) == 'a') {
			ends = ended(joined, ends)
		}

		if last == 'A' {
			c += 'a' - 'A'
		}

		joined = append(joined, c)
	}

	return joined, ended(joined, ends)
}

// ended appends the end of a word, when there is one that has not ended yet.
func ended(joined []byte, ends []int) []int {
	if n := len(joined); n > 0 && (len(ends) == 0 || ends[len(ends)-1] < n) {
		ends = append(ends, n)
	}
	return ends
}

// kind is 'A' for capitals, '0' for digits, and 'a' for what else words have.
func kind(c byte) byte {
	switch {
	case 'A' <= c && c <= 'Z':
		return 'A'
	case '0' <= c && c <= '9':
		return '0'
	}

	return 'a'
}

// normal is the form in which names are compared.
func normal(name string) string {
	joined, _ := split(strings.ToLower(name), nil, nil)
	return string(joined)
}

// listed lists the names, in their order.
func (n *names) listed() string {
	return strings.Join(slices.Sorted(maps.Keys(n.hidden)), " ") + " - " + strings.Join(slices.Sorted(maps.Keys(n.shown)), " ")
}

// Path is where a value stands, as $.items[0].card.
type Path string

// step is one step of a path: into a member, into the element n, or into each
// element.
type step struct {
	name    string
	unclear bool // the name is not what it says for sure
	element bool
	any     bool
	n       int
}

// path leads from the root of a document to a value.
type path []step

const maxSteps = 32

func parsePaths(texts []string) ([]path, error) {
	all := make([]path, len(texts))
	for i, text := range texts {
		p, ok := parsePath(text)
		if !ok {
			return nil, &Error{text, `is not a path such as $.customer.email, $.items[*].card, $.items[0] or $["a b"]`}
		}

		all[i] = p
	}

	return all, nil
}

func parsePath(text string) (p path, ok bool) {
	rest, ok := strings.CutPrefix(text, "$")
	for ok && rest != "" {
		var s step
		s, rest, ok = parseStep(rest)
		p = append(p, s)
	}

	return p, ok && len(p) > 0 && len(p) <= maxSteps
}

// parseStep reads the step with which a text begins.
func parseStep(text string) (s step, rest string, ok bool) {
	// A name: .user
	if after, dot := strings.CutPrefix(text, "."); dot {
		end := strings.IndexAny(after, ".[")
		if end < 0 {
			end = len(after)
		}

		return step{name: after[:end]}, after[end:], end > 0 && !strings.ContainsAny(after[:end], "]*\"' ")
	}

	// A name in quotation marks: ["user name"]
	if quoted, is := strings.CutPrefix(text, `["`); is {
		name, err := strconv.QuotedPrefix(text[1:])
		if err != nil || !strings.HasPrefix(quoted[len(name)-1:], "]") {
			return s, "", false
		}

		s.name, err = strconv.Unquote(name)

		return s, quoted[len(name):], err == nil
	}

	// An element, or all of them: [0], [*]
	inside, rest, closed := strings.Cut(strings.TrimPrefix(text, "["), "]")
	if !strings.HasPrefix(text, "[") || !closed {
		return s, "", false
	}

	if inside == "*" {
		return step{element: true, any: true}, rest, true
	}

	n, err := strconv.ParseUint(inside, 10, 31)

	return step{element: true, n: int(n)}, rest, err == nil
}

// leads reports whether the path leads to where a value stands.
func (p path) leads(at path) bool {
	return slices.EqualFunc(p, at, func(want, got step) bool {
		return want.element == got.element && (want.any || want.n == got.n && want.name == got.name)
	})
}

func (p path) String() string {
	var b strings.Builder
	b.WriteByte('$')

	for _, s := range p {
		switch {
		case s.any:
			b.WriteString("[*]")
		case s.element:
			b.WriteString("[" + strconv.Itoa(s.n) + "]")
		case s.name != "" && !strings.ContainsAny(s.name, ".[]*\"' "):
			b.WriteString("." + s.name)
		default:
			b.WriteString("[" + string(rawjson.Quote(s.name)) + "]")
		}
	}

	return b.String()
}
