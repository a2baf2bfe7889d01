package sqlsource

import (
	"encoding/hex"
	"strconv"
	"strings"
	"unicode/utf8"
)

// keep writes a value that names a record, or tells whether it has changed, as a text that
// any database can keep and that meant reads back: most as they are, bytes as in
// x'00ff', and a text that is not valid UTF-8 or has a NUL as Go would quote it.
//
// PostgreSQL and SQLite tell bytes from texts; MySQL compares both alike, and its driver
// returns both as bytes.
func (o *Origin) keep(v any) string {
	text := textOf(v)
	_, bytes := v.([]byte)
	plain := utf8.ValidString(text) && !strings.ContainsAny(text, "\x00\n") && meant(text) == any(text)
	alike := o.engine.name == "mysql"

	switch {
	case plain && (alike || !bytes):
		return text
	case alike || bytes:
		return "x'" + hex.EncodeToString([]byte(text)) + "'"
	}

	return strconv.QuoteToASCII(text)
}

// meant is the value that keep wrote, for a statement.
func meant(text string) any {
	if digits, ok := strings.CutPrefix(text, "x'"); ok && strings.HasSuffix(digits, "'") {
		if bytes, err := hex.DecodeString(strings.TrimSuffix(digits, "'")); err == nil {
			return bytes
		}
	}

	if strings.HasPrefix(text, `"`) {
		if quoted, err := strconv.Unquote(text); err == nil {
			return quoted
		}
	}

	return text
}
