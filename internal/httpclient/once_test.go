package httpclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"

	"golang.org/x/net/http2"
)

// keyed is a request that a transport would repeat on its own.
func keyed(t *testing.T, ctx context.Context, address, body string) *http.Request {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Idempotency-Key", "1")
	return r
}

// succeed sends requests one after the other.
func (c *Client) succeed(t *testing.T, body string, times int) {
	t.Helper()
	for range times {
		answer, err := c.Do(keyed(t, t.Context(), "http://service/", body))
		if err != nil {
			t.Fatalf("a request that the service answers: %v", err)
		}
		answer.Done()
		synctest.Wait()
	}
}

func TestDo_ConnectionThatTheServerClosedWhileIdleCostsNoRequest(t *testing.T) {
	for _, body := range []string{"{}", ""} {
		synctest.Test(t, func(t *testing.T) {
			var served atomic.Int32
			var idle net.Conn
			c, p := calls(t, func(http.ResponseWriter, *http.Request) { served.Add(1) })
			defer c.Close()
			p.far = func(conn net.Conn) { idle = conn }
			c.succeed(t, body, 1)
			idle.Close()
			synctest.Wait()

			c.succeed(t, body, 1)
			if served.Load() != 2 || p.dialed.Load() != 2 {
				t.Errorf("%d requests were served on %d connections, want two of each", served.Load(), p.dialed.Load())
			}
		})
	}
}

// failing is a connection to which nothing can be written from some time on, except
// the first bytes of what is written next. No read tells so.
type failing struct {
	net.Conn
	broken *atomic.Bool
	first  int
}

func (f *failing) Write(b []byte) (int, error) {
	if !f.broken.Load() {
		return f.Conn.Write(b)
	}
	n, err := f.Conn.Write(b[:min(f.first, len(b))])
	return n, errors.Join(err, syscall.EPIPE)
}

// breakable makes each connection so far fail when the function that it returns is called.
func (p *pipes) breakable(c *Client, first int) (fail func()) {
	var broken atomic.Pointer[atomic.Bool]
	broken.Store(new(atomic.Bool))
	c.client.Transport.(*once).transport.DialContext = counting(func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := p.dial(ctx, network, address)
		return &failing{conn, broken.Load(), first}, err
	})
	return func() { broken.Swap(new(atomic.Bool)).Store(true) }
}

func TestDo_RequestOfWhichNothingWasWrittenIsSentOnAnotherConnection(t *testing.T) {
	for _, body := range []string{"{}", ""} {
		synctest.Test(t, func(t *testing.T) {
			c, p := calls(t, func(http.ResponseWriter, *http.Request) {})
			defer c.Close()
			fail := p.breakable(c, 0)
			c.succeed(t, body, 1)
			fail()

			c.succeed(t, body, 1)
			if n := p.dialed.Load(); n != 2 {
				t.Errorf("%d connections, want a second one", n)
			}
		})
	}
}

func TestDo_RequestOfWhichOneByteWasWrittenIsNotSentAgain(t *testing.T) {
	for _, body := range []string{"{}", strings.Repeat("x", 1<<20), ""} {
		synctest.Test(t, func(t *testing.T) {
			var served atomic.Int32
			c, p := calls(t, func(_ http.ResponseWriter, r *http.Request) {
				served.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
			})
			defer c.Close()
			fail := p.breakable(c, 1)
			c.succeed(t, body, 1)
			fail()

			if _, err := c.Do(keyed(t, t.Context(), "http://service/", body)); !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%d bytes: %v, want the error of the connection", len(body), err)
			}
			synctest.Wait()
			if n := served.Load(); n != 1 {
				t.Errorf("%d bytes: sent again on another connection", len(body))
			}
		})
	}
}

