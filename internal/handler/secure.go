package handler

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net/textproto"
	"net/url"
	"os"
	"slices"
	"strings"

	"redrive/internal/invalid"
)

// CheckHeader returns the canonical form of a header that a configuration may set,
// or what is wrong with the name.
func CheckHeader(name string) (canonical, problem string) {
	if name == "" || strings.Trim(strings.ToLower(name), "abcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return "", "is not the name of a header such as X-Team"
	}

	// "x-team" and "X-TEAM" are one header, X-Team.
	canonical = textproto.CanonicalMIMEHeaderKey(name)
	switch canonical {
	case "Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect", "Idempotency-Key", "Traceparent":
		return "", canonical + " is set by Redrive"
	}

	if strings.HasPrefix(canonical, "Redrive-") {
		return "", "headers that begin with Redrive- are set by Redrive"
	}

	return canonical, ""
}

// tls has the authorities that a service is trusted by and the certificate of this side; nil when the
// configuration says nothing about it. Files with the same contents are the same certificates.
func (c HTTP) tls(field string) (secure *tls.Config, id certificates, err error) {
	if c.ClientCert == "" && c.ClientKey == "" && c.CA == "" {
		return nil, id, nil
	}

	wrong := func(name, problem string) (*tls.Config, certificates, error) {
		return nil, id, &invalid.Error{Field: field + "." + name, Problem: problem}
	}
	contents := sha256.New()
	secure = &tls.Config{MinVersion: tls.VersionTLS12}

	// A client certificate comes with its key, or neither does.
	switch {
	case !strings.HasPrefix(strings.ToLower(c.URL), "https://"):
		return wrong("url", "needs https, because the handler has certificates")
	case c.ClientCert == "" && c.ClientKey != "":
		return wrong("client_key", "needs client_cert too")
	case c.ClientCert != "" && c.ClientKey == "":
		return wrong("client_cert", "needs client_key too")
	case c.ClientCert != "":
		pair, err := tls.LoadX509KeyPair(c.ClientCert, c.ClientKey)
		if err != nil {
			return wrong("client_cert", "cannot be used with its key: "+reasonOf(err))
		}

		secure.Certificates = []tls.Certificate{pair}
		fmt.Fprintf(contents, "shown %q\n", pair.Certificate)
	}

	// A service with a certificate of this authority is trusted, and no other: the authorities
	// of the system no longer count.
	if c.CA != "" {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			return wrong("ca", reasonOf(err))
		}

		fmt.Fprintf(contents, "trusted %q\n", pem)

		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return wrong("ca", fmt.Sprintf("%s contains no certificate in PEM format", c.CA))
		}
	}

	return secure, certificates(contents.Sum(nil)), nil
}

// reasonOf says why a file cannot be used; it never holds what is in the file.
func reasonOf(err error) string {
	if file := new(os.PathError); errors.As(err, &file) {
		return file.Error()
	}
	return err.Error()
}

// leastHidden is how long a secret is that is looked for in what a service says:
// shorter ones would be found in many words.
const leastHidden = 6

// hiding also hides the secrets that are sent to a service, which could repeat them
// in an answer.
func (c HTTP) hiding(hide Hide) Hide {
	// The longest first, since one secret can be the beginning of another.
	secrets := append(c.secrets(), c.secretsOfAddress(hide)...)
	slices.SortFunc(secrets, func(a, b string) int { return len(b) - len(a) })

	var pairs []string
	for _, text := range secrets {
		if len(text) >= leastHidden {
			pairs = append(pairs, text, "(secret)")
		}
	}

	if len(pairs) == 0 {
		return hide
	}

	mask := strings.NewReplacer(pairs...)

	return func(text string, from int) string { return hide(mask.Replace(text), from) } // a service's words are shown from their beginning
}

// secrets are what only the service may know: of "Bearer abc" also the second word.
func (c HTTP) secrets() []string {
	all := []string{c.Secret.Reveal()}
	for _, value := range c.Headers {
		_, last, _ := strings.Cut(value.Reveal(), " ")
		all = append(all, value.Reveal(), last)
	}

	return all
}

// secretsOfAddress are a password in the address, and what the query has under names that are
// hidden: each as it is meant, and as it is written there.
func (c HTTP) secretsOfAddress(hide Hide) []string {
	address, err := url.Parse(c.URL)
	if err != nil {
		return nil // newHTTP has refused it
	}

	var all []string
	if password, ok := address.User.Password(); ok {
		_, written, _ := strings.Cut(address.User.String(), ":")
		sent := base64.StdEncoding.EncodeToString([]byte(address.User.Username() + ":" + password))
		all = append(all, password, written, sent)
	}

	for pair := range strings.SplitSeq(address.RawQuery, "&") {
		name, written, _ := strings.Cut(pair, "=")

		value, err := url.QueryUnescape(written)
		if err != nil {
			value = written
		}

		if value != "" && !strings.Contains(hide(name+"="+value, 0), value) {
			all = append(all, value, written)
		}
	}

	return all
}
