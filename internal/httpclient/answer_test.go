package httpclient

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a network within a test: a listener, and the way to dial it.
type pipes struct {
	conns  chan net.Conn
	closed chan struct{}
	dialed atomic.Int32
	far    func(net.Conn) // is told of the server's end of each connection; nil: none
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error   { close(p.closed); return nil }
func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	near, far := net.Pipe()
	p.dialed.Add(1)
	if p.far != nil {
		p.far(far)
	}
	p.conns <- far
	return near, nil
}

// calls starts a real server behind pipes and a client of it, in the clock of the test.
func calls(t *testing.T, answer http.HandlerFunc) (*Client, *pipes) {
	p := &pipes{conns: make(chan net.Conn), closed: make(chan struct{})}
	server := &http.Server{Handler: answer}
	go server.Serve(p)
	t.Cleanup(func() { server.Close() })
	c := New(128, nil)
	c.client.Transport.(*once).transport.DialContext = counting(p.dial)
	return c, p
}

func (c *Client) post(t *testing.T, ctx context.Context) *Answer {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://service/", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	a, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// open answers with the status and some words, and leaves the body open.
func open(status int, words string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(status)
		io.WriteString(w, words)
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}
}

func TestWords_WaitNoLongerThanTheStatusIsWorth(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		0: maxWait, time.Hour: maxWait, 4 * time.Second: maxWait, time.Second: time.Second / 2, // zero: no deadline
	} {
		synctest.Test(t, func(t *testing.T) {
			c, _ := calls(t, open(500, "what is wrong"))
			defer c.Close()
			ctx := t.Context()
			if left > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, left)
				defer cancel()
			}
			a := c.post(t, ctx)
			begin := time.Now()
			words := a.Words()
			a.Done()
			if string(words) != "what is wrong" || time.Since(begin) != want {
				t.Errorf("with %v left: %q after %v, want %v", left, words, time.Since(begin), want)
			}
		})
	}
}

func TestWords_AreNoMoreThanTheyMayBe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := calls(t, open(500, strings.Repeat("x", 3*MaxWords)))
		defer c.Close()
		a := c.post(t, t.Context())
		defer a.Done()
		if n := len(a.Words()); n != MaxWords {
			t.Errorf("%d bytes were read", n)
		}
	})
}

func TestWords_EndWithTheRequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := calls(t, open(500, "w"))
		defer c.Close()
		ctx, cancel := context.WithCancel(t.Context())
		a := c.post(t, ctx)
		time.AfterFunc(time.Millisecond, cancel)
		begin := time.Now()
		a.Words()
		a.Done()
		if took := time.Since(begin); took != time.Millisecond {
			t.Errorf("reading went on for %v", took)
		}
	})
}

// A 101 gives away the connection, which no longer obeys the request's context.
func TestDo_GivesUpAConnectionThatSpeaksAnotherProtocol(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 2)
		c, _ := calls(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\nhello")
			_, _ = io.Copy(io.Discard, conn) // until the client closes it
			ended <- time.Now()
		})
		begin := time.Now()
		read, unread := c.post(t, t.Context()), c.post(t, t.Context())
		if words := read.Words(); read.StatusCode != http.StatusSwitchingProtocols || len(words) > 0 {
			t.Errorf("answered %d with %q", read.StatusCode, words)
		}
		read.Done()
		unread.Done()
		c.Close()
		for range 2 {
			if took := (<-ended).Sub(begin); took != 0 {
				t.Errorf("the connection was kept for %v", took)
			}
		}
	})
}

func TestDone_LetsTheConnectionBeUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := calls(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, strings.Repeat("x", 50_000)) })
		defer c.Close()
		for range 5 {
			c.post(t, t.Context()).Done()
			synctest.Wait()
		}
		if n := p.dialed.Load(); n != 1 {
			t.Errorf("five requests took %d connections", n)
		}
	})
}

func TestWords_LetTheConnectionBeUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, p := calls(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			io.WriteString(w, strings.Repeat("x", 50_000))
		})
		defer c.Close()
		for range 5 {
			a := c.post(t, t.Context())
			if n := len(a.Words()); n != 50_000 || a.Cut() {
				t.Errorf("%d bytes were read, cut %t", n, a.Cut())
			}
			a.Done()
			synctest.Wait()
		}
		if n := p.dialed.Load(); n != 1 {
			t.Errorf("five requests took %d connections", n)
		}
	})
}

func TestDone_BodyThatStaysOpenCostsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan time.Time, 1)
		answer := open(200, "and so on")
		c, _ := calls(t, func(w http.ResponseWriter, r *http.Request) { answer(w, r); ended <- time.Now() })
		defer c.Close()
		begin := time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		c.post(t, ctx).Done()
		cancel() // the handler has returned: nothing waits, and nothing is cut off
		if time.Since(begin) != 0 {
			t.Errorf("the answer was given back after %v", time.Since(begin))
		}
		if took := (<-ended).Sub(begin); took != maxWait {
			t.Errorf("the connection was kept for %v", took)
		}
	})
}

func TestDone_ReadsSoManyBodiesAtOnceAndNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var served atomic.Int32 // requests whose connection is still there
		answer := open(200, "and so on")
		c, _ := calls(t, func(w http.ResponseWriter, r *http.Request) {
			served.Add(1)
			answer(w, r)
			served.Add(-1)
		})
		defer c.Close()
		for range maxDrains + 10 {
			c.post(t, t.Context()).Done()
		}
		synctest.Wait()
		if n := served.Load(); n != maxDrains {
			t.Errorf("%d bodies are read, want %d", n, maxDrains)
		}
	})
}

func TestClose_EndsWhatIsRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := calls(t, open(200, "and so on"))
		begin := time.Now()
		late := c.post(t, t.Context())
		c.post(t, t.Context()).Done()
		c.Close()
		late.Done() // does not begin to read any more
		synctest.Wait()
		if time.Since(begin) != 0 {
			t.Errorf("it took %v", time.Since(begin))
		}
	})
}
