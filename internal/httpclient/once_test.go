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
	"net/http/httptrace"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

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

// Gunicorn closes a connection that has been idle for 2 seconds, the shortest time of the
// common servers.
func TestDo_RequestJustBeforeAServerClosesItsConnectionTakesAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := calls(t, func(http.ResponseWriter, *http.Request) {})
		defer c.Close()
		c.succeed(t, "{}", 2)
		if n := p.dialed.Load(); n != 1 {
			t.Errorf("%d connections for requests that follow one another", n)
		}

		time.Sleep(2*time.Second - time.Microsecond)
		c.succeed(t, "{}", 1)
		if n := p.dialed.Load(); n != 2 {
			t.Errorf("%d connections, want a second one", n)
		}
	})
}

// recorded keeps the last connection that it accepts over TLS.
type recorded struct {
	net.Listener
	last *tls.Conn
}

func (r *recorded) Accept() (net.Conn, error) {
	conn, err := r.Listener.Accept()
	if err != nil {
		return nil, err
	}
	r.last = conn.(*tls.Conn)
	return conn, nil
}

// certificate returns one for a server, and a configuration that trusts it.
func certificate() (server, client *tls.Config) {
	known := httptest.NewTLSServer(nil)
	defer known.Close()
	roots := x509.NewCertPool()
	roots.AddCert(known.Certificate())
	return &tls.Config{Certificates: known.TLS.Certificates}, &tls.Config{RootCAs: roots, ServerName: "example.com"}
}

// secureCalls is calls over TLS and HTTP/1. The listener knows the server's connection.
func secureCalls(t *testing.T, server, client *tls.Config, answer http.HandlerFunc) (*Client, *pipes, *recorded) {
	t.Helper()
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	listener := &recorded{Listener: tls.NewListener(p, server)}
	s := &http.Server{Handler: answer}
	go s.Serve(listener)
	t.Cleanup(func() { s.Close() })
	c := New(128, client)
	c.client.Transport.(*once).transport.DialContext = counting(p.dial)
	return c, p, listener
}

// A server closes an idle connection when the next request already has it. The client
// then closes its end too, and TLS writes its goodbye.
func TestDo_GoodbyeOfTLSIsNoByteOfARequest(t *testing.T) {
	server, client := certificate()
	for version, name := range map[uint16]string{tls.VersionTLS12: "1.2", tls.VersionTLS13: "1.3"} {
		for _, body := range []string{"{}", ""} {
			server.MaxVersion = version
			synctest.Test(t, func(t *testing.T) {
				var served atomic.Int32
				c, p, listener := secureCalls(t, server, client, func(http.ResponseWriter, *http.Request) { served.Add(1) })
				defer c.Close()
				var closes sync.Once // not the connection that follows
				ctx := httptrace.WithClientTrace(t.Context(), &httptrace.ClientTrace{GotConn: func(got httptrace.GotConnInfo) {
					if got.Reused {
						closes.Do(func() {
							_ = listener.last.CloseWrite()
							synctest.Wait()
						})
					}
				}})

				for range 2 {
					answer, err := c.Do(keyed(t, ctx, "https://service/", body))
					if err != nil {
						t.Errorf("TLS %s, %d bytes: %v", name, len(body), err)
						return
					}
					answer.Done()
					synctest.Wait()
				}
				if served.Load() != 2 || p.dialed.Load() != 2 {
					t.Errorf("TLS %s, %d bytes: %d requests were served on %d connections, want two of each",
						name, len(body), served.Load(), p.dialed.Load())
				}
			})
		}
	}
}

func TestDo_RequestOverTLSOfWhichOneByteWasWrittenIsNotSentAgain(t *testing.T) {
	server, client := certificate()
	for _, body := range []string{"{}", strings.Repeat("x", 1<<20), ""} {
		synctest.Test(t, func(t *testing.T) {
			var served atomic.Int32
			c, p, _ := secureCalls(t, server, client, func(_ http.ResponseWriter, r *http.Request) {
				served.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
			})
			defer c.Close()
			fail := p.breakable(c, 1)
			answer, err := c.Do(keyed(t, t.Context(), "https://service/", body))
			if err != nil {
				t.Fatal(err)
			}
			answer.Done()
			synctest.Wait()
			fail()

			_, err = c.Do(keyed(t, t.Context(), "https://service/", body))
			time.Sleep(time.Second) // the server lingers at a connection that broke off
			// The transport may have opened another connection by then, and sends nothing on it.
			if n := served.Load(); n != 1 || !errors.Is(err, syscall.EPIPE) {
				t.Errorf("%d bytes: the server saw %d requests, want the first, and it failed with %v", len(body), n, err)
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

// A new connection is not one of those that a transport repeats a request for.
func TestDo_ServiceThatDiesAtTheFirstRequestIsSaidToHaveClosedItsConnection(t *testing.T) {
	for _, body := range []string{"{}", ""} {
		synctest.Test(t, func(t *testing.T) {
			c, p := calls(t, func(_ http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				panic(http.ErrAbortHandler)
			})
			defer c.Close()
			_, err := c.Do(keyed(t, t.Context(), "http://service/", body))
			if n := p.dialed.Load(); n != 1 || !errors.Is(err, errClosed) {
				t.Errorf("%d bytes: %d connections, failed with %v", len(body), n, err)
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
	server, client := certificate()
	server.NextProtos = []string{"h2"}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", server)
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
	return "https://" + listener.Addr().String(), New(8, client)
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
				if closed := name == "a connection that closes"; errors.Is(err, errNoAnswer) == closed {
					t.Errorf("it failed with %v", err)
				}
			})
		}
	}
}
