package handler_test

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/fingerprint"
)

// cause is the cause of a failure with this body, as jobs of one type are grouped.
func cause(t *testing.T, body string) fingerprint.Cause {
	t.Helper()
	h, _ := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(500)
		io.WriteString(w, body)
	})
	f := failed(t, h, testJob())
	return fingerprint.Of("mail.send", f.Type, f.Message, f.Trace)
}

func body(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../errortext/testdata/bodies", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// Errors of one framework have one form, and are not one cause for that.
func TestHTTP_ErrorsOfOneFrameworkAreToldApart(t *testing.T) {
	for _, pair := range [][2]string{
		{"laravel_debug.json", "laravel_debug_guzzle.json"},
		{"laravel_debug.json", "laravel_production.json"},
		{"drf_detail.json", "drf_validation.json"},
		{"fastapi_detail.json", "fastapi_validation.json"},
		{"nestjs.json", "nestjs_validation.json"},
		{"phoenix.json", "phoenix_validation.json"},
		{"aspnet_validation.json", "aspnet_production.json"},
		{"rfc9457.json", "symfony_production.json"},
		{"spring_boot_debug.json", "quarkus_debug.json"},
		{"json_api.json", "graphql.json"},
		{"flask_debug.html", "django_debug.html"},
	} {
		a, b := cause(t, body(t, pair[0])), cause(t, body(t, pair[1]))
		if a.Fingerprint == b.Fingerprint {
			t.Errorf("%s and %s are one group: %+v", pair[0], pair[1], a)
		}
	}
}

// The same error of another request is the same cause, whatever values it has.
func TestHTTP_OneErrorOfAFrameworkIsOneGroup(t *testing.T) {
	values := strings.NewReplacer("ana@example.org", "bo@example.net", "Ana", "Bo Li", "4711", "88", "0af7651916cd43dd", "ffffffffffffffff",
		"balance is 30", "balance is 7", "10.0.0.7", "10.0.0.9", "items\",3", "items\",12", "7f4c3c4e", "00000000", "line 21", "line 23")
	names, err := filepath.Glob("../errortext/testdata/bodies/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		text := body(t, filepath.Base(name))
		if a, b := cause(t, text), cause(t, values.Replace(text)); a.Fingerprint != b.Fingerprint {
			t.Errorf("%s is two groups:\n%q %q\n%q %q", filepath.Base(name), a.Message, a.Frames, b.Message, b.Frames)
		}
	}
}
