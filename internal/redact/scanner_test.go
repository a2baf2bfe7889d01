package redact

import (
	"slices"
	"strings"
	"testing"
)

// marked is a text without its marks, and the spans between them: password=«S».
func marked(s string) (text string, all []span) {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "«")
		b.WriteString(before)
		if !ok {
			return b.String(), all
		}
		inside, after, _ := strings.Cut(rest, "»")
		all = append(all, span{b.Len(), b.Len() + len(inside)})
		b.WriteString(inside)
		s = after
	}
}

// Each reader of the scanner has lines here. Where nothing is marked, nothing is found.
func TestScanner_FindsTheSpansOfSecrets(t *testing.T) {
	for name, texts := range map[string][]string{
		"a name and its value": {
			`password=«hunter2» host=db`, `{"password": "«hunter2»"}`, `password: «hunter2»`, `('password', '«hunter2»')`, `user[password]=«hunter2»`,
			`**password:** «hunter2»`, `[password:protected] => «hunter2»`, `password%3D«hunter2»`, `s:8:"password";s:7:"«hunter2»";`, `auth: connection refused`,
		},
		"a name with dots": {`db.password.main=«hunter2»`, `token.js:10`, `auth.Login: denied`},
		"lines below a name": {
			"password:\n  «hunter2»", "password: |\n  «hunter2\n  second»\nhost: db", `password:\n«hunter22»\nhost`, "password:\n\nhost: db",
		},
		"by itself": {
			"sent Bearer «abc.def12345678901»", "Authorization: «Bearer abc»", "id «AKIAIOSFODNN7EXAMPLE»", "«ana:S9»@tcp(db:3306)/shop",
			"«-----BEGIN PRIVATE KEY-----\nMIIE\n-----END PRIVATE KEY-----»",
		},
		"an address":       {"postgres://«ana:hunter2»@db/shop", "https://«ana»@example.org/", "http://example.org:80/a@b"},
		"an option":        {"curl -u «ana:hunter2» x", "mysql -p«hunter2» shop", "sshpass -p «hunter2» ssh", "docker login -p «hunter2»", "docker run -p 80:80"},
		"an element":       {"<password>«hunter2»</password>", "&lt;password&gt;«hunter2»&lt;/password&gt;", "<name>password</name><value>«hunter2»</value>"},
		"a cell":           {"| password | «hunter2» |", "<td>password</td><td>«hunter2»</td>", "| password | host |\n|---|---|"},
		"a sentence":       {"the password was changed to «hunter2#9»", "password -> «hunter2», user -> ana", "password is required"},
		"a statement":      {"IDENTIFIED BY '«hunter2»'", "INSERT INTO t (name, password) VALUES «('ana', 'hunter2')»"},
		"a pair":           {`name: password, value: «hunter2»`, `value: "«hunter2»", name: password`, `name: host, value: db`},
		"a connect string": {"sqlplus ana/«hunter2»@db", "lodash/fp@4.17"},
	} {
		for _, line := range texts {
			text, want := marked(line)
			if got := newScanner(Default(), text, 0).scan(); !slices.Equal(got, want) {
				t.Errorf("%s, %q: found %v, want %v", name, line, got, want)
			}
		}
	}
}

func TestSpan_IsEmptyUnlessItEndsBehindItsBeginning(t *testing.T) {
	for at, want := range map[span]bool{{}: true, {3, 3}: true, {4, 3}: true, {3, 4}: false} {
		if at.empty() != want {
			t.Errorf("%v: empty is %v", at, at.empty())
		}
	}
	if at := (span{1, 3}); at.in("abcd") != "bc" || at.len() != 2 {
		t.Errorf("%v holds %q, of %d bytes", at, at.in("abcd"), at.len())
	}
}
