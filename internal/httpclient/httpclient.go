// Package httpclient is how this program calls the services that an operator
// names: with the same client, in which the status of an answer decides and its
// body keeps no caller waiting, with addresses that are shown without their secrets,
// and with the same reading of Retry-After.
package httpclient

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// idleTime is how long a connection waits for the next request. A request that is sent
// while the server closes the connection fails, and cannot be sent again, so this is below
// the shortest default of the common servers: 2 seconds at Gunicorn, 5 at Node, Uvicorn,
// Hypercorn and Apache, 20 or more at Tomcat, Puma, Jetty, nginx and Kestrel, no limit at
// Go. The second that remains is for the way of the answer and a busy machine: the server
// begins to count when it has written, and this client when it has read.
const idleTime = time.Second

// New returns a client that keeps so many idle connections to each host. secure says
// which authorities the client trusts and which certificate it shows; nil: those of the
// system, and none. The client obeys no proxy of the environment and follows no redirect:
// the service that is meant is the one that the configuration names.
func New(idlePerHost int, secure *tls.Config) *Client {
	life, end := context.WithCancel(context.Background())
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}

	return &Client{
		client: http.Client{
			Transport: Once(&http.Transport{
				DialContext:            dialer.DialContext,
				ForceAttemptHTTP2:      true,
				TLSClientConfig:        secure,
				TLSHandshakeTimeout:    10 * time.Second,
				MaxIdleConns:           512,
				MaxIdleConnsPerHost:    idlePerHost,
				IdleConnTimeout:        idleTime,
				MaxResponseHeaderBytes: 64 << 10,
			}),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		drains: make(chan struct{}, maxDrains), life: life, end: end,
	}
}

// Parse reads the address of a service. No error repeats it.
func Parse(address string) (*url.URL, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("is not the address of a service")
	}

	return u, nil
}

// WithoutSecrets leaves out the parts of an address in which people put
// passwords and keys.
func WithoutSecrets(u *url.URL) string {
	return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path, RawPath: u.RawPath}).String()
}

// WithoutAddress returns what is wrong in an error of the client, whose text
// begins with the whole address.
func WithoutAddress(err error) error {
	if wrapped := new(url.Error); errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}

// RetryAfter reads the header of an answer: seconds, or a date. A number that is
// too large to hold is a very long wait.
func RetryAfter(answer *http.Response) (wait time.Duration, ok bool) {
	value := strings.TrimSpace(answer.Header.Get("Retry-After"))
	if seconds, err := strconv.ParseUint(value, 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(min(seconds, uint64(math.MaxInt64/time.Second))) * time.Second, true
	}

	date, err := http.ParseTime(value)

	return max(0, time.Until(date)), err == nil
}
