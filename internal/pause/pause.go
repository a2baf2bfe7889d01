// Package pause waits, at most as long as its caller's context.
package pause

import (
	"context"
	"time"
)

// For waits for a duration. It reports false when ctx ended first.
func For(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()

	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
