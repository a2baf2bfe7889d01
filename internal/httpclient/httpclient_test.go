package httpclient_test

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"redrive/internal/httpclient"
)

func TestParse_TakesAddressesOfServicesOnly(t *testing.T) {
	for _, address := range []string{"", "/path", "ftp://host/", "http://", "http://a b/", "mailto:a@b.c"} {
		if _, err := httpclient.Parse(address); err == nil || address != "" && strings.Contains(err.Error(), address) {
			t.Errorf("%q: %v", address, err)
		}
	}
	u, err := httpclient.Parse("https://user:secret@host:8443/a%2Fb?key=secret#f")
	if err != nil {
		t.Fatal(err)
	}
	if got := httpclient.WithoutSecrets(u); got != "https://host:8443/a%2Fb" {
		t.Errorf("it is shown as %s", got)
	}
}

func TestWithoutAddress(t *testing.T) {
	inner := errors.New("refused")
	if got := httpclient.WithoutAddress(&url.Error{Op: "Post", URL: "http://secret@host", Err: inner}); got != inner {
		t.Errorf("%v", got)
	}
	if got := httpclient.WithoutAddress(inner); got != inner {
		t.Errorf("%v", got)
	}
}

func TestRetryAfter(t *testing.T) {
	for header, want := range map[string]time.Duration{
		"": -1, "soon": -1, "-5": -1, "1.5": -1, "0": 0, " 7 ": 7 * time.Second, "Mon, 02 Jan 2006 15:04:05 GMT": 0,
	} {
		got, ok := httpclient.RetryAfter(&http.Response{Header: http.Header{"Retry-After": {header}}})
		if ok != (want >= 0) || ok && got != want {
			t.Errorf("%q: %v, %t", header, got, ok)
		}
	}
}
