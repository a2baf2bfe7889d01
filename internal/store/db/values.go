package db

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// Micros is a time as the database keeps it: microseconds since 1970, 0 for the
// zero time.
func Micros(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMicro()
}

// FromMicros is the inverse of Micros.
func FromMicros(n int64) time.Time {
	if n <= 0 {
		return time.Time{}
	}
	return time.UnixMicro(n).UTC()
}

// Time is where a time goes that a query reads.
func Time(t *time.Time) sql.Scanner { return field[time.Time]{t, FromMicros} }

// Duration is where a number of microseconds goes that a query reads.
func Duration(d *time.Duration) sql.Scanner {
	return field[time.Duration]{d, func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }}
}

// field is where a value goes that is kept as a number.
type field[T any] struct {
	to   *T
	from func(int64) T
}

// Scan takes the number that a query read.
func (f field[T]) Scan(value any) error {
	n, ok := value.(int64)
	if !ok {
		return fmt.Errorf("%v is not a number", value)
	}

	*f.to = f.from(n)

	return nil
}

// Blob is where bytes go that a query reads. They are the driver's own, so the driver
// has to allocate new ones for every row: for package sql, which copies them once more,
// a driver may reuse them.
func Blob(to *[]byte) sql.Scanner { return (*blob)(to) }

type blob []byte

// Scan takes the bytes that a query read.
func (b *blob) Scan(value any) error {
	read, ok := value.([]byte)
	if !ok && value != nil {
		return fmt.Errorf("%v is no blob", value)
	}

	*b = read

	return nil
}

// The units of times that are counted by the minute or the hour.
const (
	MicrosPerMinute = 60_000_000
	MicrosPerHour   = 60 * MicrosPerMinute
)

// Clean is a text as every database can keep it: valid UTF-8 without NUL.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// clean returns the arguments of a statement with clean texts. Those of the caller stay as
// they are.
func clean(args []any) []any {
	cleaned, copied := args, false
	for i, arg := range args {
		var now any
		switch was := arg.(type) {
		case string:
			if text := Clean(was); text != was {
				now = text
			}
		case Texts:
			now = was.clean()
		}

		if now == nil {
			continue
		}

		if !copied {
			cleaned, copied = slices.Clone(args), true
		}

		cleaned[i] = now
	}

	return cleaned
}
