package job

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"

	"redrive/internal/retry"
)

// The limits of what is accepted and kept, in bytes unless said.
const (
	MaxPayload      = 1 << 20
	MaxMeta         = 64 << 10
	MaxType         = 255
	MaxQueue        = 128
	MaxKey          = 255
	MaxPriority     = 1000 // and its negative
	MaxErrorType    = 255
	MaxErrorMessage = 64 << 10
	MaxTrace        = 256 << 10
	MaxNote         = 1 << 10 // of what is added to an attempt, a letter or an error group
	MaxTraceID      = 128
	MaxMessageID    = 128
	MaxDepth        = 128 // of nested JSON
	MaxBatch        = 10_000
	MaxEntries      = 100 // of a policy's schedule, and of its errors that are never retried
)

var queueName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]*$`)

// CheckQueue returns a *retry.FieldError unless s can name a queue.
func CheckQueue(s string) error {
	if len(s) > MaxQueue || !queueName.MatchString(s) {
		return &retry.FieldError{Field: "queue", Problem: fmt.Sprintf(
			"%q is not a queue name: letters, digits, dot, colon, dash and underscore, at most %d", Clip(s, 64), MaxQueue)}
	}
	return nil
}

// CheckType returns a *retry.FieldError unless s can name a type of job.
func CheckType(s string) error {
	if s == "" || len(s) > MaxType || !utf8.ValidString(s) {
		return &retry.FieldError{Field: "type", Problem: fmt.Sprintf(
			"%q is not a job type: 1 to %d bytes of valid UTF-8", Clip(s, 64), MaxType)}
	}
	return nil
}

// Clip returns s as valid UTF-8 of at most limit bytes, with a marker where it
// was cut.
func Clip(s string, limit int) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	if len(s) <= limit {
		return s
	}
	const marker = "… [cut]"
	cut := max(0, limit-len(marker))
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + marker
}
