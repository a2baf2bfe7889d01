// Package webhook sends the dead letters of a queue to a webhook.
//
// # The request
//
// One POST for each dead letter, with a JSON object as its body:
//
//	{"job": {"id": "0192…", "type": "email.send", "queue": "mail", "run": 1, "attempts": 3,
//	         "priority": 0, "enqueued_at": "2026-01-02T03:04:05.000000Z", "trace_id": "…",
//	         "meta": {…}, "payload": {…}},
//	 "dead_letter": {"reason": "attempts_exhausted", "cause": "timed_out", "error": "…", "exception": "smtp.421",
//	         "failed_at": "2026-01-02T03:05:06.000000Z", "original_queue": "mail", "attempts": 3}}
//
// Meta and payload are the bytes that the producer sent, spliced in, never
// decoded and encoded again. A payload that is no JSON text stands under
// payload_base64 instead. trace_id, meta and cause are left out when there is
// none. A job that came as an envelope of BabelQueue goes out as one: the
// envelope with its block dead_letter. There, job is a string.
//
//	Idempotency-Key      ID/RUN, the same for every try, also when a person sends it again
//	Redrive-Timestamp    seconds since 1970, of this try
//	Redrive-Signature    sha256=HEX, the HMAC-SHA256 of TIMESTAMP.BODY with the queue's secret
//
// A receiver verifies the signature over the bytes that it got, in constant
// time, and refuses old timestamps (the package's example does so). It shall
// treat a key that it has seen as accepted: a delivery can be repeated although
// it arrived.
//
// # The answer
//
// 2xx is accepted. 429, 5xx, no answer and no connection are tried again with
// growing, spread pauses, or after the Retry-After of the answer. Everything
// else is a refusal at once; so is a redirect, which is never followed, because
// the dead letter is meant for the address that the operator wrote. All this happens
// within the deadline of the context: a pause that would outlast it is not
// begun. What becomes of a refused dead letter is not decided here.
//
// The address may hold a password or a token, so nothing but its scheme, host
// and path appears in texts. The secret appears nowhere.
package webhook

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"redrive/internal/clip"
	"redrive/internal/httpclient"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Webhook is where a queue forwards its dead letters.
type Webhook struct {
	URL    string
	Secret string // signs each request
	Sending
}

// Options configure a forwarder. Those without a default are required.
type Options struct {
	Hooks  map[string]Webhook      // by queue
	Keeps  func(queue string) bool // whether a queue without a webhook has a dead-letter queue
	Random func() float64          // in [0, 1), spreads the pauses; safe for concurrent use
	Log    *slog.Logger            // nil: nothing is logged
}

// Forwarder sends dead letters on their way.
type Forwarder struct {
	o      Options
	hooks  atomic.Pointer[map[string]hook] // by queue
	client *httpclient.Client
}

// hook is a webhook, ready to be called.
type hook struct {
	Webhook
	shown string // the address as texts show it: without secrets
}

// New returns a forwarder, or a *invalid.Error whose field is as
// "queues.mail.dead_letter.webhook.url". No error repeats an address.
func New(o Options) (*Forwarder, error) {
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	f := &Forwarder{o: o, client: httpclient.New(32, nil)}
	return f, f.Replace(o.Hooks)
}

// Replace makes the dead letters from now on go to other webhooks. Its error is like
// that of New, and then nothing changes.
func (f *Forwarder) Replace(webhooks map[string]Webhook) error {
	hooks := map[string]hook{}
	for queue, w := range webhooks {
		h, wrong := newHook(w)
		if wrong != nil {
			wrong.Field = "queues." + queue + ".dead_letter.webhook." + wrong.Field
			return wrong
		}

		hooks[queue] = h
	}

	f.hooks.Store(&hooks)

	return nil
}

func newHook(w Webhook) (hook, *invalid.Error) {
	u, err := httpclient.Parse(w.URL)
	switch {
	case err != nil:
		return hook{}, &invalid.Error{Field: "url", Problem: "is not an address such as https://example.org/dead-letters"}
	case strings.TrimSpace(w.Secret) == "":
		return hook{}, &invalid.Error{Field: "secret", Problem: "is empty or blank, and every request is signed with it"}
	case w.Timeout <= 0:
		return hook{}, &invalid.Error{Field: "timeout", Problem: fmt.Sprintf("%v is not more than zero", w.Timeout)}
	case w.Attempts < 1:
		return hook{}, &invalid.Error{Field: "attempts", Problem: fmt.Sprintf("%d is less than 1", w.Attempts)}
	}

	return hook{w, httpclient.WithoutSecrets(u)}, nil
}

// CloseIdle closes the connections that wait for the next dead letter.
func (f *Forwarder) CloseIdle() { f.client.CloseIdle() }

// Close ends the connections that are kept for the next dead letter. Call it when no
// delivery is under way.
func (f *Forwarder) Close() { f.client.Close() }

// Kept is the delivery of every dead letter of a queue without a webhook, which
// keeps them or has no dead-letter queue; not ok: its dead letters are sent.
func (f *Forwarder) Kept(queue string) (d job.Delivery, ok bool) {
	if _, sends := (*f.hooks.Load())[queue]; sends {
		return job.Delivery{}, false
	}
	return job.InDeadLetters(queue, f.o.Keeps(queue)), true
}

// Deliver sends a dead letter where its queue wants it, until the end of ctx.
func (f *Forwarder) Deliver(ctx context.Context, j job.Job, deadLetter job.DeadLetter) job.Delivery {
	h, sends := (*f.hooks.Load())[j.Queue]
	if !sends {
		return job.InDeadLetters(j.Queue, f.o.Keeps(j.Queue))
	}

	problem, short := f.send(ctx, h, j, deadLetter)
	if short != nil { // this machine is why, and says so once, not for each dead letter that waits
		return job.Delivery{Problem: clip.Text(problem, job.MaxNote), Shortage: short}
	}

	if problem != "" {
		problem = "POST " + h.shown + ": " + problem
		f.o.Log.Warn("A dead letter was not accepted. Its job is kept.", "job", j.ID, "run", deadLetter.Run, "queue", j.Queue, "problem", problem)
		return job.Delivery{Problem: clip.Text(problem, job.MaxNote)}
	}

	return job.Delivery{ForwardedTo: h.shown, ForwardedAt: time.Now().UTC()}
}

// Deadline is what the sending of one dead letter may take: for all its
// tries and the pauses between them. It is less than a person waits for the
// answer who sends a dead letter again.
const Deadline = 24 * time.Second

// Sending is how long and how often a dead letter is sent to a webhook.
type Sending struct {
	Timeout  time.Duration // of one try
	Attempts int           // tries for one dead letter
}

// DefaultSending gives a receiver that hangs all its tries.
func DefaultSending() Sending { return Sending{7 * time.Second, 3} }

// Pause is what follows the try n, spread by random.
func (Sending) Pause(n int, random func() float64) time.Duration {
	return retry.Policy{
		Strategy: retry.Exponential, InitialInterval: 500 * time.Millisecond, Coefficient: 2,
		MaxInterval: 10 * time.Second, Jitter: retry.Jitter{Low: 0.5, High: 1.5},
	}.Delay(n, random).Final
}

// Pauses is the longest that the pauses take together.
func (f Sending) Pauses() (all time.Duration) {
	for n := 1; n < f.Attempts; n++ {
		all += f.Pause(n, func() float64 { return 1 })
	}
	return all
}

// Fits reports whether every try has its time within what a dead letter has.
func (f Sending) Fits() bool {
	return f.Timeout <= (Deadline-f.Pauses())/time.Duration(f.Attempts)
}
