package webhook

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/envelope"
	"redrive/internal/httpclient"
	"redrive/internal/job"
	"redrive/internal/pause"
	"redrive/internal/rawjson"
	"redrive/internal/resource"
	"redrive/internal/retry"
	"redrive/internal/shortage"
	"redrive/internal/wire"
)

const maxReason = 200 // how many bytes of a network error are kept

// verdict is the result of one try.
type verdict struct {
	accepted bool
	again    bool            // another try may succeed
	after    time.Duration   // how long to wait before another try, as the receiver asked
	short    *shortage.Error // what this machine has run out of; nil: nothing
	problem  string          // why it was not accepted, as the rest of a sentence that begins with "it"
}

// send tries to deliver a dead letter and returns why it could not. A shortage of this
// machine ends it at once: that try was none of a receiver. A try before it may have been one.
func (f *Forwarder) send(ctx context.Context, h hook, j job.Job, deadLetter job.DeadLetter) (problem string, short *shortage.Error) {
	body := encode(j, deadLetter)

	key := j.ID + "/" + strconv.Itoa(deadLetter.Run)
	if ctx.Err() != nil {
		return "nothing was sent: " + context.Cause(ctx).Error(), nil
	}

	said := "" // of the tries so far
	for n := 1; ; n++ {
		v := f.try(ctx, h, key, body)

		switch {
		case v.accepted:
			return "", nil
		case v.short != nil && n == 1:
			return "it was not sent: " + v.short.Error(), v.short
		case v.short != nil:
			return said + "; the next try was not sent: " + v.short.Error(), v.short
		}

		said = strings.TrimPrefix("it "+v.problem, "it failed: ") // who reads it knows that
		if n > 1 {
			said = fmt.Sprintf("%d tries, the last %s", n, v.problem)
		}

		if !v.again || n >= h.Attempts {
			return said, nil
		}

		// A pause that would outlast the delivery is not begun.
		wait := max(h.Pause(n, f.o.Random), v.after)
		if end, ok := ctx.Deadline(); ok && time.Until(end) < wait {
			return fmt.Sprintf("%s; the next try would come after %v, too late for this delivery", said, wait.Round(time.Millisecond)), nil
		}

		pause.For(ctx, wait)

		if ctx.Err() != nil {
			return said + "; it was not tried again: " + context.Cause(ctx).Error(), nil
		}
	}
}

// try sends one request, and returns what its answer means.
func (f *Forwarder) try(ctx context.Context, h hook, key string, body []byte) verdict {
	own, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()

	request, err := h.request(own, key, body)
	if err != nil { // unreachable unless New let a bad address pass
		return verdict{problem: "cannot be called: " + reason(err)}
	}

	answer, err := f.client.Do(request)
	switch {
	case err == nil:
		answer.Done()
		return judge(answer.Response)
	case ctx.Err() != nil:
		return verdict{problem: "got no answer: " + context.Cause(ctx).Error()}
	case own.Err() != nil:
		return verdict{again: true, problem: fmt.Sprintf("got no answer within %v", h.Timeout)}
	}

	if short := resource.Shortage(httpclient.WithoutAddress(err)); short != nil {
		return verdict{short: short}
	}

	return verdict{again: true, problem: "failed: " + reason(err)}
}

// request returns the signed request that delivers a body. The key is the same for every try.
func (h hook) request(ctx context.Context, key string, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}

	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "redrive")
	request.Header.Set("Idempotency-Key", key)
	httpclient.Sign(request, h.Secret, body)

	return request, nil
}

// judge returns what an answer means: 2xx accepts the dead letter, and after 429 or 5xx another try may
// succeed.
func judge(response *http.Response) verdict {
	status := response.StatusCode
	v := verdict{problem: "was answered " + strings.TrimSpace(strconv.Itoa(status)+" "+http.StatusText(status))}

	switch {
	case status/100 == 2:
		v.accepted = true
	case status/100 == 3:
		v.problem += ", a redirect, which is not followed: put its target into the configuration instead"
	case status == http.StatusTooManyRequests || status >= 500:
		v.again = true
		v.after, _ = httpclient.RetryAfter(response)
	}

	return v
}

// reason returns the text of an error of the HTTP client, without the address and not too long.
func reason(err error) string { return clip.Text(httpclient.WithoutAddress(err).Error(), maxReason) }

// jobShape is the job in a request, without meta and payload.
type jobShape struct {
	ID         string `json:"id"`
	Type       string `json:"type"`
	Queue      string `json:"queue"`
	Run        int    `json:"run"`
	Attempts   int    `json:"attempts"`
	Priority   int    `json:"priority"`
	EnqueuedAt string `json:"enqueued_at"`
	TraceID    string `json:"trace_id,omitempty"`
}

type deadLetterShape struct {
	Reason        retry.Reason `json:"reason"`
	Cause         job.Outcome  `json:"cause,omitempty"`
	Error         string       `json:"error"`
	Exception     string       `json:"exception"`
	FailedAt      string       `json:"failed_at"`
	OriginalQueue string       `json:"original_queue"`
	Attempts      int          `json:"attempts"`
}

// encode returns the body of a request. If the job came as an envelope, that is the envelope with a
// block dead_letter. Otherwise it is an object with the job and the dead letter.
func encode(j job.Job, l job.DeadLetter) []byte {
	if j.Envelope != nil {
		if annotated, ok := envelope.Annotate(j.Envelope, l); ok {
			return annotated
		}
	}

	head := rawjson.Encode(jobShape{
		ID: j.ID, Type: j.Type, Queue: j.Queue, Run: l.Run, Attempts: l.Attempts, Priority: j.Priority,
		EnqueuedAt: wire.FormatTime(j.EnqueuedAt), TraceID: j.TraceID,
	})

	// Write the metadata and the payload into the object unchanged, byte by byte.
	var b bytes.Buffer
	b.WriteString(`{"job":`)
	b.Write(bytes.TrimSuffix(head, []byte("}")))

	if isJSON(j.Meta) {
		b.WriteString(`,"meta":`)
		b.Write(j.Meta)
	}

	if isJSON(j.Payload) {
		b.WriteString(`,"payload":`)
		b.Write(j.Payload)
	} else {
		b.WriteString(`,"payload_base64":"` + base64.StdEncoding.EncodeToString(j.Payload) + `"`)
	}

	b.WriteString(`},"dead_letter":`)
	b.Write(rawjson.Encode(deadLetterShape{
		Reason: l.Reason, Cause: l.Cause, Error: l.Error, Exception: l.Exception,
		FailedAt: wire.FormatTime(l.FailedAt), OriginalQueue: l.Queue, Attempts: l.Attempts,
	}))
	b.WriteString("}")

	return b.Bytes()
}

// isJSON reports whether bytes can be part of a JSON text unchanged.
func isJSON(raw []byte) bool { return utf8.Valid(raw) && json.Valid(raw) }
