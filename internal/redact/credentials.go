package redact

import (
	"slices"
	"strings"
)

// run is what was found in the newest run of characters without blanks and quotes.
type run struct {
	end     int // of the run
	at      int // where its last @ is
	network int // where its last @ of user:password@tcp( is; -1: nowhere
}

// runAt is the run that contains i. Each run is looked at once.
func (t *scanner) runAt(i int) run {
	if i < t.run.end {
		return t.run
	}

	t.run.end = orEnd(t.s, i, strings.IndexAny(t.s[i:], " \t\r\n\"'`<>\\"))

	text := t.s[i:t.run.end]

	t.run.at = i + strings.LastIndexByte(text, '@')
	t.run.network = -1
	for k := range len(text) {
		if text[k] != '(' {
			continue
		}

		at := len(strings.TrimRight(text[:k], "abcdefghijklmnopqrstuvwxyz0123456789")) - 1
		if at >= 0 && at < k-1 && text[at] == '@' {
			t.run.network = i + at
		}
	}

	return t.run
}

// credentials are what stands before the host of an address. A password may hold
// what should have been escaped.
func (t *scanner) credentials(i int) span {
	run := t.runAt(i)
	authority, end := t.s[i:max(i, run.end)], run.end
	if n := strings.IndexAny(authority, "/?#"); n >= 0 {
		authority, end = authority[:n], i+n
	}

	at := strings.LastIndexByte(authority, '@')

	_, port, password := strings.Cut(authority, ":")
	number := port != "" && strings.Trim(port, "0123456789") == ""
	switch {
	case at > 0:
		return span{i, i + at}
	case at < 0 && password && run.at > end && !(number && t.web(i)):
		return span{i, run.at}
	case at < 0 && password && run.end == len(t.s) && !number && port != "" && authority[0] != '[': // it is cut off
		return span{i, run.end}
	}

	return span{}
}

// web reports whether the address whose host begins at i is one of the web, in
// which an @ in the path is nothing special.
func (t *scanner) web(i int) bool {
	scheme := strings.ToLower(t.s[max(0, i-8) : i-3])
	return slices.ContainsFunc([]string{"http", "https", "ws", "wss"}, func(known string) bool { return strings.HasSuffix(scheme, known) })
}

// privateKey is a private key as PEM that begins at i.
func privateKey(s string, i int) span {
	head := s[i:min(i+64, len(s))]
	if !strings.Contains(head, "PRIVATE KEY-----") && !strings.Contains(head, "PRIVATE KEY BLOCK-----") {
		return span{}
	}

	n := strings.Index(s[i:], "-----END")
	if n < 0 {
		return span{i, len(s)}
	}

	end := i + n + len("-----END")
	closed := strings.Index(s[end:], "-----")
	if closed < 0 {
		return span{i, len(s)}
	}

	return span{i, blankless(s, end+closed).to}
}
