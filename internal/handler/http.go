package handler

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode"

	"redrive/internal/clip"
	"redrive/internal/engine"
	"redrive/internal/errortext"
	"redrive/internal/httpclient"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/plaintext"
	"redrive/internal/resource"
	"redrive/internal/retry"
)

// service does the work of jobs by requests to one address.
type service struct {
	client  *httpclient.Client
	hide    Hide
	url     string
	shown   string // the address as errors show it: without secrets
	method  string
	timeout time.Duration
	headers map[string]httpclient.Secret
	secret  httpclient.Secret
}

func newHTTP(client *httpclient.Client, hide Hide, config HTTP, field string) (engine.Handler, error) {
	address, err := httpclient.Parse(config.URL)
	if err != nil {
		return nil, &invalid.Error{Field: field + ".url", Problem: "is not an address such as http://127.0.0.1:9000/path"}
	}

	if port := address.Port(); port != "" {
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
			return nil, &invalid.Error{Field: field + ".url", Problem: port + " is not a port, 1 to 65535"}
		}
	}

	if err := checkTimeout(config.Timeout, field); err != nil {
		return nil, err
	}

	s := &service{
		client: client, hide: config.hiding(hide), url: config.URL, shown: httpclient.WithoutSecrets(address),
		method: cmp.Or(config.Method, http.MethodPost), timeout: config.Timeout, headers: config.Headers, secret: config.Secret,
	}

	return s.run, nil
}

// run is an [engine.Handler].
func (s *service) run(ctx context.Context, j job.Job) error {
	own, cancel := within(ctx, s.timeout)
	defer cancel()

	request, err := s.request(own, j)
	if err != nil {
		return s.failure("http.request", err.Error()) // unreachable unless newHTTP let a bad address pass
	}

	answer, err := s.client.Do(request)
	if err != nil {
		return s.unanswered(ctx, err)
	}
	defer answer.Done()

	if answer.StatusCode/100 == 2 {
		return nil
	}

	words := plaintext.Decode(answer.Words(), answer.Header.Get("Content-Type"))

	return s.refused(answer.Response, s.hide(words, 0), answer.Cut())
}

// within is context.WithTimeout, where zero means no timeout.
func within(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	if timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, timeout)
}

func (s *service) request(ctx context.Context, j job.Job) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, s.method, s.url, bytes.NewReader(j.Payload))
	if err != nil {
		return nil, err
	}

	f := factsOf(j)
	for name, value := range map[string]string{
		"Accept":              "application/json, */*;q=0.5", // frameworks answer with a page unless JSON is asked for
		"Content-Type":        "application/json",
		"User-Agent":          "redrive",
		"Idempotency-Key":     f.idempotencyKey,
		"Redrive-Job-Id":      f.id,
		"Redrive-Job-Type":    f.typ,
		"Redrive-Job-Queue":   f.queue,
		"Redrive-Job-Run":     f.run,
		"Redrive-Job-Attempt": f.attempt,
		"Traceparent":         f.traceparent,
	} {
		request.Header.Set(name, value)
	}

	if f.traceID != "" {
		request.Header.Set("Redrive-Trace-Id", f.traceID)
	}

	for name, value := range s.headers {
		request.Header.Set(name, value.Reveal())
	}

	if secret := s.secret.Reveal(); secret != "" {
		httpclient.Sign(request, secret, j.Payload)
	}

	return request, nil
}

// unanswered describes a request to which no answer came. The end of ctx
// itself is the engine's to judge.
func (s *service) unanswered(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}

	err = httpclient.WithoutAddress(err)
	if short := resource.Shortage(err); short != nil {
		return short
	}

	var network net.Error
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return s.failure("http.timeout", fmt.Sprintf("no answer within %v", s.timeout))
	case errors.As(err, &network) && network.Timeout():
		return s.failure("http.timeout", err.Error())
	}

	return s.failure("http.connection", err.Error())
}

func (s *service) failure(typ, problem string) *job.Failure {
	return &job.Failure{ErrorInfo: job.ErrorInfo{Type: typ, Message: fmt.Sprintf("%s %s: %s", s.method, s.shown, problem)}}
}

