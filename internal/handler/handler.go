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
// What a service or a program says can hold secrets, and a name and its value
// may stand far apart. So its whole words pass through [Hide] before anything is
// taken out of them: the last line, an excerpt, the end of a long output.
//
// What this process or machine lacks while it calls (descriptors, processes, …) is
// no failure of the job but a [shortage.Error].
//
// The address and the command come from the configuration file only. What a
// job brings along is data: it travels in a body, a pipe, a header or a
// variable, never in an address or an argument.
package handler

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/engine"
	"redrive/internal/envelope"
	"redrive/internal/httpclient"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Config is one handler: exactly one of its fields is set.
type Config struct {
	HTTP *HTTP
	Exec *Exec
}

// HTTP describes a service that does the work of a job.
type HTTP struct {
	URL        string
	Timeout    time.Duration                // of one request; zero: the job's own ttr
	Method     string                       // empty: POST
	Headers    map[string]httpclient.Secret // beside those that tell of the job, by canonical name
	Secret     httpclient.Secret            // signs each request; empty: none is signed
	ClientCert string                       // file with the certificate as which requests come; empty: none
	ClientKey  string                       // file with its key
	CA         string                       // file with the authorities that are trusted; empty: those of the system
}

// Exec describes a program that does the work of a job.
type Exec struct {
	Command []string      // absolute path and arguments; no shell
	Timeout time.Duration // of one execution; zero: the job's own ttr
}

// Hide hides the secrets of a text and returns what is shown of it from the byte
// from on; the text before that byte only tells what belongs to a secret.
type Hide func(text string, from int) string

// Set finds the handler of a type of job.
type Set struct {
	exact    map[string]engine.Handler
	prefixes map[string]engine.Handler // "report." for the pattern "report.*"

	// What the handlers use.
	clients  *clients
	secured  map[certificates]bool // the clients that belong to services with certificates of their own
	hide     Hide
	programs *programs

	runsPrograms bool // a handler does
}

// New builds handlers for the patterns: a type of job, or a prefix as
// "report.*". An unusable one is a *invalid.Error, whose field is
// "handlers.PATTERN", followed by the part that is wrong.
func New(configs map[string]Config, hide Hide) (*Set, error) {
	return build(configs, hide, newClients(), newPrograms())
}

// With builds handlers that take the place of these: they have the connections and
// the running programs in common, so one of the two sets is closed, and with it both. What
// neither of the two uses is closed at once.
func (s *Set) With(configs map[string]Config, hide Hide) (*Set, error) {
	n, err := build(configs, hide, s.clients, s.programs)
	if err != nil {
		s.clients.keep(s)
		return nil, err
	}

	s.clients.keep(s, n)

	if n.runsPrograms && !s.runsPrograms {
		n.programs.logLimits()
	}

	return n, nil
}

func build(configs map[string]Config, hide Hide, clients *clients, programs *programs) (*Set, error) {
	s := &Set{
		exact: map[string]engine.Handler{}, prefixes: map[string]engine.Handler{},
		clients: clients, secured: map[certificates]bool{}, hide: hide, programs: programs,
	}

	for _, pattern := range slices.Sorted(maps.Keys(configs)) {
		config := configs[pattern]

		handler, err := s.handlerOf(config, "handlers."+pattern)
		if err != nil {
			return nil, err
		}

		if err := s.add(pattern, handler); err != nil {
			return nil, err
		}

		s.runsPrograms = s.runsPrograms || config.Exec != nil
	}

	return s, nil
}

// add makes a handler that of a pattern.
func (s *Set) add(pattern string, h engine.Handler) error {
	// "report.*" stands for all types that begin with "report."
	name, isPrefix := strings.CutSuffix(pattern, ".*")
	if name == "" || strings.Contains(name, "*") {
		return &invalid.Error{Field: "handlers." + pattern, Problem: `is not a pattern; write a job type, or a prefix such as "report.*"`}
	}

	if isPrefix {
		s.prefixes[name+"."] = h
	} else {
		s.exact[name] = h
	}

	return nil
}

// handlerOf makes the handler that a configuration describes.
func (s *Set) handlerOf(c Config, field string) (engine.Handler, error) {
	switch {
	case c.HTTP != nil && c.Exec == nil:
		return s.buildHTTP(*c.HTTP, field+".http")
	case c.Exec != nil && c.HTTP == nil:
		return newExec(s.hide, s.programs, *c.Exec, field+".exec")
	}

	return nil, &invalid.Error{Field: field, Problem: "needs exactly one of http and exec"}
}

// buildHTTP makes the handler of a service. Those with the same certificates have a client of
// their own.
func (s *Set) buildHTTP(c HTTP, field string) (engine.Handler, error) {
	secure, id, err := c.tls(field)
	if err != nil {
		return nil, err
	}

	client := s.clients.plain
	if secure != nil {
		client = s.clients.of(id, secure)
		s.secured[id] = true
	}

	return newHTTP(client, s.hide, c, field)
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

	// For "report.daily.pdf", "report.daily." is looked up before "report.".
	for end := strings.LastIndexByte(typ, '.'); end >= 0; end = strings.LastIndexByte(typ[:end], '.') {
		if h, ok := s.prefixes[typ[:end+1]]; ok && end+1 < len(typ) {
			return h, true
		}
	}

	return nil, false
}

