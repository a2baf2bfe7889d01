package source

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// Record is a dead letter at a source, as it was read.
type Record struct {
	Key          string // names the record among all dead ones at the source at one time
	Lineage      string // names the job through its runs: a record that is dead again has the same one
	Place        string // where it is stored: a table, a list, a sorted set
	VersionToken string // what must not have changed when a user acts on the record
	Raw          []byte // the record as the source keeps it, where an act needs it; else nil

	Queue     string // that it was enqueued for; a replay goes there
	Type      string
	Payload   []byte // what the job was given
	Meta      []byte // a JSON object of what else the record says, or nil
	Error     job.ErrorInfo
	Trace     string
	Attempts  int       // as the source counts them, see the preset; 0 when it does not say
	Limit     int       // of attempts; 0 when it does not say
	FailedAt  time.Time // zero when the source does not say
	CreatedAt time.Time // zero when the source does not say
	History   []Failure // earlier failures, the oldest first, where the source keeps them
	Warnings  []string  // what a person should know before acting on it, in sentences
}

// Failure is one of the failures of a record before the last one.
type Failure struct {
	Number int
	At     time.Time
	Error  job.ErrorInfo
	Trace  string
}

// ReasonOf is why a record died, as far as its source says: it says as much only where it
// counts attempts up to a limit.
func ReasonOf(r *Record) retry.Reason {
	if r.Limit > 0 && r.Attempts >= r.Limit {
		return retry.AttemptsExhausted
	}
	return retry.ReasonUnknown
}

// Version tells a record from the one that was under its key before: it changes when the
// record dies again.
func (r *Record) Version() int64 {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.VersionToken), r.Raw, []byte(r.Place)} {
		h.Write(binary.AppendUvarint(nil, uint64(len(part))))
		h.Write(part)
	}

	return int64(binary.BigEndian.Uint64(h.Sum(nil)))
}

// FullName names a record where its key names others as well.
func (r *Record) FullName() string {
	if r.VersionToken == "" || r.VersionToken == r.Key {
		return r.Key
	}
	return r.Key + " (" + r.VersionToken + ")"
}

// MaxRecord is how many bytes a record may have. A larger one is quarantined.
const MaxRecord = 8_000_000

// Size is a number of bytes in words.
func Size(n int64) string {
	switch {
	case n >= 10_000_000:
		return fmt.Sprintf("%d MB", n/1_000_000)
	case n >= 1_000_000:
		return fmt.Sprintf("%.1f MB", float64(n)/1_000_000)
	case n >= 1000:
		return fmt.Sprintf("%d kB", n/1000)
	}

	return fmt.Sprintf("%d bytes", n)
}

// Sizes are a number of bytes and the limit that it exceeds, in words. Where both would round
// to the same words, both are exact.
func Sizes(n, limit int64) (size, most string) {
	size, most = Size(n), Size(limit)
	if size == most {
		size, most = fmt.Sprintf("%d bytes", n), fmt.Sprintf("%d bytes", limit)
	}

	return size, most
}

// Refusal is a record that is at a source and could not be taken over.
type Refusal struct {
	Key string
	Why string // a sentence
}

// TooLarge is the refusal of a record of so many bytes.
func TooLarge(key string, size int64) Refusal {
	has, limit := Sizes(size, MaxRecord)
	return Refusal{key, fmt.Sprintf("It has %s, which is larger than the limit of %s for a record.", has, limit)}
}
