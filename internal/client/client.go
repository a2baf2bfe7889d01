// Package client calls the API of a running dashboard, for the command line.
//
// A [Client] knows the address of the dashboard and the token to send.
// [Client.Call] exchanges JSON documents, [Client.Enqueue] sends a job. What the
// dashboard refuses comes back as an [*Error], whose text can be shown to a
// person as it is.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/httpclient"
)

// Timeout bounds each request and its answer. A large body may take longer, for as long
// as it arrives at leastRate.
const Timeout = 30 * time.Second

// leastRate is how fast a body has to be sent, in bytes a second. It is below what the
// dashboard demands, whose answer says what was wrong.
const leastRate = 256 << 10

// maxAnswer bounds what is read of an answer, in bytes: a job can have a payload of a
// megabyte, and many attempts with long traces.
const maxAnswer = 256 << 20

// Client calls one dashboard.
type Client struct {
	Token string // sent with each request; empty sends none
	base  *url.URL
}

// New returns a client of the dashboard at an address such as
// "http://127.0.0.1:8080", without a token.
func New(address string) (*Client, error) {
	base, err := httpclient.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%q is not an address, for example http://127.0.0.1:8080", address)
	}

	return &Client{base: base}, nil
}

// URL is the address of a path of the API, which may have a query.
func (c *Client) URL(path string) string {
	path, query, _ := strings.Cut(path, "?")
	u := c.base.JoinPath("api/v1", path)
	u.RawQuery = query
	return u.String()
}

// Error is the dashboard's answer to a request that failed. Some may have taken effect
// all the same, see [Unchanged].
type Error struct {
	Code, Field, Message string // as the API says them; Field may be empty
	status               int
	again                time.Duration // after which the answer says to try again, if it does
	url                  *url.URL
}

// Refused reports whether the request was wrong, and not the dashboard, or what it can bear.
func (e *Error) Refused() bool {
	return e.status < http.StatusInternalServerError && e.status != http.StatusTooManyRequests
}

// Problem is what the API says: the field, where there is one, and the message.
func (e *Error) Problem() string { return strings.TrimPrefix(e.Field+": "+e.Message, ": ") }

// Remedy says what to do where the request did not get to what it asks for: it needs a login,
// or it has the wrong address. Otherwise it is empty.
func (e *Error) Remedy() string {
	switch {
	case e.status == http.StatusUnauthorized:
		return fmt.Sprintf("the dashboard at %s requires a login; set REDRIVE_TOKEN to a token whose role allows this", e.url.Host)
	case e.status == http.StatusNotFound && strings.HasPrefix(e.Message, "nothing exists at this address"):
		return fmt.Sprintf("there is no dashboard at %s; does the address need a path (--base-path)?", e.url)
	}

	return ""
}

func (e *Error) Error() string {
	remedy := e.Remedy()
	switch {
	case remedy != "":
		return remedy
	case e.status < http.StatusInternalServerError:
		return "refused: " + e.Problem()
	}

	return "the dashboard failed: " + e.Problem()
}

// promises are the codes of the failures that promise that nothing was changed. After any
// other failure, for example too_slow, it is unknown whether something was changed.
var promises = []string{"busy", "overloaded", "read_only", "rules_too_slow", "storage_full", "storage_unreachable", "storage_unsafe"}

// Unchanged reports whether a request that failed certainly changed nothing: the
// dashboard refused it or promises that, or was never reached.
func Unchanged(err error) bool {
	var answer *Error
	if errors.As(err, &answer) {
		return answer.status < http.StatusInternalServerError || slices.Contains(promises, answer.Code)
	}

	return unreached(err)
}

// Again reports whether the same request may succeed a little later, and after what time.
// Nothing was changed then.
func (e *Error) Again() (after time.Duration, ok bool) {
	return e.again, e.again > 0 && slices.Contains([]string{"busy", "overloaded", "storage_unreachable", "too_many"}, e.Code)
}

// unreached reports whether there was no connection on which to send a request.
func unreached(err error) bool {
	var failed *net.OpError
	return errors.As(err, &failed) && failed.Op == "dial"
}

// Call sends a document, or none, to a path of the API and reads the answer
// into another, unless that is nil.
func (c *Client) Call(ctx context.Context, method, path string, send, into any) error {
	var body []byte
	if send != nil {
		var text bytes.Buffer
		e := json.NewEncoder(&text)
		e.SetEscapeHTML(false) // a payload goes as it was written

		if err := e.Encode(send); err != nil {
			return err
		}

		body = text.Bytes()
	}

	response, err := c.do(ctx, method, path, http.Header{}, body)
	if err != nil {
		return fmt.Errorf("ask the dashboard: %w; is it running?", err)
	}
	defer response.Body.Close()

	return read(response, into)
}

// Ready asks whether the dashboard takes and runs jobs. The error says why it does not.
func (c *Client) Ready(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("readyz").String(), nil)
	if err != nil {
		return err
	}

	response, err := send(r)
	if err != nil {
		return fmt.Errorf("ask the dashboard: %w; is one running there?", err)
	}
	defer response.Body.Close()

	text, err := io.ReadAll(io.LimitReader(response.Body, 4096))
	if err != nil {
		return fmt.Errorf("read the dashboard's answer: %w", err)
	}

	switch said := strings.TrimSpace(string(text)); {
	case response.StatusCode == http.StatusOK && said == "ready":
		return nil
	case response.StatusCode == http.StatusServiceUnavailable && said != "":
		return &NotReady{r.URL.Host, said}
	}

	return unintelligible(response)
}

