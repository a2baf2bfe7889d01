package codec_test

import (
	"slices"
	"testing"
	"time"

	"redrive/internal/source"
)

// Sidekiq 8 writes milliseconds where those before it write seconds.
func TestSidekiq_KnowsBothUnitsOfTime(t *testing.T) {
	for raw, want := range map[string]string{
		`{"queue":"a","created_at":1795344034.789049,"enqueued_at":1795344034.8,"failed_at":1795344038.5}`: `{"queue":"a","created_at":1795344034.789049,"enqueued_at":1795521600.123456}`,
		`{"queue":"a","created_at":1795344034789,"enqueued_at":1795344034800,"failed_at":1795344038500}`:   `{"queue":"a","created_at":1795344034789,"enqueued_at":1795521600123}`,
		`{"failed_at":1795344038500,"queue":"a","created_at":1795344034789}`:                               `{"queue":"a","created_at":1795344034789,"enqueued_at":1795521600123}`,
	} {
		if got := string(clean("sidekiq", []byte(raw), source.Fresh)); got != want {
			t.Errorf("%s makes\n%s, not\n%s", raw, got, want)
		}
		if r := read(t, "sidekiq", []byte(raw)); !r.FailedAt.Equal(time.Date(2026, 11, 22, 10, 40, 38, 5e8, time.UTC)) {
			t.Errorf("%s failed at %s", raw, r.FailedAt)
		}
	}
}

func TestSidekiq_WarnsOfWhatAReplayCannotDo(t *testing.T) {
	r := read(t, "sidekiq", []byte(`{"queue":"a","class":"Sidekiq::ActiveJob::Wrapper","wrapped":"ChargeJob","bid":"b","unique_for":60,"encrypt":true,"retry_for":3600,"expires_in":60}`))
	if len(r.Warnings) != 5 || r.Type != "ChargeJob" || !slices.Contains(r.Warnings, "It is unique: a replay from here runs without its lock.") {
		t.Errorf("%+v", r)
	}
}
