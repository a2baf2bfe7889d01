package handler_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/handler"
	"redrive/internal/job"
)

// wired starts a service that speaks HTTP by hand: it reads each request, and
// says what it is told to. The connection is closed when speak returns.
func wired(t *testing.T, speak func(conn net.Conn)) (address string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer conn.Close()
				if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
					io.Copy(io.Discard, r.Body)
					speak(conn)
				}
			})
		}
	})
	t.Cleanup(func() { l.Close(); all.Wait() })
	return "http://" + l.Addr().String() + "/work"
}

// stay leaves a connection open until the other side gives it up.
func stay(conn net.Conn) { io.Copy(io.Discard, conn) }

// bodies are what can become of the body of an answer.
var bodies = []struct {
	name  string
	speak func(conn net.Conn)
}{
	{"none", func(c net.Conn) { fmt.Fprint(c, "Content-Length: 0\r\n\r\n") }},
	{"short", func(c net.Conn) { fmt.Fprint(c, "Content-Length: 5\r\n\r\nwords") }},
	{"up to the end of the connection", func(c net.Conn) { fmt.Fprint(c, "Connection: close\r\n\r\nwords") }},
	{"silent", func(c net.Conn) { fmt.Fprint(c, "Content-Length: 5\r\n\r\n"); stay(c) }},
	{"slow", func(c net.Conn) {
		for fmt.Fprint(c, "Transfer-Encoding: chunked\r\n\r\n"); ; <-time.After(100 * time.Millisecond) {
			if _, err := fmt.Fprint(c, "1\r\nw\r\n"); err != nil {
				return
			}
		}
	}},
	{"endless", func(c net.Conn) {
		fmt.Fprint(c, "Connection: close\r\n\r\n")
		for words := strings.Repeat("words ", 10_000); ; {
			if _, err := fmt.Fprint(c, words); err != nil {
				return
			}
		}
	}},
	{"too large", func(c net.Conn) { fmt.Fprintf(c, "Content-Length: %d\r\n\r\nwords", 1<<50); stay(c) }},
	{"cut", func(c net.Conn) { fmt.Fprint(c, "Content-Length: 500\r\n\r\nwords") }},
	{"broken", func(c net.Conn) { fmt.Fprint(c, "Transfer-Encoding: chunked\r\n\r\nno chunk\r\n"); stay(c) }},
}

// beginnings are what can become of an answer before its header is complete;
// outcome is empty where it is.
var beginnings = []struct {
	name, outcome string
	timeout       time.Duration
	speak         func(conn net.Conn, status int) // nil: the header comes at once
}{
	{name: "at once", timeout: time.Minute},
	{"never", "http.timeout", 50 * time.Millisecond, func(c net.Conn, _ int) { stay(c) }},
	{"half a header", "http.timeout", 50 * time.Millisecond, func(c net.Conn, status int) { fmt.Fprintf(c, "HTTP/1.1 %d X\r\nServ", status); stay(c) }},
	{"a promise only", "http.timeout", 50 * time.Millisecond, func(c net.Conn, _ int) { fmt.Fprint(c, "HTTP/1.1 103 Early Hints\r\n\r\n"); stay(c) }},
	{"closed", "http.connection", time.Minute, func(net.Conn, int) {}},
	{"closed in the header", "http.connection", time.Minute, func(c net.Conn, status int) { fmt.Fprintf(c, "HTTP/1.1 %d X\r\nServ", status) }},
	{"a header too large", "http.connection", time.Minute, func(c net.Conn, status int) {
		fmt.Fprintf(c, "HTTP/1.1 %d X\r\nServer: %s\r\n\r\n", status, strings.Repeat("x", 1<<20))
	}},
	{"no HTTP", "http.connection", time.Minute, func(c net.Conn, _ int) { fmt.Fprint(c, "220 mail.example.org ESMTP\r\n") }},
}

// Once the header of an answer is there, its status alone decides, whatever
// becomes of the body, and while the job has time left. Before that, what became
// of the connection does.
func TestHTTP_TheStatusDecides(t *testing.T) {
	const redirect = "Location: http://127.0.0.1:1/elsewhere\r\n"
	var all sync.WaitGroup // t.Parallel would run no more at once than there are processors
	for _, status := range []int{200, 201, 204, 301, 302, 307, 400, 404, 410, 429, 500, 503} {
		for _, begins := range beginnings {
			for _, body := range bodies {
				if begins.speak != nil && body.name != "none" {
					continue
				}
				want := begins.outcome
				if begins.speak == nil && status/100 != 2 {
					want = fmt.Sprintf("http.%d", status)
				}
				url := wired(t, func(c net.Conn) {
					if begins.speak != nil {
						begins.speak(c, status)
						return
					}
					fmt.Fprintf(c, "HTTP/1.1 %d X\r\n", status)
					if status/100 == 3 {
						fmt.Fprint(c, redirect)
					}
					body.speak(c)
				})
				h := build(t, handler.Config{HTTP: &handler.HTTP{URL: url, Timeout: begins.timeout}})
				all.Go(func() {
					ttr, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
					defer cancel()
					got, err := "", h(ttr, testJob())
					if f := new(job.Failure); errors.As(err, &f) {
						got = f.Type
					}
					if got != want || ttr.Err() != nil {
						t.Errorf("status %d, header: %s, body: %s: %q (%v), want %q; time left: %t",
							status, begins.name, body.name, got, err, want, ttr.Err() == nil)
					}
				})
			}
		}
	}
	all.Wait()
}

// A person reads what the service said, even when it did not say all of it.
func TestHTTP_TellsTheWordsThatCame(t *testing.T) {
	for _, body := range bodies[1:] {
		if body.name == "silent" || body.name == "broken" {
			continue
		}
		t.Run(body.name, func(t *testing.T) {
			t.Parallel()
			url := wired(t, func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 500 X\r\n"); body.speak(c) })
			f := failed(t, build(t, handler.Config{HTTP: &handler.HTTP{URL: url}}), testJob())
			if !contains(f.Message, "500 Internal Server Error: w") {
				t.Errorf("message = %q", f.Message)
			}
		})
	}
}
