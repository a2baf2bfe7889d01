package webhook_test

import (
	"math"
	"testing"
	"time"

	"redrive/internal/webhook"
)

func TestForwarding_FitsIntoWhatADeadLetterHas(t *testing.T) {
	for f, want := range map[webhook.Sending]bool{
		webhook.DefaultSending():                        true,
		{Timeout: webhook.Deadline, Attempts: 1}:        true,
		{Timeout: webhook.Deadline + 1, Attempts: 1}:    false,
		{Timeout: 7250 * time.Millisecond, Attempts: 3}: true, // and pauses of 0.75 and 1.5 seconds
		{Timeout: 7251 * time.Millisecond, Attempts: 3}: false,
		{Timeout: time.Millisecond, Attempts: 10}:       false, // the pauses alone are too long
		{Timeout: math.MaxInt64, Attempts: 10}:          false,
	} {
		if got := f.Fits(); got != want {
			t.Errorf("%d tries of %v fit: %v, want %v", f.Attempts, f.Timeout, got, want)
		}
	}
}

func TestForwarding_SpreadsItsPauses(t *testing.T) {
	for n, want := range map[int][2]time.Duration{
		1: {250 * time.Millisecond, 750 * time.Millisecond},
		2: {500 * time.Millisecond, 1500 * time.Millisecond},
		9: {5 * time.Second, 10 * time.Second},
	} {
		f := webhook.DefaultSending()
		low, high := f.Pause(n, func() float64 { return 0 }), f.Pause(n, func() float64 { return 1 })
		if low != want[0] || high != want[1] {
			t.Errorf("after try %d a pause of %v to %v, want %v", n, low, high, want)
		}
	}
}
