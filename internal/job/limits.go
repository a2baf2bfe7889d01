package job

import (
	"fmt"
	"regexp"
	"unicode/utf8"

	"redrive/internal/clip"
	"redrive/internal/invalid"
)

// The limits of what is accepted and kept, in bytes unless said.
const (
	MaxPayload      = 1 << 20
	MaxMeta         = 64 << 10
	MaxType         = 255
	MaxQueue        = 128
	MaxKey          = 255
	MaxPriority     = 1000 // and its negative
	MaxErrorMessage = 64 << 10
	MaxTrace        = 256 << 10
	MaxNote         = 1 << 10 // of what is added to an attempt, a letter or an error group
	MaxTraceID      = 128
	MaxMessageID    = 128
	MaxDepth        = 128 // of nested JSON
	MaxBatch        = 10_000
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// CheckQueue returns a *invalid.Error unless s can name a queue.
func CheckQueue(s string) error {
	if len(s) > MaxQueue || !queueName.MatchString(s) {
		return &invalid.Error{Field: "queue", Problem: fmt.Sprintf(
			"%q is not a queue name: letters, digits, dot, colon, dash and underscore, at most %d", clip.Text(s, 64), MaxQueue)}
	}
	return nil
}

// CheckType returns a *invalid.Error unless s can name a type of job.
func CheckType(s string) error {
	if s == "" || len(s) > MaxType || !utf8.ValidString(s) {
		return &invalid.Error{Field: "type", Problem: fmt.Sprintf(
			"%q is not a job type: 1 to %d bytes of valid UTF-8", clip.Text(s, 64), MaxType)}
	}
	return nil
}
