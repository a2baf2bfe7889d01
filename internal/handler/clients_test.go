package handler_test

import (
	"crypto/x509"
	"path/filepath"
	"testing"

	"redrive/internal/handler"
	"redrive/internal/redact"
)

// A reload keeps the client of certificates that are still configured, for all handlers that
// have them, and closes that of others. The set before it may still be the one in use: the
// configuration can be refused after its handlers were built.
func TestWith_KeepsTheClientsThatAreStillConfigured(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.pair("client", &x509.Certificate{})
	ca := filepath.Join(a.dir, "ca.pem")
	trusting := &handler.HTTP{URL: "https://a/", CA: ca}
	showing := &handler.HTTP{URL: "https://b/", ClientCert: cert, ClientKey: key, CA: ca}

	s, err := handler.New(nil, redact.Default().TextFrom)
	if err != nil {
		t.Fatal(err)
	}

	reload := func(want int, services ...*handler.HTTP) {
		t.Helper()
		configs := map[string]handler.Config{}
		for i, service := range services {
			configs["t."+string(rune('a'+i))] = handler.Config{HTTP: service}
		}

		next, err := s.With(configs, redact.Default().TextFrom)
		if err != nil {
			t.Fatal(err)
		}

		s = next
		if got := len(s.Secured()); got != want {
			t.Errorf("%d clients are open, want %d", got, want)
		}
	}

	reload(1, trusting)
	first := s.Secured()[0]
	for range 3 {
		reload(1, trusting, &handler.HTTP{URL: "https://c/", CA: ca}, &handler.HTTP{URL: "http://plain/"})
		if s.Secured()[0] != first {
			t.Error("the client of the same authority was made again")
		}
	}

	reload(2, showing)
	reload(1, showing)

	// Another certificate under the same name is another client.
	a.pair("client", &x509.Certificate{})
	reload(2, showing)

	// A configuration that is refused leaves nothing behind, and the one in use alone.
	for range 3 {
		_, err = s.With(map[string]handler.Config{"t": {HTTP: trusting}, "*": {HTTP: trusting}}, redact.Default().TextFrom)
		if err == nil {
			t.Error("the pattern * was accepted")
		}
	}

	reload(1, showing)
	reload(1)
	reload(0)
	s.Close()
}
