package job

import (
	"strings"
	"time"
)

// FormatTime writes a time as answers show it: RFC 3339 in UTC with
// microseconds, which is what the store keeps. The zero time is empty.
func FormatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z07:00")
}

// MatchType reports whether a pattern, an exact type or a prefix as "email.*",
// names the type. "email.*" matches "email.send", but neither "email" nor
// "email.".
func MatchType(pattern, typ string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	if !isPrefix || !strings.HasSuffix(prefix, ".") {
		return pattern == typ
	}
	return strings.HasPrefix(typ, prefix) && typ != prefix
}
