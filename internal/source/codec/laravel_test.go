package codec

import (
	"testing"
	"time"

	"redrive/internal/source"
)

// Laravel 12 writes when a job was made into its payload, in seconds; earlier versions do not say it.
func TestLaravel_SaysWhenAJobWasEnqueued(t *testing.T) {
	for raw, want := range map[string]time.Time{
		`{"displayName":"App\\Jobs\\Charge","createdAt":1763808556}`: time.Unix(1763808556, 0).UTC(),
		`{"displayName":"App\\Jobs\\Charge"}`:                        {},
		`{"displayName":"App\\Jobs\\Charge","createdAt":null}`:       {},
	} {
		r := source.Record{Raw: []byte(raw)}
		readLaravel(&r)
		if !r.CreatedAt.Equal(want) {
			t.Errorf("%s was made at %v, want %v", raw, r.CreatedAt, want)
		}
	}
}