// NotReady is the error about a dashboard that answers, and does not take and run jobs.
type NotReady struct{ Host, Why string }

func (n *NotReady) Error() string {
	return fmt.Sprintf("the dashboard at %s is not ready: %s", n.Host, n.Why)
}

// StandsBy reports whether nothing is wrong with the dashboard: another process works, and this one takes
// over when that stops or dies.
func (n *NotReady) StandsBy() bool { return strings.HasPrefix(n.Why, "standby: ") }

// Enqueued is what a dashboard answered when it accepted jobs.
type Enqueued struct {
	Jobs    []json.RawMessage // as the API shows them, in the order of the request
	Repeat  bool              // all were accepted before, under the same key
	Warning string            // what the sender should know of them; may be empty
}

// Enqueue sends a job as its JSON text, byte for byte. An empty key is none.
func (c *Client) Enqueue(ctx context.Context, body []byte, key string) (Enqueued, error) {
	return c.enqueue(ctx, "jobs", "the job was", body, key)
}

// EnqueueBatch sends several jobs, of which either all are accepted or none.
func (c *Client) EnqueueBatch(ctx context.Context, jobs [][]byte, key string) (Enqueued, error) {
	body := slices.Concat([]byte(`{"jobs":[`), bytes.Join(jobs, []byte(",")), []byte("]}"))
	return c.enqueue(ctx, "jobs/batch", "the jobs were", body, key)
}

// enqueue sends jobs. What says in an error what was not sent: "the job was".
func (c *Client) enqueue(ctx context.Context, path, what string, body []byte, key string) (Enqueued, error) {
	header := http.Header{}
	if key != "" {
		header.Set("Idempotency-Key", key)
	}

	response, err := c.do(ctx, http.MethodPost, path, header, body)
	if unreached(err) {
		return Enqueued{}, fmt.Errorf("%s not sent: %w; is the dashboard running?", what, err)
	} else if err != nil {
		return Enqueued{}, fmt.Errorf("the dashboard did not answer: %w", err)
	}
	defer response.Body.Close()

	var answer struct {
		Job     json.RawMessage
		Jobs    []json.RawMessage
		Warning string
	}

	// The answer about one job has job, and that about a batch has jobs.
	err = read(response, &answer)
	if answer.Job != nil {
		answer.Jobs = append(answer.Jobs, answer.Job)
	}

	// A dashboard refuses with an Error, or names jobs. Anything else that is whole is taken for
	// the answer of another program.
	if !errors.As(err, new(*Error)) && !errors.Is(err, errBrokeOff) && len(answer.Jobs) == 0 {
		err = unintelligible(response)
	}

	// The status is 200 for jobs that were there already, and 201 for new ones.
	return Enqueued{answer.Jobs, response.StatusCode == http.StatusOK, answer.Warning}, err
}

// do sends a request with a JSON text, or with nothing.
func (c *Client) do(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, c.URL(path), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	r.Header = header
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}

	if c.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.Token)
	}

	return send(r)
}

// transport has the connections to dashboards. What a person asked for once is not asked
// again when no answer comes: see [Unchanged].
var transport = httpclient.Once(http.DefaultTransport.(*http.Transport).Clone())

// send sends a request, and follows no redirect: the token is for this address alone.
func send(r *http.Request) (*http.Response, error) {
	h := http.Client{
		Transport:     transport,
		Timeout:       Timeout + time.Duration(r.ContentLength)*time.Second/leastRate,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}

	return h.Do(r)
}

// read reads a document from an answer, unless into is nil, or the error that
// the answer is.
func read(response *http.Response, into any) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	if err != nil {
		return brokenOff(response, err)
	}

	if response.StatusCode < http.StatusMultipleChoices {
		if into == nil {
			return nil
		}

		// Where no length was said, only the text tells that there was more of it.
		whole := json.NewDecoder(bytes.NewReader(data)).Decode(new(json.RawMessage))
		if errors.Is(whole, io.ErrUnexpectedEOF) {
			return brokenOff(response, whole)
		}

		return json.Unmarshal(data, into)
	}

	// A redirect is an error too, because none is followed. What a proxy answers for a
	// dashboard that it cannot reach is not a Problem.
	var answer apitype.Problem
	if err := json.Unmarshal(data, &answer); err != nil || answer.Error.Message == "" {
		return unintelligible(response)
	}

	failed := &Error{
		Code:    answer.Error.Code,
		Field:   answer.Error.Field,
		Message: answer.Error.Message,
		status:  response.StatusCode,
		url:     response.Request.URL,
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		failed.again = time.Duration(seconds) * time.Second
	}

	return failed
}

// errBrokeOff is what an error is that says that an answer broke off.
var errBrokeOff = errors.New("its answer broke off")

// brokenOff is the error of an answer of which only the beginning came. What was asked for may
// have been done.
func brokenOff(response *http.Response, why error) error {
	return fmt.Errorf("%s answered %s, but %w: %w", response.Request.URL.Host, response.Status, errBrokeOff, why)
}

// unintelligible is the error of an answer that no dashboard gives.
func unintelligible(response *http.Response) error {
	return fmt.Errorf("%s answered %s, which is not the answer of a dashboard", response.Request.URL.Host, response.Status)
}