// maxExcerpt is how much of a body that is plain text goes into the message.
const maxExcerpt = 512

// refused turns an answer that is no success into a failure. Of a body that is cut, what
// came of the error in it counts.
func (s *service) refused(response *http.Response, body string, cut bool) error {
	status := strings.TrimSpace(fmt.Sprintf("%d %s", response.StatusCode, http.StatusText(response.StatusCode)))
	f := s.failure(fmt.Sprintf("http.%d", response.StatusCode), status)

	if wait, ok := httpclient.RetryAfter(response); ok {
		f.Answer.RetryAfter = &wait
	}

	document := body
	if cut {
		if whole, ok := plaintext.Complete([]byte(body)); ok {
			document = string(whole)
		}
	}

	// The best that the body has: the service's own error, one that a framework wrote, its
	// beginning. Without any of these, a redirect explains itself.
	if said, ok := parseRefusal([]byte(document)); ok {
		said.refine(f)
	} else if said, ok := errortext.Body(document); ok {
		f.Trace, f.Message = f.Message+"\n"+said.Trace, said.String()
	} else if text := excerpt(body); text != "" {
		f.Message += ": " + text
	} else if response.StatusCode/100 == 3 {
		f.Message += ", redirects are not followed" + target(response)
	}

	return f
}

// target names where a redirect points.
func target(response *http.Response) string {
	location, err := response.Location()
	if err != nil {
		return ""
	}

	return " (to " + httpclient.WithoutSecrets(location) + ")"
}

// refusal is the JSON object "error" of an answer. Its fields are read one by
// one: a service that gets one wrong is still understood in the others.
type refusal struct {
	Type, Message, Code string
	Trace               string
	Retryable           *bool
	Details             json.RawMessage
}

func parseRefusal(body []byte) (refusal, bool) {
	var envelope struct {
		Error map[string]json.RawMessage `json:"error"`
	}
	if err := json.Unmarshal(body, &envelope); err != nil || envelope.Error == nil {
		return refusal{}, false
	}

	r := refusal{
		Type:    completeText(envelope.Error, "type"),
		Code:    completeText(envelope.Error, "code"),
		Details: envelope.Error["details"],
	}

	trace := cmp.Or(field[string](envelope.Error, "trace"), field[string](envelope.Error, "stack"))

	// What a language printed can be in any of these fields.
	said := errortext.Fields(r.Type, field[string](envelope.Error, "message"), trace)
	r.Message, r.Trace = said.Message, said.Trace
	if r.Type == "" { // the status stays the type, and the class is told
		r.Message = said.String()
	}

	r.Retryable = field[*bool](envelope.Error, "retryable")

	return r, true
}

// completeText is a text that others are compared with. One of which the end is missing is none.
func completeText(object map[string]json.RawMessage, name string) string {
	text := field[string](object, name)
	if strings.HasSuffix(text, plaintext.CutMark) {
		return ""
	}

	return text
}

// field returns the zero value for a field that is absent or of another type.
func field[T any](object map[string]json.RawMessage, name string) T {
	var value, zero T
	if err := json.Unmarshal(object[name], &value); err != nil {
		return zero
	}

	return value
}

// refine lets the service's own words replace ours; ours move to the trace, so
// that address and status are not lost.
func (r refusal) refine(f *job.Failure) {
	if r.Type != "" {
		f.Type = r.Type
	}

	if r.Message != "" {
		f.Trace, f.Message = f.Message+"\n", r.Message
	}

	if r.Trace != "" {
		f.Trace += strings.TrimRight(r.Trace, "\n") + "\n"
	}

	f.Answer.Retryable = r.Retryable
	if code := retry.Code(r.Code); code.Valid() {
		f.Answer.Code = code
	} else {
		f.Message += fmt.Sprintf(" (code %q)", r.Code)
	}

	var details bytes.Buffer
	if len(r.Details) > 0 && json.Indent(&details, r.Details, "", "  ") == nil {
		f.Trace += details.String()
	}
}

// excerpt is the beginning of a body on one line.
func excerpt(body string) string {
	text := strings.Join(strings.FieldsFunc(plaintext.Plain(body), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	return clip.Text(text, maxExcerpt)
}
