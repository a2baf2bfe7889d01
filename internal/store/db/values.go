package db

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"redrive/internal/job"
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
		return fmt.Errorf("%v is no number", value)
	}
	*f.to = f.from(n)
	return nil
}

// The units of times that are counted by the minute or the hour.
const (
	MicrosPerMinute = 60_000_000
	MicrosPerHour   = 60 * MicrosPerMinute
)

// Clean is a text as every database can keep it: valid UTF-8 without NUL. What
// is remembered of a row has to be cleaned as the row is.
func Clean(s string) string {
	if utf8.ValidString(s) && strings.IndexByte(s, 0) < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// Numbers is a JSON array of numbers, the form in which many travel to one
// statement.
func Numbers(numbers []int64) string {
	text := []byte{'['}
	for i, n := range numbers {
		if i > 0 {
			text = append(text, ',')
		}
		text = strconv.AppendInt(text, n, 10)
	}
	return string(append(text, ']'))
}

// Rows is how rows of values travel to one statement; numbers alone go by
// Numbers.
func Rows[T any](rows []T) string {
	text, _ := json.Marshal(rows) // numbers and texts: it never fails
	return string(text)
}

// Expect checks that a statement changed as many rows as the writer knows to be
// there. Anything else means that another program changed the database, and only
// a restart reads it again.
func Expect(want, got int64, err error) error {
	if err == nil && got != want {
		err = fmt.Errorf("%w: %d rows changed instead of %d: another program wrote to the file", job.ErrBroken, got, want)
	}
	return err
}
