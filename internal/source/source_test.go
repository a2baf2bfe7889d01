package source_test

import (
	"strings"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/preset"
)

// A person can always ask for the queue of a source's jobs.
func TestQueue_CanBeAskedFor(t *testing.T) {
	for queue, want := range map[string]string{
		"orders": "orders@shop", "": "default@shop", "App\\Jobs": "App_Jobs@shop", "<b>bold": "b_bold@shop", "__": "default@shop",
		strings.Repeat("x", 300): strings.Repeat("x", 123) + "@shop",
	} {
		got := source.Queue("shop", queue)
		if got != want {
			t.Errorf("%q is in the queue %q, want %q", queue, got, want)
		}
		if err := filter.CheckQueue(got); err != nil {
			t.Errorf("%q: %v", queue, err)
		}
	}
}

// A size and the limit that it exceeds never read the same.
func TestSizes_AreExactWhereTheyWouldReadTheSame(t *testing.T) {
	for _, tt := range []struct {
		n, limit int64
		want     string
	}{
		{3000, 1000, "3 kB, 1 kB"}, {1023, 1000, "1023 bytes, 1000 bytes"}, {8_000_001, 8_000_000, "8000001 bytes, 8000000 bytes"},
		{9_000_000, 8_000_000, "9.0 MB, 8.0 MB"}, {16_000_300, 16_000_000, "16000300 bytes, 16000000 bytes"},
	} {
		size, limit := source.Sizes(tt.n, tt.limit)
		if got := size + ", " + limit; got != tt.want {
			t.Errorf("%d and %d are %q, want %q", tt.n, tt.limit, got, tt.want)
		}
	}
	const want = "It has 8000001 bytes, which is larger than the limit of 8000000 bytes for a record."
	if got := source.TooLarge("7", source.MaxRecord+1).Why; got != want {
		t.Errorf("a record that is one byte too large: %q", got)
	}
}

// A person is told at once, and not by the ledger later.
func TestProfile_APayloadOfAnotherKindThanTheSystemTakesIsRefused(t *testing.T) {
	for _, tt := range []struct{ preset, payload, want string }{
		{"solid-queue", ` {"n":1}`, "its payload there must be a JSON array"},
		{"good-job", `"text"`, "its payload there must be a JSON array"},
		{"sidekiq", `1`, "its payload there must be a JSON array"},
		{"oban", `[1]`, "its payload there must be a JSON object"},
		{"laravel", `null`, "its payload there must be a JSON object"},
		{"initphp", `7`, "its payload there must be a JSON object or array"},
		{"solid-queue", ` [1]`, ""}, {"oban", `{}`, ""}, {"initphp", `[]`, ""}, {"river", `7`, ""},
	} {
		request := source.Request{Kind: source.Replay, Mode: source.Once, Edited: true, Payload: []byte(tt.payload)}
		if got := preset.All()[tt.preset].Unsupported(request); got != tt.want {
			t.Errorf("%s, %s: %q, want %q", tt.preset, tt.payload, got, tt.want)
		}
	}
}

func TestAddedAt_IsWhenTheIDWasMade(t *testing.T) {
	of := func(id string) time.Time { return source.AddedAt(job.Job{Token: job.Token{ID: id}}) }
	if got, want := of("0195f0c0-0001-7000-8000-000000000001"), time.UnixMilli(0x0195f0c0_0001).UTC(); !got.Equal(want) {
		t.Errorf("the id was made at %s, want %s", got, want)
	}
	for _, id := range []string{"", "no id", "9f3c1b52-6a1e-4c55-9d0b-3a6c1d1f0a11"} { // the last one is random
		if at := of(id); !at.IsZero() {
			t.Errorf("%q was made at %s, want no time", id, at)
		}
	}
}
