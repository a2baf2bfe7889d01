//go:build !linux

package postgrestest

import "time"

// waitUntil waits until a moment, as exactly as the operating system can.
func waitUntil(moment time.Time) { time.Sleep(time.Until(moment)) }
