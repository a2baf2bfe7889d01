package handler

import (
	"context"
	"fmt"

	"redrive/internal/engine"
	"redrive/internal/envelope"
	"redrive/internal/job"
	"redrive/internal/retry"
)

// Envelopes adds to the handlers one for envelopes that could not be read when
// they came. Somebody replays one: it is read again, and a version of this
// program that understands it hands its data to the handler of its URN.
func Envelopes(handlers func(typ string) (engine.Handler, bool)) func(typ string) (engine.Handler, bool) {
	reread := func(ctx context.Context, j job.Job) error {
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
					"the envelope can be read by now, but no handler is configured for %q; name one, then replay", e.URN)},
				Answer: retry.Answer{Code: retry.CodeDeadLetter},
			}
		}
		j.Type, j.Payload, j.Meta, j.TraceID = e.URN, e.Data, e.Meta, e.TraceID
		return h(ctx, j)
	}
	return func(typ string) (engine.Handler, bool) {
		if typ == envelope.Unread {
			return reread, true
		}
		return handlers(typ)
	}
}
