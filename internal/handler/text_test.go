package handler_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// answered is the failure that an answer with a header and a body leaves.
func answered(t *testing.T, header map[string]string, body string) *job.Failure {
	t.Helper()
	h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range header {
			w.Header().Set(name, value)
		}
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, body)
	})
	return failed(t, h, testJob())
}

// declined is an answer whose code decides what becomes of the job.
const declined = `{"error": {"type": "card.declined", "message": "the card has expired", "code": "DEAD_LETTER"}}`

// isDeclined fails a test in which that answer was not understood.
func isDeclined(t *testing.T, name string, f *job.Failure) {
	t.Helper()
	if f.Type != "card.declined" || f.Message != "the card has expired" || f.Answer.Code != retry.CodeDeadLetter {
		t.Errorf("%s: %s: %s, code %q", name, f.Type, f.Message, f.Answer.Code)
	}
}

func TestHTTP_ObeysAnAnswerInAnyEncoding(t *testing.T) {
	units := utf16.Encode([]rune(declined))
	var little, big []byte
	for _, u := range units {
		little, big = append(little, byte(u), byte(u>>8)), append(big, byte(u>>8), byte(u))
	}
	for name, body := range map[string]string{
		"a byte order mark":                "\xef\xbb\xbf" + declined,
		"UTF-16":                           "\xff\xfe" + string(little),
		"UTF-16, big end first":            "\xfe\xff" + string(big),
		"UTF-16 without a byte order mark": string(little),
	} {
		isDeclined(t, name, answered(t, map[string]string{"Content-Type": "application/json"}, body))
	}
}

func TestHTTP_DecodesTheTextOfAnAnswer(t *testing.T) {
	for _, test := range []struct{ contentType, body, want string }{
		{"text/plain; charset=Shift_JIS", "\x83\x81\x81\x5b\x83\x8b", "500 Internal Server Error: メール"},
		{"text/plain; charset=windows-1252", "Le compte est bloqu\xe9", "500 Internal Server Error: Le compte est bloqué"},
		{"text/html; charset=iso-8859-1", "<title>Le compte est bloqu\xe9</title>", "Le compte est bloqué"},
		{"text/plain", "Le compte est bloqu\xe9", "500 Internal Server Error: Le compte est bloqué"},
		{"application/xml", `<?xml version="1.0"?><Error><Code>NoSuchKey</Code><Message>no key</Message></Error>`, "NoSuchKey: no key"},
		{"application/json", `{"message":"\u001b[31mno rate\u001b[0m"}`, "no rate"},
		{"application/json", `{"error":{"message":"\u001b[31mno rate\u001b[0m"}}`, "no rate"},
		{"text/plain", "\x1b[31mno rate\x1b[0m", "500 Internal Server Error: no rate"},
		{"image/png", "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x01\x00", "500 Internal Server Error"},
	} {
		f := answered(t, map[string]string{"Content-Type": test.contentType}, test.body)
		if !strings.HasSuffix(f.Message, test.want) {
			t.Errorf("%s %q: message %q, want %q", test.contentType, test.body, f.Message, test.want)
		}
	}
}