// The workers of a service share an address: what killed one is not given to the others.
func TestDo_ServiceThatDiesAtWorkIsAskedOnceAndKeepsItsOtherConnections(t *testing.T) {
	const connections = 8
	for _, body := range []string{"{}", ""} {
		synctest.Test(t, func(t *testing.T) {
			var poisoned atomic.Int32
			gate := make(chan struct{})
			c, p := calls(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				if r.URL.Path == "/poison" {
					poisoned.Add(1)
					panic(http.ErrAbortHandler) // the server closes the connection
				}
				<-gate
			})
			defer c.Close()
			together := func(n int) {
				for range n {
					go func() {
						if answer, err := c.Do(keyed(t, t.Context(), "http://service/", body)); err != nil {
							t.Error(err)
						} else {
							answer.Done()
						}
					}()
				}
				synctest.Wait() // all of them wait for the gate
				for range n {
					gate <- struct{}{}
				}
				synctest.Wait()
			}
			together(connections)

			_, err := c.Do(keyed(t, t.Context(), "http://service/poison", body))
			if n := poisoned.Load(); n != 1 || !errors.Is(err, errClosed) {
				t.Errorf("%d bytes: done %d times, failed with %v", len(body), n, err)
			}

			together(connections / 2)
			if n := p.dialed.Load(); n != connections {
				t.Errorf("%d bytes: %d connections were opened", len(body), n)
			}
		})
	}
}

// refusing is an HTTP/2 server that reads a request whole, counts it as done, and then
// refuses it in a way that makes clients send it again.
type refusing struct {
	done   atomic.Int32
	refuse func(f *http2.Framer, stream uint32) error
}

func (s *refusing) serve(conn net.Conn) error {
	defer conn.Close()
	if _, err := io.ReadFull(conn, make([]byte, len(http2.ClientPreface))); err != nil {
		return err
	}
	f := http2.NewFramer(conn, conn)
	if err := f.WriteSettings(); err != nil {
		return err
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			return err
		}
		switch kind := frame.Header().Type; {
		case kind == http2.FrameSettings && !frame.(*http2.SettingsFrame).IsAck():
			err = f.WriteSettingsAck()
		case (kind == http2.FrameHeaders || kind == http2.FrameData) && frame.Header().Flags.Has(http2.FlagDataEndStream):
			s.done.Add(1)
			err = s.refuse(f, frame.Header().StreamID)
		}
		if err != nil {
			return err
		}
	}
}

// listen starts the server and returns its address and a client of it.
func (s *refusing) listen(t *testing.T) (address string, c *Client) {
	t.Helper()
	known := httptest.NewTLSServer(nil) // for its certificate
	defer known.Close()
	config := &tls.Config{Certificates: known.TLS.Certificates, NextProtos: []string{"h2"}}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() { _ = s.serve(conn) }() // ends with the connection
		}
	}()
	roots := x509.NewCertPool()
	roots.AddCert(known.Certificate())
	return "https://" + listener.Addr().String(), New(8, &tls.Config{RootCAs: roots})
}

func TestDo_RequestThatAnHTTP2ServerRefusesIsNotSentAgain(t *testing.T) {
	for name, refuse := range map[string]func(f *http2.Framer, stream uint32) error{
		"a refused stream": func(f *http2.Framer, stream uint32) error {
			return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
		},
		"a protocol error": func(f *http2.Framer, stream uint32) error { return f.WriteRSTStream(stream, http2.ErrCodeProtocol) },
		"a server that goes": func(f *http2.Framer, stream uint32) error {
			return f.WriteGoAway(stream-1, http2.ErrCodeNo, nil)
		},
		"a connection that closes": func(*http2.Framer, uint32) error { return errors.New("closed") },
	} {
		for _, body := range []string{"{}", string(bytes.Repeat([]byte("x"), 40_000)), ""} {
			t.Run(fmt.Sprintf("%s, %d bytes", name, len(body)), func(t *testing.T) {
				s := &refusing{refuse: refuse}
				address, c := s.listen(t)
				defer c.Close()
				_, err := c.Do(keyed(t, t.Context(), address, body))
				if n := s.done.Load(); err == nil || n != 1 {
					t.Errorf("it was sent %d times, and failed with %v", n, err)
				}
			})
		}
	}
}
