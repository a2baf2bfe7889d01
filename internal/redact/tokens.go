package redact

import (
	"encoding/base64"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// leastToken is the length of the shortest text that is taken for a token on its own.
const leastToken = 12

// issued are the beginnings of tokens by which those who issue them make them
// known, and how long such a token is at least.
func issued(word string) bool {
	if len(word) < 20 || !strings.ContainsAny(word[:1], "Adgnrswx") {
		return false
	}

	for _, prefix := range [...]string{
		"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "npm_", "xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-",
		"sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_", "sk-ant-", "sk-proj-", "AIza", "dop_v1_", "doo_v1_", "dor_v1_",
	} {
		if strings.HasPrefix(word, prefix) {
			return true
		}
	}

	return len(word) == 20 && (strings.HasPrefix(word, "AKIA") || strings.HasPrefix(word, "ASIA")) && strings.ToUpper(word) == word
}

// token is the token that begins with a word, if its own form shows that
// it is one: it was issued by a service whose tokens are known, it is a JSON Web
// Token, or it is a secret in base64.
func (t *scanner) token(word span) span {
	s := t.s
	if issued(word.in(s)) {
		return word
	}

	// A token of parts with dots, such as a JSON Web Token: eyJhbGciOiJIUzI1NiJ9.eyJzdWIi….c2ln
	if end := dotted(s, word); end > word.to {
		return span{word.from, end}
	}

	// The address of a webhook of Slack: hooks.slack.com/services/T…/B…/…
	if word.in(s) == "services" {
		if path := slack.FindString(s[word.to:min(word.to+128, len(s))]); path != "" {
			return span{word.to + 1, word.to + len(path)}
		}
	}

	// A word is skipped when it is too short and not followed by what base64 goes on with, or
	// when it is within a run that was decoded before.
	if word.len() < leastToken && (word.to == len(s) || strings.IndexByte("+/=.", s[word.to]) < 0) || word.from < t.tokenEnd {
		return span{}
	}

	// Base64 can have + and /, which end a word.
	end := word.from
	for end < len(s) && (isWord(s[end]) || s[end] == '+' || s[end] == '/') {
		end++
	}

	t.tokenEnd = end

	text, ok := decoded(s[word.from:end])
	if !ok || t.nested >= maxNested {
		return span{}
	}

	// What was decoded has to be a login, ana:secret, or a text with a secret in it.
	if !isLogin(text) && len(t.redactor.find(text, Hidden, t.nested+1)) == 0 {
		return span{}
	}

	// The padding belongs to the token: cGFzc3dvcmQ=
	for end < len(s) && s[end] == '=' {
		end++
	}

	return span{word.from, end}
}

// slack is the secret part of the address of a webhook of Slack.
var slack = regexp.MustCompile(`^/T[0-9A-Z]{6,}/B[0-9A-Z]{6,}/\w{16,}`)

// dotted is the end of a token of several parts with dots between them that begins
// with the word first: a JSON Web Token, {" in base64, or one of SendGrid or of
// Vault. Without one it is the end of that word.
func dotted(s string, first span) int {
	if !strings.HasPrefix(s[first.to:], ".") {
		return first.to
	}

	end := first.to + 1
	switch word := first.in(s); {
	// {" in base64
	case strings.HasPrefix(word, "eyJ"):
	case word == "SG", word == "hvs", word == "hvb": // can be parts of names, too
		const least = 16

		for end < len(s) && isWord(s[end]) {
			end++
		}

		if end-first.to <= least || !strings.ContainsAny(s[first.to:end], "0123456789") {
			return first.to
		}
	default:
		return first.to
	}

	// The other parts of the token.
	for end < len(s) && (isWord(s[end]) || s[end] == '.') {
		end++
	}

	return end
}

// decoded is the text that a word says in base64.
func decoded(word string) (text string, ok bool) {
	const first = 8 // characters tell nearly always that it is none
	if len(word) < leastToken || !beginsPrintable(word[:first]) {
		return "", false
	}

	word = strings.NewReplacer("-", "+", "_", "/").Replace(word)

	data, err := base64.RawStdEncoding.DecodeString(word[:len(word)-len(word)%4])
	if err != nil {
		return "", false
	}

	if rest, err := base64.RawStdEncoding.DecodeString(word[len(word)-len(word)%4:]); err == nil {
		data = append(data, rest...)
	}

	text = string(data)

	return text, utf8.ValidString(text) && !strings.ContainsFunc(text, unprintable)
}

// beginsPrintable reports whether eight characters of base64 say something that can be
// printed.
func beginsPrintable(word string) bool {
	var data [6]byte

	if strings.IndexByte(word, '_') >= 0 || strings.IndexByte(word, '-') >= 0 {
		return false // no text in one-byte characters has these in its first bytes, but for a few
	}

	_, err := base64.StdEncoding.Decode(data[:], []byte(word))

	return err == nil && !strings.ContainsFunc(string(data[:]), unprintable)
}

func unprintable(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && !strings.ContainsRune("\n\r\t\x1b", r)
}

// isLogin reports whether a text is a name and a password: ana:secret.
func isLogin(text string) bool {
	name, password, ok := strings.Cut(text, ":")
	if !ok || name == "" || len(password) < 3 || strings.ContainsAny(text, " \n\r\t{}[]\"'<>") || strings.HasPrefix(password, "//") {
		return false
	}

	return strings.Trim(text, "0123456789:.") != "" // neither a time nor an address
}

// seemsSecret reports whether a word looks more like a secret than like a word of
// a sentence: long, or of letters and digits.
func seemsSecret(word string) bool {
	word = strings.Trim(word, `"'.,;:!?)]}>`)
	digits := strings.ContainsAny(word, "0123456789")
	alphabetic := strings.ContainsFunc(word, unicode.IsLetter)
	return len(word) >= 6 && digits && alphabetic || len(word) >= 24 && !strings.ContainsAny(word, "/.:(")
}
