package redact

import (
	"slices"
	"strings"
)

// run looks once at a run of characters without blanks and quotes.
func (t *scanner) run(i int) {
	if i < t.runEnd {
		return
	}

	t.runEnd = orEnd(t.s, i, strings.IndexAny(t.s[i:], " \t\r\n\"'`<>\\"))

	run := t.s[i:t.runEnd]
	t.at, t.network = i+strings.LastIndexByte(run, '@'), -1
	for k := range len(run) {
		if run[k] != '(' {
			continue
		}

		at := len(strings.TrimRight(run[:k], "abcdefghijklmnopqrstuvwxyz0123456789")) - 1
		if at >= 0 && at < k-1 && run[at] == '@' {
			t.network = i + at
		}
	}
}

// credentials are what stands before the host of an address. A password may hold
// what should have been escaped.
func (t *scanner) credentials(i int) span {
	t.run(i)

	authority, end := t.s[i:max(i, t.runEnd)], t.runEnd
	if n := strings.IndexAny(authority, "/?#"); n >= 0 {
		authority, end = authority[:n], i+n
	}

	at := strings.LastIndexByte(authority, '@')

	_, port, password := strings.Cut(authority, ":")
	number := port != "" && strings.Trim(port, "0123456789") == ""
	switch {
	case at > 0:
		return span{i, i + at}
	case at < 0 && password && t.at > end && !(number && t.web(i)):
		return span{i, t.at}
	case at < 0 && password && t.runEnd == len(t.s) && !number && port != "" && authority[0] != '[': // it is cut off
		return span{i, t.runEnd}
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
