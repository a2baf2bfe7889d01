package job

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/retry"
)

// String is the form in which a cursor travels in a URL; empty for the
// beginning.
func (c GroupCursor) String() string {
	if c == (GroupCursor{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "g.%d.%d.%d", c.Dead, c.Seen.UnixMicro(), c.Number))
}

// ParseGroupCursor is the inverse of String. It returns a *retry.FieldError for
// anything that String did not make.
func ParseGroupCursor(s string) (GroupCursor, error) {
	if s == "" {
		return GroupCursor{}, nil
	}
	bad := &retry.FieldError{Field: "after", Problem: "is not a cursor that a list of groups returned"}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	parts := strings.Split(string(raw), ".")
	if err != nil || len(parts) != 4 || parts[0] != "g" {
		return GroupCursor{}, bad
	}
	var n [3]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(parts[i+1], 10, 64); err != nil {
			return GroupCursor{}, bad
		}
	}
	c := GroupCursor{n[0], time.UnixMicro(n[1]).UTC(), n[2]}
	if c.String() != s || c.Number <= 0 {
		return GroupCursor{}, bad
	}
	return c, nil
}
