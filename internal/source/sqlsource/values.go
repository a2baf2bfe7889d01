package sqlsource

import (
	"database/sql"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
)

// instant is a time that the database keeps as one, and not as what a clock on the wall said.
type instant time.Time

// instantsOf tells for each column of an answer whether it has instants. The driver makes the
// same of both, but PostgreSQL has a type for each.
func instantsOf(rows *sql.Rows) (instants []bool, err error) {
	kinds, err := rows.ColumnTypes()
	for _, kind := range kinds {
		instants = append(instants, kind.DatabaseTypeName() == "TIMESTAMPTZ")
	}

	return instants, err
}

// textOf is a value as a text. A time is one that the database reads again.
func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		return strconv.FormatInt(v, 10)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case bool:
		return strconv.FormatBool(v)
	case time.Time:
		return v.UTC().Format("2006-01-02T15:04:05.999999999Z")
	case instant:
		return textOf(time.Time(v))
	}

	text, err := json.Marshal(v)
	if err != nil { // unreachable: drivers give no other values
		return ""
	}

	return string(text)
}

// numberOf is a value as a number; 0 when it is none.
func numberOf(v any) int64 {
	n, err := strconv.ParseInt(textOf(v), 10, 64)
	if err != nil {
		return 0
	}

	return n
}

// offsets are how databases and programs write a time with its offset, or a Z for none.
var offsets = []string{
	"2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999 Z07:00", "2006-01-02 15:04:05.999999999Z0700",
	"2006-01-02 15:04:05.999999999 -0700", "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999 -0700 MST",
	"2006-01-02 15:04:05.999999999 UTC", "2006-01-02 15:04Z07:00",
}

// timeOf reads a time: seconds since 1970, an instant, or what a clock on the wall said
// in the zone of the system. It is zero when there is none.
func (o *Origin) timeOf(v any) time.Time {
	switch v := v.(type) {
	case nil:
		return time.Time{}
	case int64:
		return time.Unix(v, 0).UTC()
	case time.Time:
		if o.preset.Zone { // the driver takes the wall for UTC
			return time.Date(v.Year(), v.Month(), v.Day(), v.Hour(), v.Minute(), v.Second(), v.Nanosecond(), o.zone).UTC()
		}
		return v.UTC()
	case instant:
		return time.Time(v).UTC()
	}

	text := strings.TrimSpace(textOf(v))
	if date, clock, ok := strings.Cut(text, "T"); ok && len(date) == len(time.DateOnly) {
		text = date + " " + clock
	}

	for _, layout := range offsets { // a time with an offset is an instant, whatever the zone
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC()
		}
	}

	for _, layout := range []string{"2006-01-02 15:04:05.999999999", "2006-01-02 15:04", "2006-01-02"} {
		if at, err := time.ParseInLocation(layout, text, o.zone); err == nil {
			return at.UTC()
		}
	}

	if seconds, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(seconds, 0).UTC()
	}

	return time.Time{}
}

// historyOf reads a JSON array of failures. The last one is the record's own.
func historyOf(text string) []source.Failure {
	var all []struct {
		At      time.Time
		Attempt int
		Error   string
		Trace   string
	}
	if json.Unmarshal([]byte(text), &all) != nil || len(all) < 2 {
		return nil
	}

	var failures []source.Failure
	for _, f := range all[:len(all)-1] {
		failures = append(failures, source.Failure{Number: f.Attempt, At: f.At, Error: job.ErrorInfo{Message: f.Error}, Trace: f.Trace})
	}

	return failures
}
