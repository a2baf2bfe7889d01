package api

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// value makes a reader of a member out of its Go type.
func value[T any](to *T, want string) reader {
	return func(path string, raw json.RawMessage) error {
		if string(raw) == "null" || json.Unmarshal(raw, to) != nil {
			return wrongType(path, want, raw)
		}
		return whole(path, raw)
	}
}

// checked is value for what can be wrong in itself: problem says how, or nothing.
func checked[T any](to *T, want string, problem func(T) string) reader {
	return func(path string, raw json.RawMessage) error {
		if err := value(to, want)(path, raw); err != nil {
			return err
		}
		if p := problem(*to); p != "" {
			return &invalid.Error{Field: path, Problem: p}
		}
		return nil
	}
}

func traceID(to *string) reader {
	return checked(to, aString, func(id string) string {
		if id == "" || len(id) > job.MaxTraceID {
			return fmt.Sprintf("must have 1 to %d bytes", job.MaxTraceID)
		}
		return ""
	})
}

// bytesOf reads a value as it is, of at most limit bytes.
func bytesOf[T ~[]byte](to *T, limit int) reader {
	return func(path string, raw json.RawMessage) error {
		if len(raw) > limit {
			return web.FailIn(web.TooLarge, path, fmt.Sprintf("%d bytes, at most %d are kept", len(raw), limit))
		}
		*to = T(raw)
		return nil
	}
}

func payload(to *[]byte) reader { return bytesOf(to, job.MaxPayload) }

func meta(to *json.RawMessage) reader {
	return func(path string, raw json.RawMessage) error {
		if err := bytesOf(to, job.MaxMeta)(path, raw); err != nil {
			return err
		}
		return members(path, raw, func(string, string, json.RawMessage) error { return nil })
	}
}

func policy(to *retry.Patch) reader {
	return func(path string, raw json.RawMessage) error {
		var err error
		if first(raw) != '"' { // no name of a policy: each field once
			err = members(path, raw, func(_, path string, raw json.RawMessage) error { return whole(path, raw) })
		}
		if err == nil {
			*to, err = wire.DecodePatch(raw, wire.ParseDuration)
			err = within(path, err)
		}
		return err
	}
}

func positive(to *time.Duration) reader {
	return func(path string, raw json.RawMessage) error {
		err := duration(to)(path, raw)
		if err == nil && *to <= 0 {
			err = &invalid.Error{Field: path, Problem: "must be longer than zero"}
		}
		return err
	}
}

// wait reads a duration that begins now.
func wait(to *time.Time) reader {
	return func(path string, raw json.RawMessage) error {
		var d time.Duration
		err := duration(&d)(path, raw)
		*to = time.Now().Add(d)
		return err
	}
}

func duration(to *time.Duration) reader {
	return func(path string, raw json.RawMessage) (err error) {
		var s string
		if err := value(&s, `a duration in quotes, as "PT5M"`)(path, raw); err != nil {
			return err
		}
		if *to, err = wire.ParseDuration(s); err != nil {
			return &invalid.Error{Field: path, Problem: err.Error()}
		}
		return nil
	}
}

// rfc3339 is the shape of a time. Package time takes a comma, an hour of one
// digit and offsets of a day as well.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]([01]\d|2[0-3]):[0-5]\d)$`)

func moment(to *time.Time) reader {
	return func(path string, raw json.RawMessage) error {
		var s string
		if err := value(&s, "a time in quotes")(path, raw); err != nil {
			return err
		}
		t, err := time.Parse(time.RFC3339, s)
		if err != nil || !rfc3339.MatchString(s) {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("%q is not a time as 2026-01-31T15:04:05Z (RFC 3339)", clip.Text(s, 64))}
		}
		if year := t.UTC().Year(); year < 0 || year > 9999 {
			return &invalid.Error{Field: path, Problem: fmt.Sprintf("%q is not within the years 0 to 9999 in UTC", s)}
		}
		*to = t
		return nil
	}
}

// times are what a request says about when its job may run.
type times struct{ runAt, delay, expiresAt, expiresIn time.Time }

// set checks the times against each other and hands them to the job.
func (t times) set(j *job.Job, now time.Time) error {
	switch {
	case !t.runAt.IsZero() && !t.delay.IsZero():
		return &invalid.Error{Field: "delay", Problem: "cannot stand beside run_at; send one of them"}
	case !t.expiresAt.IsZero() && !t.expiresIn.IsZero():
		return &invalid.Error{Field: "expires_in", Problem: "cannot stand beside expires_at; send one of them"}
	}
	j.RunAt, j.ExpiresAt = later(t.runAt, t.delay), later(t.expiresAt, t.expiresIn)
	field := "expires_at"
	if t.expiresAt.IsZero() {
		field = "expires_in"
	}
	if from := later(j.RunAt, now); !j.ExpiresAt.IsZero() && !j.ExpiresAt.After(from) {
		return &invalid.Error{Field: field, Problem: fmt.Sprintf(
			"the job would expire at %s, not after %s, when it may run: it could never run", wire.FormatTime(j.ExpiresAt), wire.FormatTime(from))}
	}
	return nil
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