// packed is a text behind a writer that packs it.
func packed(t *testing.T, text string, open func(io.Writer) io.WriteCloser) string {
	t.Helper()
	var b bytes.Buffer
	w := open(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func intoGzip(w io.Writer) io.WriteCloser   { return gzip.NewWriter(w) }
func intoZlib(w io.Writer) io.WriteCloser   { return zlib.NewWriter(w) }
func intoBrotli(w io.Writer) io.WriteCloser { return brotli.NewWriter(w) }

func intoZstd(w io.Writer) io.WriteCloser {
	packer, err := zstd.NewWriter(w)
	if err != nil {
		panic(err) // unreachable: there are no options
	}
	return packer
}

func intoDeflate(w io.Writer) io.WriteCloser {
	deflate, err := flate.NewWriter(w, flate.DefaultCompression)
	if err != nil {
		panic(err) // unreachable: the level is one that exists
	}
	return deflate
}

func TestHTTP_UnpacksTheAnswer(t *testing.T) {
	for encoding, body := range map[string]string{
		"gzip":              packed(t, declined, intoGzip),
		"x-gzip":            packed(t, declined, intoGzip),
		"deflate":           packed(t, declined, intoZlib),
		"Deflate":           packed(t, declined, intoDeflate),
		"br":                packed(t, declined, intoBrotli),
		"zstd":              packed(t, declined, intoZstd),
		"identity, br":      packed(t, declined, intoBrotli),
		"deflate, gzip":     packed(t, packed(t, declined, intoZlib), intoGzip),
		"deflate, identity": packed(t, declined, intoDeflate),
	} {
		isDeclined(t, encoding, answered(t, map[string]string{"Content-Type": "application/json", "Content-Encoding": encoding}, body))
	}
	for _, encoding := range []string{"deflate", "br", "zstd", "x-gzip", "identity", "zip"} { // it is named and not used
		isDeclined(t, encoding+" in name", answered(t, map[string]string{"Content-Encoding": encoding}, declined))
	}
}

// What is packed can be much longer than what it is packed into, and can end early.
func TestHTTP_UnpacksNoMoreThanItReads(t *testing.T) {
	text := `{"error":{"type":"card.declined","message":"the card has expired","code":"DEAD_LETTER","trace":"` + strings.Repeat("a line\\n", 4<<20) + `"}}`
	body := packed(t, text, intoZlib)
	for name, body := range map[string]string{"long": body, "cut off": body[:len(body)/2]} {
		f := answered(t, map[string]string{"Content-Encoding": "deflate"}, body)
		isDeclined(t, name, f)
		if len(f.Trace) > 80<<10 {
			t.Errorf("%s: a trace of %d bytes", name, len(f.Trace))
		}
	}
}

// Programs of Windows and older ones write other encodings, and many write for terminals.
func TestExec_ShowsOutputAsATerminalDoes(t *testing.T) {
	for output, want := range map[string]string{
		"\x1b[1m\x1b[31mError:\x1b[0m no rate\n":                       "Error: no rate",
		"Le compte est bloqu\xe9\n":                                    "Le compte est bloqué",
		"loading 10 %\rloading 100 %\rno rate\n":                       "no rate",
		"\xff\xfen\x00o\x00 \x00r\x00a\x00t\x00e\x00\n\x00":            "no rate",
		strings.Repeat("loading 10 %\r", 40<<10) + "Error: no rate\n":  "Error: no rate",
		strings.Repeat("é", 100<<10) + "\nLe compte est bloqu\xc3\xa9": "Le compte est bloqué",
	} {
		f := says(t, output, "")
		if f.Message != want || strings.ContainsAny(f.Trace, "\x1b\r") || !utf8.ValidString(f.Trace) || !strings.Contains(f.Trace, want) {
			t.Errorf("%.60q: message %q, trace %.100q", output, f.Message, f.Trace)
		}
	}
}

// A message of a service can be everything that a program of its own printed.
func TestHTTP_ReadsAMessageThatIsAWholeOutput(t *testing.T) {
	const output = `Traceback (most recent call last):\n  File \"/app/a.py\", line 1, in f\nValueError: no rate\n`
	for body, want := range map[string]job.ErrorInfo{
		`{"error": {"message": "` + output + `"}}`:                          {Type: "http.500", Message: "ValueError: no rate"},
		`{"message": "` + output + `"}`:                                     {Type: "http.500", Message: "ValueError: no rate"},
		`{"error": {"type": "rates.missing", "message": "` + output + `"}}`: {Type: "rates.missing", Message: "no rate"},
	} {
		f := answered(t, map[string]string{"Content-Type": "application/json"}, body)
		got, _, _ := strings.Cut(f.Message, " (code ")
		if f.Type != want.Type || got != want.Message || !strings.Contains(f.Trace, "a.py") {
			t.Errorf("%s: %s: %s, trace %q", body, f.Type, f.Message, f.Trace)
		}
	}
}
