package failures

import (
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"time"

	"redrive/internal/invalid"
)

// String is the form in which a cursor travels in a URL; empty for the
// beginning.
func (c Cursor) String() string {
	if c == (Cursor{}) {
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "g.%d.%d.%d", c.Dead, c.Seen.UnixMicro(), c.Number))
}

// ParseCursor is the inverse of String. It returns a *invalid.Error for
// anything that String did not make.
func ParseCursor(s string) (Cursor, error) {
	if s == "" {
		return Cursor{}, nil
	}
	bad := &invalid.Error{Field: "after", Problem: "is not a cursor that a list of groups returned"}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(s)
	parts := strings.Split(string(raw), ".")
	if err != nil || len(parts) != 4 || parts[0] != "g" {
		return Cursor{}, bad
	}
	var n [3]int64
	for i := range n {
		if n[i], err = strconv.ParseInt(parts[i+1], 10, 64); err != nil {
			return Cursor{}, bad
		}
	}
	c := Cursor{n[0], time.UnixMicro(n[1]).UTC(), n[2]}
	if c.String() != s || c.Number <= 0 {
		return Cursor{}, bad
	}
	return c, nil
}
