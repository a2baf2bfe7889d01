package errortext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"redrive/internal/errortext"
	"redrive/internal/fingerprint"
)

// wide is a text of ASCII in UTF-16 or UTF-32: each character has so many bytes before it and
// after it.
func wide(text string, before, after int) string {
	var b strings.Builder
	for i := range len(text) {
		b.WriteString(strings.Repeat("\x00", before) + text[i:i+1] + strings.Repeat("\x00", after))
	}
	return b.String()
}

func TestDecode_ObeysTheEncodingThatIsNamed(t *testing.T) {
	const said = `{"message":"expired"}`
	for _, test := range []struct{ name, body, contentType, want string }{
		{"nothing", "", "", ""},
		{"UTF-8", "bloqué", "", "bloqué"},
		{"a mark", "\xef\xbb\xbf" + said, "application/json", said},
		{"UTF-16 with a mark, little end first", "\xff\xfe" + wide(said, 0, 1), "application/json; charset=utf-16", said},
		{"UTF-16 with a mark, big end first", "\xfe\xff" + wide(said, 1, 0), "", said},
		{"UTF-16 without a mark", wide(said, 0, 1), "application/json; charset=utf-16le", said},
		{"UTF-16 without a mark, big end first", wide(said, 1, 0), "application/json; charset=UTF-16", said},
		{"UTF-16 that nothing names", wide(said, 1, 0), "application/json", said},
		{"UTF-32", "\xff\xfe\x00\x00" + wide(said, 0, 3), "", said},
		{"UTF-32, big end first", "\x00\x00\xfe\xff" + wide(said, 3, 0), "", said},
		{"UTF-32 by its name", wide(said, 3, 0), "application/json; charset=utf-32", said},
		{"a mark goes before the header", "\xef\xbb\xbfé", "text/plain; charset=iso-8859-1", "é"},
		{"Shift_JIS", "\x83\x81\x81\x5b\x83\x8b", "text/plain; charset=Shift_JIS", "メール"},
		{"EUC-JP in quotes", "\xa5\xe1\xa1\xbc\xa5\xeb", `text/plain; charset="EUC-JP"`, "メール"},
		{"GBK", "\xc1\xac\xbd\xd3", "text/plain;charset=gb2312", "连接"},
		{"Windows-1251", "\xce\xf8\xe8\xe1\xea\xe0", "text/plain; charset=windows-1251", "Ошибка"},
		{"Windows-1252", "n\x92a pu \xeatre", "text/plain; charset=windows-1252", "n’a pu être"},
		{"a header that is malformed", "\xea", "text/plain; charset=iso-8859-1; ; x", "ê"},
		{"an unknown charset", "\xea\xe9", "text/plain; charset=klingon", "êé"},
		{"a meta element", "<html><head><META charset='shift_jis'><title>\x83\x81</title>", "text/html", "<html><head><META charset='shift_jis'><title>メ</title>"},
		{"an old meta element", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">` + "\xce", "", `<meta http-equiv="Content-Type" content="text/html; charset=windows-1251">О`},
		{"a declaration of XML", `<?xml version="1.0" encoding="ISO-8859-1"?><a>` + "\xe9</a>", "text/xml", `<?xml version="1.0" encoding="ISO-8859-1"?><a>é</a>`},
		{"XML that says UTF-16 in UTF-8", `<?xml version="1.0" encoding="utf-16"?><a>é</a>`, "", `<?xml version="1.0" encoding="utf-16"?><a>é</a>`},
		{"no charset", "Le compte est bloqu\xe9", "text/plain", "Le compte est bloqué"},
		{"the name of another one", "Le compte est bloqu\xe9", "text/plain; charset=utf-8", "Le compte est bloqué"},
		{"UTF-8 with an error", "bloqué\xff", "", "bloqué\uFFFD"},
		{"no Windows-1252", "\x83\x81", "", "\uFFFD"},
		{"the end of a text of C", "no rate\x00", "", "no rate"},
		{"a picture", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00", "image/png", ""},
	} {
		if got := errortext.Decode([]byte(test.body), test.contentType); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestPlain_IsWhatATerminalShows(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", ""},
		{"plain text", "no rate\tfor XAU\n", "no rate\tfor XAU\n"},
		{"colours", "\x1b[31mInvalid \x1b[1m`a.create()`\x1b[22m\x1b[39m", "Invalid `a.create()`"},
		{"colours of many numbers", "\x1b[38;2;255;0;0mred\x1b[0m \x1b[38:5:1mred\x1b[m", "red red"},
		{"what tput resets", "\x1b[31mred\x1b(B\x1b[m", "red"},
		{"a link", "see \x1b]8;;https://shop.example/17\x1b\\the job\x1b]8;;\x1b\\.", "see the job."},
		{"a title", "\x1b]0;import 17\ano rate", "no rate"},
		{"a title without an end", "\x1b]0;import 17\nno rate", "\nno rate"},
		{"moves of the cursor", "\x1b[2K\x1b[1A\x1b[?25lno\x1b[1Crate\x1b[?25h", "no rate"},
		{"the first column", "10 %\x1b[1G20 %", "20 %"},
		{"another place", "a\x1b[2;1Hb", "a\nb"},
		{"in one character", "\u009b31mred\u009b0m", "red"},
		{"ESC at the end", "a\x1b", "a"},
		{"a sequence that is cut off", "a\x1b[31", "a"},
		{"backspaces", "_\bn_\bo 1\b2", "no 2"},
		{"more backspaces than text", "\b\bno", "no"},
		{"progress", "10 %\r20 %\rno rate\n", "no rate\n"},
		{"progress that is wiped away", "no rate\r       \r\n", "no rate\n"},
		{"line ends of Windows", "a\r\nb\r\r\nc", "a\nb\nc"},
		{"decomposed characters", "bloque\u0301", "bloqué"},
		{"odd spaces", "10\u00a0000\u202f€", "10\u00a0000\u202f€"},
		{"other controls", "a\x00b\x07c\x7f", "abc"},
	} {
		if got := errortext.Plain(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

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

func FuzzDecode(f *testing.F) {
	for _, contentType := range []string{"", "text/html", "text/plain; charset=Shift_JIS", "text/plain; charset=utf-16", "application/json;charset=utf-8", "x; charset=iso-2022-jp"} {
		f.Add([]byte("\xff\xfe<\x00?\x00"), contentType)
		f.Add([]byte(`<?xml version="1.0" encoding="gbk"?><a>`+"\xc1\xac"), contentType)
		f.Add([]byte("<meta charset=euc-kr>\xb0\xa1\x00"), contentType)
	}
	f.Fuzz(func(t *testing.T, body []byte, contentType string) {
		text := errortext.Decode(body, contentType)
		if !utf8.ValidString(text) || len(text) > 4*len(body)+4 {
			t.Errorf("%q as %q is %q", body, contentType, text)
		}
	})
}

func FuzzPlain(f *testing.F) {
	f.Add("\x1b[31mred\x1b(B\x1b[m\r20 %\r\n_\ba\x1b]8;;x\x1b\\y\x1b[1G\x1b[2;1H\u009b1C\u009dz\u009c\x1bP1\x1b\\e\u0301")
	f.Fuzz(func(t *testing.T, text string) {
		plain := errortext.Plain(text)
		if len(plain) > len(text) || strings.ContainsAny(plain, "\x00\x07\b\r\x1b\x7f") {
			t.Errorf("%q is plainly %q", text, plain)
		}
		if again := errortext.Plain(plain); again != plain {
			t.Errorf("%q is plainly %q, and that %q", text, plain, again)
		}
	})
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
