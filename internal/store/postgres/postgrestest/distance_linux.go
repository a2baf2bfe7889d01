package postgrestest

import (
	"time"

	"golang.org/x/sys/unix"
)

// waitUntil waits as long as it says. Where a program has nothing else to do, time.Sleep ends at a
// whole millisecond: twice as late as a moment half a millisecond ahead.
func waitUntil(moment time.Time) {
	for {
		left := time.Until(moment)
		if left <= 0 {
			return
		}

		wait := unix.NsecToTimespec(left.Nanoseconds())
		_ = unix.Nanosleep(&wait, nil) // a signal ends it early, and then it goes on
	}
}
