package handler_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"redrive/internal/handler"
	"redrive/internal/httpclient"
	"redrive/internal/invalid"
	"redrive/internal/job"
)

func TestHTTP_SendsTheHeadersAndTheMethodOfTheConfiguration(t *testing.T) {
	var got *http.Request
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r }))
	t.Cleanup(server.Close)
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: server.URL, Method: "PUT", Headers: map[string]httpclient.Secret{
		"Authorization": httpclient.NewSecret("Bearer t0ken-of-the-service"), "Content-Type": httpclient.NewSecret("application/vnd.shop+json"),
	}}})
	if err := h(t.Context(), testJob()); err != nil {
		t.Fatal(err)
	}
	if got.Method != "PUT" || got.Header.Get("Authorization") != "Bearer t0ken-of-the-service" ||
		got.Header.Get("Content-Type") != "application/vnd.shop+json" || got.Header.Get("Redrive-Signature") != "" {
		t.Errorf("%s %v", got.Method, got.Header)
	}
}

func TestHTTP_SignsTheTimeAndTheBody(t *testing.T) {
	var got http.Header
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header
		body, _ = io.ReadAll(r.Body)
	}))
	t.Cleanup(server.Close)
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: server.URL, Secret: httpclient.NewSecret("between us")}})
	begin := time.Now()
	if err := h(t.Context(), testJob()); err != nil {
		t.Fatal(err)
	}
	mac := hmac.New(sha256.New, []byte("between us"))
	fmt.Fprintf(mac, "%s.%s", got.Get("Redrive-Timestamp"), body)
	if want := "sha256=" + hex.EncodeToString(mac.Sum(nil)); got.Get("Redrive-Signature") != want {
		t.Errorf("signature %s, want %s", got.Get("Redrive-Signature"), want)
	}
	seconds, err := strconv.ParseInt(got.Get("Redrive-Timestamp"), 10, 64)
	if err != nil || seconds < begin.Unix() || seconds > time.Now().Unix() {
		t.Errorf("timestamp %q", got.Get("Redrive-Timestamp"))
	}
}

func TestHTTP_HidesItsSecretsWhenTheServiceRepeatsThem(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
		http.Error(w, "I do not know "+token+" nor s3cret-to-sign", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: server.URL, Secret: httpclient.NewSecret("s3cret-to-sign"),
		Headers: map[string]httpclient.Secret{"Authorization": httpclient.NewSecret("Bearer t0ken-of-the-service")}}})
	var f *job.Failure
	if err := h(t.Context(), testJob()); !errors.As(err, &f) || !strings.HasSuffix(f.Message, "I do not know (secret) nor (secret)") {
		t.Errorf("the failure is %v", err)
	}
}

// The address can have secrets, too: a password, and what the query calls one. They are hidden
// as they are written there and as they are meant.
func TestHTTP_HidesTheSecretsOfItsAddress(t *testing.T) {
	var words string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { http.Error(w, words, http.StatusForbidden) }))
	t.Cleanup(server.Close)
	address := strings.Replace(server.URL, "http://", "http://ana:pass%2Fword1@", 1) + "/charge?api_key=k3y%20of%20ours&mode=production&pin="
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: address}})
	for _, test := range []struct{ said, shown string }{
		{"I know no pass/word1, ana", "I know no (secret), ana"},
		{"nor pass%2Fword1 here", "nor (secret) here"},
		{"nor k3y of ours here", "nor (secret) here"},
		{"nor k3y%20of%20ours here", "nor (secret) here"},
		{"got YW5hOnBhc3Mvd29yZDE= from you", "got (secret) from you"},
		{"in production", "in production"},
	} {
		words = test.said
		var f *job.Failure
		if err := h(t.Context(), testJob()); !errors.As(err, &f) || !strings.HasSuffix(f.Message, test.shown) {
			t.Errorf("%q is shown as %v", test.said, err)
		}
	}
}

// One secret can be the beginning of another one.
func TestHTTP_HidesTheLongerOfTwoSecretsWhole(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Error(w, "neither "+r.Header.Get("X-Key")+" nor s3cret", http.StatusForbidden)
	}))
	t.Cleanup(server.Close)
	h := build(t, handler.Config{HTTP: &handler.HTTP{URL: server.URL, Secret: httpclient.NewSecret("s3cret"),
		Headers: map[string]httpclient.Secret{"X-Key": httpclient.NewSecret("s3cret-and-more")}}})
	var f *job.Failure
	if err := h(t.Context(), testJob()); !errors.As(err, &f) || !strings.HasSuffix(f.Message, "neither (secret) nor (secret)") {
		t.Errorf("the failure is %v", err)
	}
}

