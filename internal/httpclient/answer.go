package httpclient

import (
	"context"
	"io"
	"net/http"
	"time"
	"unicode/utf8"
)

// What the body of an answer may take. Its status has arrived by then, and the
// status decides: a body that is slow, cut or endless changes no outcome.
const (
	MaxWords = 64 << 10 // bytes that are read
	maxWait  = 2 * time.Second

	maxDrains = 128 // bodies that are read at the same time, only so that their connections can be used again
)

// Client calls services. Its methods can be used by many goroutines.
type Client struct {
	client http.Client
	drains chan struct{} // a slot for each body that is read in the background
	life   context.Context
	end    context.CancelFunc
}

// Answer is the answer to a request: its status and its header have arrived. It
// has to be given back by Done.
type Answer struct {
	*http.Response
	client *Client
	ctx    context.Context // of the request, as the caller gave it
	cancel context.CancelFunc
	unbind func() bool // parts the exchange from ctx
	read   bool        // by Words
	cut    bool        // it read only the beginning
}

// Do sends a request and returns as soon as the status is known. When the
// request's context ends before that, the error is the context's cause.
func (c *Client) Do(request *http.Request) (*Answer, error) {
	ctx := request.Context()
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	a := &Answer{client: c, ctx: ctx, cancel: cancel, unbind: context.AfterFunc(ctx, cancel)}

	response, err := c.client.Do(request.WithContext(own))
	if err != nil {
		a.unbind()
		cancel()

		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}

		return nil, err
	}

	if response.StatusCode == http.StatusSwitchingProtocols { // its body is the connection, whose reads no cancel ends
		_ = response.Body.Close() // this program speaks no other protocol
		response.Body = http.NoBody
	}

	a.Response = response

	return a, nil
}

// Words reads the beginning of the body, as much of it as comes in time, and unpacks it. It
// takes no more than half of what the request's context has left, so that the
// answer is known before that ends.
func (a *Answer) Words() []byte {
	a.read = true
	wait := maxWait
	if deadline, ok := a.ctx.Deadline(); ok {
		wait = min(wait, time.Until(deadline)/2)
	}

	timer := time.AfterFunc(wait, a.cancel)
	defer timer.Stop()

	words, err := io.ReadAll(io.LimitReader(a.Body, MaxWords)) // what came before an error counts

	words, cut := unpacked(words, a.Header)
	a.cut = err != nil || cut || len(words) == MaxWords
	if a.cut {
		words = wholeCharacters(words)
	}

	return words
}

// Cut reports whether the body may go on behind what Words returned.
func (a *Answer) Cut() bool { return a.cut }

// wholeCharacters leaves out the beginning of a character at the end.
func wholeCharacters(text []byte) []byte {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if begin := text[len(text)-n:]; utf8.RuneStart(begin[0]) {
			if !utf8.FullRune(begin) {
				return text[:len(text)-n]
			}
			break
		}
	}

	return text
}

// Done gives the answer back and does not wait for its body. A short body is read
// in the background, so that the connection can be used again; any other costs
// the connection.
func (a *Answer) Done() {
	a.unbind()

	if a.read || a.Body == http.NoBody {
		a.close()
		return
	}

	select {
	case a.client.drains <- struct{}{}:
		go a.drain()
	default:
		a.close()
	}
}

func (a *Answer) close() {
	_ = a.Body.Close() // the rest is not needed
	a.cancel()
}

func (a *Answer) drain() {
	defer func() { <-a.client.drains }()
	defer a.close()

	timer := time.AfterFunc(maxWait, a.cancel)
	defer timer.Stop()
	defer context.AfterFunc(a.client.life, a.cancel)()

	_, _ = io.Copy(io.Discard, io.LimitReader(a.Body, MaxWords)) // an error costs the connection, no more
}

// CloseIdle closes the connections that wait for the next request.
func (c *Client) CloseIdle() { c.client.CloseIdleConnections() }

// Close ends everything that goes on in the background. A caller whose request is
// still under way loses no more than the connection.
func (c *Client) Close() {
	c.end()

	for range cap(c.drains) { // wait for the running reads, and let no other begin
		c.drains <- struct{}{}
	}

	c.client.CloseIdleConnections()
}
