//go:build !linux

package postgres

import "syscall"

// boundUnacknowledged does nothing: only Linux can be told how long to wait. Keepalive and the
// deadlines of this program end such a connection.
func boundUnacknowledged(string, string, syscall.RawConn) error { return nil }
