package handler_test

import (
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"redrive/internal/engine"
	"redrive/internal/handler"
)

// fragile is a service that reads a request whole, does its work, and dies of it
// before it answers, if the job is of the type "poison". It answers all others.
type fragile struct {
	executions atomic.Int32
	gather     *sync.WaitGroup // holds requests back until as many have come; nil: none
}

func (s *fragile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		return
	}
	if r.Header.Get("Redrive-Job-Type") == "poison" {
		s.executions.Add(1)
		die(w)
		return
	}
	if s.gather != nil {
		s.gather.Done()
		s.gather.Wait()
	}
	w.WriteHeader(http.StatusNoContent)
}

// die closes the connection of a request, as the end of a process does. Over HTTP/2,
// where a request has no connection of its own, it ends the stream.
func die(w http.ResponseWriter) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if errors.Is(err, http.ErrNotSupported) {
		panic(http.ErrAbortHandler)
	}
	if err == nil {
		conn.Close()
	}
}

// protocols are the ways to a service.
var protocols = []string{"http", "https", "HTTP/2"}

// serveBy starts a service that is called by a protocol, and returns its handler.
func serveBy(t *testing.T, protocol, method string, service http.Handler) engine.Handler {
	t.Helper()
	server := httptest.NewUnstartedServer(service)
	t.Cleanup(server.Close)
	config := &handler.HTTP{Method: method}
	if protocol == "http" {
		server.Start()
	} else {
		server.EnableHTTP2 = protocol == "HTTP/2"
		server.StartTLS()
		config.CA = filepath.Join(t.TempDir(), "ca.pem")
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
		if err := os.WriteFile(config.CA, ca, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	config.URL = server.URL
	return build(t, handler.Config{HTTP: config})
}

// warm makes the handler keep so many idle connections.
func (s *fragile) warm(t *testing.T, h engine.Handler, connections int) {
	t.Helper()
	s.gather = new(sync.WaitGroup)
	s.gather.Add(connections)
	var calls sync.WaitGroup
	for range connections {
		calls.Go(func() {
			if err := h(t.Context(), testJob()); err != nil {
				t.Errorf("a job that does no harm: %v", err)
			}
		})
	}
	calls.Wait()
	s.gather = nil
}

// An attempt is one execution: what a service does when it dies at its work must not
// be done again by each of the connections that are open to it.
func TestHTTP_AnAttemptRunsAServiceOnceAlthoughItDiesAtWork(t *testing.T) {
	for _, protocol := range protocols {
		for _, connections := range []int{0, 1, 8} {
			for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodGet} {
				for _, payload := range []string{`{"to":"anna"}`, ""} {
					t.Run(fmt.Sprintf("%s %s with %d connections and %d bytes", protocol, method, connections, len(payload)), func(t *testing.T) {
						s := new(fragile)
						h := serveBy(t, protocol, method, s)
						if connections > 0 {
							s.warm(t, h, connections)
						}
						poison := testJob()
						poison.Type, poison.Payload = "poison", []byte(payload)

						if f := failed(t, h, poison); f.Type != "http.connection" {
							t.Errorf("failed with %v", f)
						}
						if n := s.executions.Load(); n != 1 {
							t.Errorf("one attempt ran the service's work %d times", n)
						}
						if err := h(t.Context(), testJob()); err != nil {
							t.Errorf("the next job: %v", err)
						}
					})
				}
			}
		}
	}
}
