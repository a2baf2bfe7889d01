package errortext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/errortext"
	"redrive/internal/fingerprint"
)

// Colours and the encoding make no other error.
func TestProgram_ReadsPlainText(t *testing.T) {
	const want = "Error: bloqué"
	for _, output := range []string{
		want + "\n", "\x1b[1m\x1b[31mError:\x1b[0m bloque\u0301\x1b[K\r\n", "loading 10 %\rloading 100 %\r" + want + "\n", want + "\n\n\x1b[2mRun 'import --help' for usage.\x1b[0m",
	} {
		if e := errortext.Program(output, ""); e.String() != want {
			t.Errorf("%q: %q", output, e)
		}
	}
}

func TestProgram_LooksAtStandardOutputForAnErrorBeyondDoubt(t *testing.T) {
	for stdout, want := range map[string]string{
		"imported 3 feeds\n":                                    "",
		"2 feeds failed\n":                                      "",
		"reading\n[ERROR] no rate for XAU\n":                    "[ERROR] no rate for XAU",
		"reading\nfatal: [a]: FAILED! => {\"msg\":\"no rate\"}": "fatal: [a]: FAILED! => no rate",
	} {
		if e := errortext.Program("\n", stdout); e.String() != want {
			t.Errorf("%q: %q, want %q", stdout, e, want)
		}
	}
	for stderr, want := range map[string]string{
		"last words\n":    "last words",
		"Warning: slow\n": "Error: no rate",
		"make: *** [Makefile:9: import] Error 2\n": "Error: no rate",
	} {
		if e := errortext.Program(stderr, "Error: no rate\n"); e.String() != want {
			t.Errorf("beside %q: %q, want %q", stderr, e, want)
		}
	}
}

// Answers in XML of one cause are one group, and those of two causes two.
func TestBody_GroupsDocumentsByTheirCause(t *testing.T) {
	s3 := func(code, said, id string) string {
		return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>" + said + "</Message><RequestId>" + id + "</RequestId></Error>"
	}
	soap := func(said, detail string) string {
		return `<?xml version="1.0"?><s:Envelope xmlns:s="http://schemas.xmlsoap.org/soap/envelope/"><s:Body><s:Fault><faultcode>s:Server</faultcode><faultstring>` +
			said + `</faultstring><detail><fault><message>` + detail + `</message></fault></detail></s:Fault></s:Body></s:Envelope>`
	}
	causes := map[string][]string{
		"no key":   {s3("NoSuchKey", "The specified key does not exist.", "4442587FB7D0A2F9"), s3("NoSuchKey", "The specified key does not exist.", "C1E9DD0E49204444")},
		"archived": {s3("InvalidObjectState", "The operation is not valid", "4442587FB7D0A2F9")},
		"expired":  {soap("payment 17 failed", "the card has expired"), soap("payment 204 failed", "the card has expired")},
		"declined": {soap("payment 17 failed", "the bank declines")},
		"page":     {`<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>Bad Gateway</title></head></html>`},
		"unknown":  {`<?xml version="1.0"?><result><state>no rate for XAU</state></result>`},
	}

	groups := map[string]string{}
	for cause, bodies := range causes {
		first := ""
		for _, body := range bodies {
			e, found := errortext.Body(body)
			if !found || strings.ContainsAny(e.String(), "<>") {
				t.Errorf("%s: %t, %+v", cause, found, e)
			}
			group := fingerprint.Of("job", "http.500", e.String(), e.Trace).Fingerprint
			if first == "" {
				first = group
			}
			if group != first || groups[group] != "" && groups[group] != cause {
				t.Errorf("%s: %q has the group of %q, want one group for each cause", cause, e, groups[group])
			}
			groups[group] = cause
		}
	}
}

func TestBody_ReadsPagesWithoutATitle(t *testing.T) {
	for body, want := range map[string]string{
		"<p>The gateway <b>timed</b>\nout</p>":                                              "The gateway timed out",
		"<!DOCTYPE html><style>p {}</style><script>a < b</script><div>Bad &amp; ugly</div>": "Bad & ugly",
		`<?xml version="1.0"?><!-- shop --><html><body><h1>No rate</h1></body></html>`:      "No rate",
	} {
		if e, _ := errortext.Body(body); e.String() != want {
			t.Errorf("%q: %q, want %q", body, e, want)
		}
	}
}

func TestProgram_FallsBackToTheLastLineThatSaysSomething(t *testing.T) {
	for output, want := range map[string]string{
		"":                                   "",
		"}\n":                                "}",
		"reading\nlast words\n\n---\n":       "last words",
		"last words\nINFO: bye\n":            "last words",
		"[cut] …last words\n":                "last words",
		"a warning\nWarning: one is left\n":  "a warning",
		"Warning: one is left\n":             "Warning: one is left",
		"usage limit reached\nreading\n":     "reading",
		"usage: import FEED\n  --all  all\n": "--all  all",
	} {
		if e := errortext.Program(output, ""); e.String() != want {
			t.Errorf("%q: %q, want %q", output, e, want)
		}
	}
}

func TestBody_ReadsADocumentThatIsCutOff(t *testing.T) {
	for _, body := range []string{
		`<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>no key</Message><Key>a`, "<Error><Code>NoSuchKey</Code><Message>no key", "<Error><Code>NoSuchKey</Code><Message>no key</Message>&&<",
	} {
		if e, _ := errortext.Body(body); e.String() != "NoSuchKey: no key" {
			t.Errorf("%q: %+v", body, e)
		}
	}
}

func FuzzProgram(f *testing.F) {
	names, err := filepath.Glob("testdata/corpus/*.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		for text := range strings.SplitSeq(string(content), "\n=== ") {
			f.Add(text)
		}
	}
	f.Fuzz(func(t *testing.T, output string) {
		e := errortext.Program(output, output)
		if strings.TrimSpace(e.String()) != e.String() && e.Class == "" {
			t.Errorf("%q is not trimmed", e)
		}
	})
}