// CloseIdle closes the connections that wait for the next request.
func (s *Set) CloseIdle() {
	for _, client := range s.clients.all() {
		client.CloseIdle()
	}
}

// TakeOver ends the programs of jobs that a dead process of the same database left
// running, and returns when nothing of them is left. owner names the database, and is another
// one for a copy of it. Call it when the database is locked, and before the first job is
// claimed.
func (s *Set) TakeOver(ctx context.Context, owner string, log *slog.Logger) error {
	s.programs.log, s.programs.owner = log, owner

	if s.runsPrograms {
		s.programs.logLimits()
	}

	return s.programs.takeOver(ctx)
}

// Close ends what goes on in the background. Call it when no job runs any more.
func (s *Set) Close() {
	for _, client := range s.clients.all() {
		client.Close()
	}

	s.programs.close()
}

// facts is what a handler is told about the execution, beside the payload. All
// values are printable ASCII, so that they are safe in headers and variables.
type facts struct {
	id, typ, queue, run, attempt string
	idempotencyKey               string // the same for every attempt of a run
	execution                    string // ID/RUN/EXECUTION: another one each time
	traceparent                  string
	traceID                      string // that the producer gave, or empty
}

func factsOf(j job.Job) facts {
	run := strconv.Itoa(j.Run)

	return facts{
		id: escape(j.ID), typ: escape(j.Type), queue: escape(j.Queue), run: run,
		attempt:        strconv.Itoa(j.Attempts + 1),
		idempotencyKey: escape(j.ID) + "/" + run,
		execution:      escape(j.ID) + "/" + run + "/" + strconv.Itoa(j.Execution),
		traceparent:    traceparent(j),
		traceID:        escape(j.TraceID),
	}
}

// escape percent-encodes what is not visible ASCII, and the percent sign
// itself, so that the text can be recovered.
func escape(s string) string {
	if strings.IndexFunc(s, unsafeRune) < 0 {
		return s
	}

	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; unsafeRune(rune(c)) {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}

	return b.String()
}

func unsafeRune(r rune) bool { return r <= ' ' || r > '~' || r == '%' }

// traceForm is version 00 of W3C Trace Context.
var traceForm = regexp.MustCompile(`^00-([0-9a-f]{32})-([0-9a-f]{16})-[0-9a-f]{2}$`)

// traceparent is the one that the job brought along in its meta. Else it is
// made from the producer's trace id, where that has the form of one, or from
// the job's own id: then all attempts and runs share the trace, and each
// execution is a span of its own.
func traceparent(j job.Job) string {
	var meta struct {
		Traceparent string `json:"traceparent"`
	}
	if err := json.Unmarshal(j.Meta, &meta); err == nil && validTrace(meta.Traceparent) {
		return meta.Traceparent
	}

	// The trace is the producer's, or the same for all executions of the job.
	trace, ok := traceOf(j.TraceID)
	if !ok {
		sum := sha256.Sum256([]byte(j.ID))
		trace = hex.EncodeToString(sum[:16])
	}

	span := sha256.Sum256(fmt.Appendf(nil, "%s/%d/%d", j.ID, j.Run, j.Execution))

	return "00-" + trace + "-" + hex.EncodeToString(span[:8]) + "-01"
}

// traceIDForm is 32 hexadecimal digits, or a UUID.
var traceIDForm = regexp.MustCompile(`^([0-9a-f]{32}|[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12})$`)

// traceOf makes the trace id of a traceparent out of a producer's.
func traceOf(id string) (trace string, ok bool) {
	id = strings.ToLower(id)
	return strings.ReplaceAll(id, "-", ""), traceIDForm.MatchString(id) && strings.Trim(id, "0-") != ""
}

func validTrace(s string) bool {
	parts := traceForm.FindStringSubmatch(s)
	return parts != nil && strings.Trim(parts[1], "0") != "" && strings.Trim(parts[2], "0") != ""
}

// Envelopes adds to the handlers one for envelopes that could not be read when
// they came. When a user replays such an envelope, it is read again, and a version
// of this program that understands it gives its data to the handler of its URN.
func Envelopes(handlers func(typ string) (engine.Handler, bool)) func(typ string) (engine.Handler, bool) {
	reread := func(ctx context.Context, j job.Job) error {
		// The payload of such a job is the envelope as it came.
		e, poison := envelope.Parse(j.Payload)
		if poison != nil {
			return &job.Failure{
				ErrorInfo: job.ErrorInfo{Type: envelope.ErrorType(poison.Reason), Message: poison.Problem},
				Answer:    retry.Answer{Poison: poison.Reason},
			}
		}

		h, ok := handlers(e.URN)
		if !ok {
			return &job.Failure{
				ErrorInfo: job.ErrorInfo{Type: "unknown_type", Message: fmt.Sprintf(
					"the envelope can now be read, but no handler is configured for %q; configure one, then replay", e.URN)},
				Answer: retry.Answer{Code: retry.CodeDeadLetter},
			}
		}

		// The handler gets the job as it would be if the envelope had been understood when it
		// came.
		j.Type, j.Payload = e.URN, e.Data
		j.Meta, j.TraceID = e.Meta, e.TraceID

		return h(ctx, j)
	}

	return func(typ string) (engine.Handler, bool) {
		if typ == envelope.Unread {
			return reread, true
		}
		return handlers(typ)
	}
}
