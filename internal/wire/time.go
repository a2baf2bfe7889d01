package wire

import "time"

// FormatTime writes a time as answers show it: RFC 3339 in UTC with
// microseconds, which is what the store keeps. The zero time is empty.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}
