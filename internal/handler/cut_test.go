package handler_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"redrive/internal/httpclient"
	"redrive/internal/retry"
)

// long is more of a text than is read of a body.
var long = strings.Repeat("ä line of a trace\\n", httpclient.MaxWords/8)

func TestHTTP_ReadsTheErrorInABodyThatIsCutOff(t *testing.T) {
	no := false
	for _, test := range []struct {
		name, body         string
		typ, message       string
		traceHas, notTrace string
		code               retry.Code
		retryable          *bool
	}{
		{"everything before a long trace", `{"error":{"type":"card.declined","message":"expired","code":"DEAD_LETTER","retryable":false,"trace":"` + long + `"}}`,
			"card.declined", "expired", "ä line of a trace\n", "", retry.CodeDeadLetter, &no},
		{"members behind a long list", `{"error":{"type":"card.declined","message":"expired","retryable":false,"details":[` + strings.Repeat(`{"a":["b",1]},`, 8000) + `],"code":"FAIL"}}`,
			"card.declined", "expired", `"b"`, "FAIL", "", &no},
		{"a long message first", `{"error":{"message":"` + long + `","type":"card.declined","retryable":false}}`,
			"http.500", "ä line of a trace\nä line", "500 Internal Server Error", "", "", nil},
		{"a long type", `{"error":{"retryable":false,"message":"m","type":"` + long + `"}}`, "http.500", "m", "", "", "", &no},
		{"Laravel", `{"message":"no rate","exception":"App\\NoRate","file":"/app/a.php","line":3,"trace":[` + strings.Repeat(`{"file":"/app/b.php","line":7,"function":"run"},`, 2000) + `]}`,
			"http.500", `App\NoRate: no rate`, "#1 /app/b.php(7): run()", "", "", nil},
		{"a list in front", `{"errors":["no rate"],"included":[` + strings.Repeat("1,", 40_000) + `]}`, "http.500", "no rate", "", "", "", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusInternalServerError)
				_, _ = io.WriteString(w, test.body)
			})
			f := failed(t, h, testJob())
			if f.Type != test.typ || !strings.HasPrefix(f.Message, test.message) || test.notTrace != "" && contains(f.Trace, test.notTrace) {
				t.Errorf("failure = %s: %.100s\n%.200s", f.Type, f.Message, f.Trace)
			}
			if !contains(f.Trace, test.traceHas) || f.Answer.Code != test.code || (f.Answer.Retryable == nil) != (test.retryable == nil) {
				t.Errorf("code %q, retryable %v, trace %.200s", f.Answer.Code, f.Answer.Retryable, f.Trace)
			}
		})
	}
}

// A connection that ends in the middle of the body is a body that is cut off, too.
func TestHTTP_ReadsTheErrorInABodyThatEndsEarly(t *testing.T) {
	h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, `{"error":{"type":"card.declined","retryable":false,"message":"expired since `+"\xc3")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	f := failed(t, h, testJob())
	if f.Type != "card.declined" || f.Message != "expired since … [cut]" || f.Answer.Retryable == nil || *f.Answer.Retryable {
		t.Errorf("failure = %s: %q, %+v", f.Type, f.Message, f.Answer)
	}
}

// The beginning of a long text is told although the text is cut within a character.
func TestHTTP_TellsTheBeginningOfALongText(t *testing.T) {
	for _, first := range []string{"", "x"} {
		h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusBadGateway)
			_, _ = io.WriteString(w, first+strings.Repeat("ä", httpclient.MaxWords))
		})
		if f := failed(t, h, testJob()); !contains(f.Message, "ääää") {
			t.Errorf("message %q", f.Message)
		}
	}
}
