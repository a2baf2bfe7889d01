package codec

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"io"
	"math"
	"slices"
	"strconv"
	"time"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/source"
)

// isObject reports whether bytes are one JSON object that two readers read alike.
func isObject(raw []byte) bool {
	if rawjson.Kind(raw) != '{' || rawjson.Check(raw, job.MaxDepth) != "" {
		return false
	}

	_, twice := rawjson.Repeated(raw)

	return !twice
}

// without takes members out of an object, and leaves all other bytes as they are.
func without(object []byte, drop func(name string) bool) []byte {
	return edited(object, func(name string, _ []byte) ([]byte, bool) { return nil, drop(name) })
}

// edited takes members out of an object or gives them other values: change returns nil to
// take a member out, and false for one that stays as it is.
func edited(object []byte, change func(name string, value []byte) (with []byte, changed bool)) []byte {
	var all []rawjson.Member
	for m := range rawjson.Members(object) {
		all = append(all, m)
	}

	return rawjson.Splice(object, func(yield func(rawjson.Edit) bool) {
		kept := false // a member before
		for i, m := range all {
			with, changed := change(m.Name, object[m.Value:m.To])
			e := rawjson.Edit{From: m.Value, To: m.To, Text: with}
			if changed && with == nil {
				e.From = m.From
				switch { // with the comma that joins it to a member that stays
				case kept:
					e.From = all[i-1].To
				case i+1 < len(all):
					e.To = all[i+1].From
				}
			} else {
				kept = true
			}

			if changed && !yield(e) {
				return
			}
		}
	})
}

// metaOf is what a record says beside what is shown elsewhere, as far as it fits.
func metaOf(object []byte, shown ...string) []byte {
	rest := without(object, func(name string) bool { return slices.Contains(shown, name) })
	if len(rest) > job.MaxMeta || len(bytes.TrimSpace(rest)) <= len("{}") {
		return nil
	}

	return rest
}

// facts makes a JSON object of names and values, in their order, without those that are
// empty.
func facts(pairs ...string) []byte {
	var b bytes.Buffer
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] == "" {
			continue
		}

		if b.Len() == 0 {
			b.WriteByte('{')
		} else {
			b.WriteByte(',')
		}

		b.Write(rawjson.Quote(pairs[i]))
		b.WriteByte(':')

		// A value that is JSON stays what it is, and any other is a text.
		if value := []byte(pairs[i+1]); json.Valid(value) {
			b.Write(value)
		} else {
			b.Write(rawjson.Quote(pairs[i+1]))
		}
	}

	// One byte of the limit is left for the closing brace.
	if b.Len() == 0 || b.Len() >= job.MaxMeta {
		return nil
	}

	b.WriteByte('}')

	return b.Bytes()
}

// count is a number of attempts; ok is false for one that cannot be.
func count(value []byte) (n int, ok bool) {
	n, err := strconv.Atoi(string(value))
	return n, err == nil && n >= 0 && n < math.MaxUint16
}

// instant reads a time: whole milliseconds, or seconds with a fraction.
func instant(value []byte) time.Time {
	text := string(value)
	if n, err := strconv.ParseInt(text, 10, 64); err == nil && n > 1e11 && n < 1e14 {
		return time.UnixMilli(n).UTC()
	}

	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil || !(seconds > 0 && seconds < 1e11) {
		return time.Time{}
	}

	return time.UnixMicro(int64(math.Round(seconds * 1e6))).UTC()
}

// millis is a time in whole milliseconds, zero for one that cannot be.
func millis(n int64) time.Time { return possible(time.UnixMilli(n)) }

// possible is a time in UTC, zero for one that cannot be the time of a job: before the end
// of the first second of 1970, or after the year 9999. The seconds are compared, since a
// time that has overflowed is neither before nor after another one.
func possible(at time.Time) time.Time {
	const year10000 = 253_402_300_800

	seconds := at.Unix()
	if seconds <= 0 || seconds >= year10000 {
		return time.Time{}
	}

	return at.UTC()
}

// inflated unpacks what zlib has packed, as far as a trace is kept. It is empty for bytes
// that zlib has not packed.
func inflated(packed []byte) []byte {
	r, err := zlib.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil
	}

	text, _ := io.ReadAll(io.LimitReader(r, 4*job.MaxTrace)) // what came before a fault is shown

	return text
}

// warn adds a sentence to what a person should know of a record.
func warn(r *source.Record, when bool, sentence string) {
	if when {
		r.Warnings = append(r.Warnings, sentence)
	}
}
