// Package handler holds the handlers that need no code: a job's work is done
// by an HTTP service or by a program that the configuration names.
//
// Both get the same facts: the payload as it was received, the job's id, type,
// queue, run and attempt, an idempotency key that is the same for every
// attempt of one run, and a W3C traceparent. Both answer in their own tongue,
// which becomes a [job.Failure]:
//
//	          http                             exec
//	success   2xx                              exit 0
//	retry     Retry-After, code RETRY          exit 75 (EX_TEMPFAIL)
//	give up   code DEAD_LETTER, retryable no   exit 65 (EX_DATAERR)
//	failure   http.STATUS, http.timeout,       exec.exit_N, exec.signal_NAME,
//	          http.connection                  exec.timeout, exec.start
//
// The address and the command come from the configuration file only. What a
// job brings along is data: it travels in a body, a pipe, a header or a
// variable, never in an address or an argument.
package handler

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"redrive/internal/engine"
	"redrive/internal/httpclient"
	"redrive/internal/invalid"
)

// Config is one handler: exactly one of its fields is set.
type Config struct {
	HTTP *HTTP
	Exec *Exec
}

// HTTP describes a service that does the work of a job.
type HTTP struct {
	URL     string
	Timeout time.Duration // of one request; zero: the job's own ttr
}

// Exec describes a program that does the work of a job.
type Exec struct {
	Command []string      // absolute path and arguments; no shell
	Timeout time.Duration // of one execution; zero: the job's own ttr
}

// Set finds the handler of a type of job.
type Set struct {
	exact    map[string]engine.Handler
	prefixes map[string]engine.Handler // "report." for the pattern "report.*"
	client   *http.Client
}

// New builds handlers for the patterns: a type of job, or a prefix as
// "report.*". An unusable one is a *invalid.Error, whose field is
// "handlers.PATTERN", followed by the part that is wrong.
func New(configs map[string]Config) (*Set, error) {
	s := &Set{exact: map[string]engine.Handler{}, prefixes: map[string]engine.Handler{}, client: httpclient.New(128)}
	for pattern, config := range configs {
		handler, err := config.build(s.client, "handlers."+pattern)
		if err != nil {
			return nil, err
		}
		if err := s.add(pattern, handler); err != nil {
			return nil, err
		}
	}
	return s, nil
}

func (s *Set) add(pattern string, h engine.Handler) error {
	name, isPrefix := strings.CutSuffix(pattern, ".*")
	if name == "" || strings.Contains(name, "*") {
		return &invalid.Error{Field: "handlers." + pattern, Problem: `is not a pattern; write a job type, or a prefix as "report.*"`}
	}
	if isPrefix {
		s.prefixes[name+"."] = h
	} else {
		s.exact[name] = h
	}
	return nil
}

func (c Config) build(client *http.Client, field string) (engine.Handler, error) {
	switch {
	case c.HTTP != nil && c.Exec == nil:
		return newHTTP(client, *c.HTTP, field+".http")
	case c.Exec != nil && c.HTTP == nil:
		return newExec(*c.Exec, field+".exec")
	}
	return nil, &invalid.Error{Field: field, Problem: "needs exactly one of http and exec"}
}

// checkTimeout refuses durations that would end every job at once.
func checkTimeout(d time.Duration, field string) error {
	if d < 0 {
		return &invalid.Error{Field: field + ".timeout", Problem: fmt.Sprintf("%v is negative", d)}
	}
	return nil
}

// Lookup returns the handler of a type of job: that of the type itself, else
// that of the longest prefix.
func (s *Set) Lookup(typ string) (engine.Handler, bool) {
	if h, ok := s.exact[typ]; ok {
		return h, true
	}
	for end := strings.LastIndexByte(typ, '.'); end >= 0; end = strings.LastIndexByte(typ[:end], '.') {
		if h, ok := s.prefixes[typ[:end+1]]; ok && end+1 < len(typ) {
			return h, true
		}
	}
	return nil, false
}

// Close closes the connections that wait for the next request.
func (s *Set) Close() { s.client.CloseIdleConnections() }
