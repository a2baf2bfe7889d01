package plaintext_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"redrive/internal/plaintext"
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
		if got := plaintext.Decode([]byte(test.body), test.contentType); got != test.want {
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
		if got := plaintext.Plain(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
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
		text := plaintext.Decode(body, contentType)
		if !utf8.ValidString(text) || len(text) > 4*len(body)+4 {
			t.Errorf("%q as %q is %q", body, contentType, text)
		}
	})
}

func FuzzPlain(f *testing.F) {
	f.Add("\x1b[31mred\x1b(B\x1b[m\r20 %\r\n_\ba\x1b]8;;x\x1b\\y\x1b[1G\x1b[2;1H\u009b1C\u009dz\u009c\x1bP1\x1b\\e\u0301")
	f.Add("\xc2\x00\x9d0")
	f.Fuzz(func(t *testing.T, text string) {
		plain := plaintext.Plain(text)
		if len(plain) > len(text) || strings.ContainsAny(plain, "\x00\x07\b\r\x1b\x7f") {
			t.Errorf("%q is plainly %q", text, plain)
		}
		if again := plaintext.Plain(plain); again != plain {
			t.Errorf("%q is plainly %q, and that %q", text, plain, again)
		}
	})
}
