package console

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// What is written on a command line, or in a variable that stands for a flag, can be a URL
// with a password. The program has a use for it in few places, and prints it in none: all
// that a command writes passes through [Console.Hiding], which knows the passwords of its
// command line.

// credentialForms are the ways to write a password between a name and a host. A password can
// have an @ in it, so the last one ends it.
var credentialForms = []*regexp.Regexp{
	// A URL: postgres://ana:secret@host/db
	regexp.MustCompile(`://([^\s:/]*):(\S+)@`),
	// What drivers for MySQL read, perhaps as the value of a flag: --db=ana:secret@tcp(host)/db
	regexp.MustCompile(`^(?:-+[\w-]+=)?([^\s:/@]+):([^\s/]\S*)@(?:[\w.-]*\(|[\w.\[\]:-]+/)`),
}

// credentialParameter is a password that is a parameter. Filters and payloads have such
// words too, in which they mean something else: it counts only in a [dataSource].
var credentialParameter = regexp.MustCompile(`(?i)(?:^|[?&;\s"'])((?:ssl)?password|passwd|pwd|secret|token|auth)=([^&;\s"']+)`)

// dataSource is an argument, or the value of a flag, that says as a whole where something
// is: a URL, "path?host=…", or "port=1 host=…". A brace, a bracket or a quote before that
// begins JSON or a filter, in which the same words mean something else.
var dataSource = regexp.MustCompile(`(?i)^(?:-+[\w-]+=)?` +
	`(?:[a-z][a-z0-9+.-]*://|[^\s{\["]*\?|(?:[^{\["]*[\s/;])?(?:host|hostaddr|server|dbname|database)=)`)

// bareLength is how long a password has to be to be hidden also where nothing around it
// says that it is one: what is shorter is a part of too many words.
const bareLength = 6

// stars are what stands for a password.
const stars = "***"

// credentials are what has to be replaced in the output of a command, and by what.
type credentials struct {
	forms map[string]string // passwords with what is around them, and the same with stars
	bare  map[string]string // passwords alone, which can be words that mean something else
}

// credentialsIn finds the passwords in a command line.
func credentialsIn(texts []string) credentials {
	all := credentials{forms: map[string]string{}, bare: map[string]string{}}
	for _, text := range texts {
		for _, form := range credentialForms {
			for _, found := range form.FindAllStringSubmatch(text, -1) {
				all.add(found[1], ":", found[2], "@")
			}
		}

		if !dataSource.MatchString(text) {
			continue
		}

		for _, found := range credentialParameter.FindAllStringSubmatch(text, -1) {
			all.add(found[1], found[1]+"=", found[2], "")
		}
	}

	return all
}

// add notes a password that belongs to a name, which is a user or a parameter, and what is
// written before and after the password. A password that is its name, as in guest:guest, would
// hide the name wherever it is written.
func (all credentials) add(name, before, password, after string) {
	for _, spelt := range spellings(password) {
		all.forms[before+spelt+after] = before + stars + after
		if len(spelt) >= bareLength && spelt != name {
			all.bare[spelt] = stars
		}
	}
}

// replacer replaces the longest texts first, since one can be a part of another.
func replacer(all ...map[string]string) *strings.Replacer {
	texts := map[string]string{}
	for _, some := range all {
		maps.Copy(texts, some)
	}

	longestFirst := slices.SortedFunc(maps.Keys(texts), func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})

	var pairs []string
	for _, text := range longestFirst {
		pairs = append(pairs, text, texts[text])
	}

	return strings.NewReplacer(pairs...)
}

// spellings are a password as it was written, escaped and unescaped as a part of a URL, and
// each of these as a log quotes it.
func spellings(password string) []string {
	plain := []string{password, url.QueryEscape(password)}

	unescaped, err := url.PathUnescape(password)
	if err == nil {
		plain = append(plain, unescaped)
	}

	all := slices.Clone(plain)
	for _, s := range plain {
		all = append(all, strings.Trim(strconv.Quote(s), `"`))
	}

	return all
}

// hider replaces passwords in what is written. Commands write a line at once. The log hides
// them by [hider.attribute] instead.
type hider struct {
	to     io.Writer
	secret *strings.Replacer
}

func (h *hider) Write(p []byte) (int, error) {
	var out bytes.Buffer
	if _, err := h.secret.WriteString(&out, string(p)); err != nil {
		return 0, err
	}

	if _, err := h.to.Write(out.Bytes()); err != nil {
		return 0, err
	}

	return len(p), nil
}

// attribute replaces passwords in the message of the log or in a value. Names, times and
// numbers stay as they are.
func (h *hider) attribute(_ []string, a slog.Attr) slog.Attr {
	if a.Value.Kind() == slog.KindString {
		a.Value = slog.StringValue(h.secret.Replace(a.Value.String()))
		return a
	}

	if a.Value.Kind() != slog.KindAny {
		return a
	}

	if list, ok := a.Value.Any().([]string); ok {
		hidden := slices.Clone(list)
		for i := range hidden {
			hidden[i] = h.secret.Replace(hidden[i])
		}

		a.Value = slog.AnyValue(hidden)

		return a
	}

	// An error, or the cause of a panic. It stays what it is unless it has a password.
	text := fmt.Sprintf("%+v", a.Value.Any())
	if hidden := h.secret.Replace(text); hidden != text {
		a.Value = slog.StringValue(hidden)
	}

	return a
}
