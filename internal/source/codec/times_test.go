package codec_test

import (
	"fmt"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/codec"
)

// Whatever a system has written for a time, a record has one that a calendar shows, or
// none.
func TestRead_ATimeThatCannotBeIsNone(t *testing.T) {
	texts := []string{"0000-01-01T00:00:00.0Z", "0001-01-01T00:00:00.0Z", "1969-12-31T23:59:59.0Z", "1970-01-01T00:00:00.5Z"}
	for _, text := range texts {
		t.Run("RQ/"+text, func(t *testing.T) {
			hasNoTime(t, readHash(t, "rq", codec.Fields{"ended_at": text, "created_at": text}))
		})
	}

	for _, n := range []string{"-1", "0", "253402300800000", "9223372036854775807", "-9223372036854775808", "1e300", "NaN"} {
		t.Run("BullMQ/"+n, func(t *testing.T) {
			hasNoTime(t, readHash(t, "bullmq", codec.Fields{"name": "n", "finishedOn": n, "timestamp": n}))
		})
		t.Run("Laravel/"+n, func(t *testing.T) {
			hasNoTime(t, read(t, "laravel", []byte(`{"displayName":"A","createdAt":`+n+`}`)))
		})
		t.Run("Sidekiq/"+n, func(t *testing.T) {
			hasNoTime(t, read(t, "sidekiq", fmt.Appendf(nil, `{"class":"A","args":[],"jid":"a","failed_at":%s,"created_at":%s}`, n, n)))
		})
		t.Run("daycry/"+n, func(t *testing.T) {
			hasNoTime(t, read(t, "daycry-redis", []byte(`{"time":`+n+`,"data":{"job":"a","payload":{}}}`)))
		})
	}
}

func readHash(t *testing.T, name string, fields codec.Fields) source.Record {
	t.Helper()
	reader, ok := codec.Hash(name)
	if !ok {
		t.Fatalf("there is no reader of hashes of %s", name)
	}

	r := source.Record{Queue: "orders"}
	reader(&r, fields)

	return r
}

func hasNoTime(t *testing.T, r source.Record) {
	t.Helper()
	if !r.FailedAt.IsZero() || !r.CreatedAt.IsZero() {
		t.Errorf("it failed at %s and was made at %s", r.FailedAt, r.CreatedAt)
	}
}