// authority makes certificates.
type authority struct {
	t    *testing.T
	key  *ecdsa.PrivateKey
	cert *x509.Certificate
	dir  string
}

func newAuthority(t *testing.T) *authority {
	a := &authority{t: t, dir: t.TempDir()}
	a.key, a.cert = a.issue(&x509.Certificate{IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.write("ca.pem", "CERTIFICATE", a.cert.Raw)
	return a
}

func (a *authority) issue(of *x509.Certificate) (*ecdsa.PrivateKey, *x509.Certificate) {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	of.SerialNumber, of.Subject = big.NewInt(time.Now().UnixNano()), pkix.Name{CommonName: "redrive test"}
	of.NotBefore, of.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = of, key
	}
	der, err := x509.CreateCertificate(rand.Reader, of, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		a.t.Fatal(err)
	}
	return key, cert
}

// write writes a PEM file and returns its path.
func (a *authority) write(name, kind string, der []byte) string {
	a.t.Helper()
	path := filepath.Join(a.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
		a.t.Fatal(err)
	}
	return path
}

// pair writes a certificate and its key.
func (a *authority) pair(name string, of *x509.Certificate) (cert, key string) {
	a.t.Helper()
	private, public := a.issue(of)
	der, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		a.t.Fatal(err)
	}
	return a.write(name+".pem", "CERTIFICATE", public.Raw), a.write(name+".key", "PRIVATE KEY", der)
}

// service is an HTTPS service that lets in only clients with a certificate of the authority.
func (a *authority) service() string {
	a.t.Helper()
	cert, key := a.pair("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	own, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		a.t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	known := x509.NewCertPool()
	known.AddCert(a.cert)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{own}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known}
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	a.t.Cleanup(server.Close)
	return server.URL
}

func TestHTTP_ComesWithItsCertificateAndTrustsItsAuthority(t *testing.T) {
	a := newAuthority(t)
	url := a.service()
	cert, key := a.pair("client", &x509.Certificate{ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	ca := filepath.Join(a.dir, "ca.pem")
	if err := build(t, handler.Config{HTTP: &handler.HTTP{URL: url, ClientCert: cert, ClientKey: key, CA: ca}})(t.Context(), testJob()); err != nil {
		t.Error(err)
	}
	for name, config := range map[string]handler.HTTP{
		"without a certificate": {URL: url, CA: ca}, "without the authority": {URL: url, ClientCert: cert, ClientKey: key}, "without both": {URL: url},
	} {
		var f *job.Failure
		if err := build(t, handler.Config{HTTP: &config})(t.Context(), testJob()); !errors.As(err, &f) || f.Type != "http.connection" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestNew_RefusesCertificatesThatCannotBeUsed(t *testing.T) {
	a := newAuthority(t)
	cert, key := a.pair("client", &x509.Certificate{})
	_, other := a.pair("other", &x509.Certificate{})
	none := filepath.Join(a.dir, "none.pem")
	for _, test := range []struct {
		config       handler.HTTP
		field, words string
	}{
		{handler.HTTP{ClientCert: cert}, "client_cert", "needs client_key too"},
		{handler.HTTP{ClientKey: key}, "client_key", "needs client_cert too"},
		{handler.HTTP{ClientCert: cert, ClientKey: other}, "client_cert", "cannot be used with its key: tls: private key does not match"},
		{handler.HTTP{ClientCert: none, ClientKey: key}, "client_cert", "no such file"},
		{handler.HTTP{CA: none}, "ca", "no such file"},
		{handler.HTTP{CA: key}, "ca", "contains no certificate in PEM format"},
		{handler.HTTP{CA: cert, URL: "http://h/"}, "url", "needs https"},
	} {
		if test.config.URL == "" {
			test.config.URL = "https://h/"
		}
		_, err := handler.New(map[string]handler.Config{"a": {HTTP: &test.config}}, nil)
		wrong, ok := errors.AsType[*invalid.Error](err)
		if !ok || wrong.Field != "handlers.a.http."+test.field || !strings.Contains(wrong.Problem, test.words) {
			t.Errorf("%+v: %v", test.config, err)
		}
	}
}
