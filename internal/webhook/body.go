package webhook

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"redrive/internal/envelope"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/wire"
)

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

type letterShape struct {
	Reason        retry.Reason `json:"reason"`
	Cause         job.Outcome  `json:"cause,omitempty"`
	Error         string       `json:"error"`
	Exception     string       `json:"exception"`
	FailedAt      string       `json:"failed_at"`
	OriginalQueue string       `json:"original_queue"`
	Attempts      int          `json:"attempts"`
}

// encode is the body of a request.
func encode(j job.Job, l job.DeadLetter) []byte {
	if envelope, ok := annotated(j, l); ok {
		return envelope
	}
	head := text(jobShape{
		ID: j.ID, Type: j.Type, Queue: j.Queue, Run: l.Run, Attempts: l.Attempts, Priority: j.Priority,
		EnqueuedAt: wire.FormatTime(j.EnqueuedAt), TraceID: j.TraceID,
	})
	var b bytes.Buffer
	b.WriteString(`{"job":`)
	b.Write(bytes.TrimSuffix(head, []byte("}")))
	if whole(j.Meta) {
		b.WriteString(`,"meta":`)
		b.Write(j.Meta)
	}
	if whole(j.Payload) {
		b.WriteString(`,"payload":`)
		b.Write(j.Payload)
	} else {
		b.WriteString(`,"payload_base64":"` + base64.StdEncoding.EncodeToString(j.Payload) + `"`)
	}
	b.WriteString(`},"dead_letter":`)
	b.Write(text(letterShape{
		Reason: l.Reason, Cause: l.Cause, Error: l.Error, Exception: l.Exception,
		FailedAt: wire.FormatTime(l.FailedAt), OriginalQueue: l.Queue, Attempts: l.Attempts,
	}))
	b.WriteString("}")
	return b.Bytes()
}

// annotated is the envelope as which a job came, with its block dead_letter.
func annotated(j job.Job, l job.DeadLetter) ([]byte, bool) {
	if j.Envelope == nil {
		return nil, false
	}
	return envelope.Annotate(j.Envelope, l)
}

// whole reports whether bytes can stand in a JSON text as they are.
func whole(raw []byte) bool { return utf8.Valid(raw) && json.Valid(raw) }

func text(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // unreachable: the shapes hold texts and numbers
		panic(fmt.Sprintf("forward.text(%+v): %v", v, err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
