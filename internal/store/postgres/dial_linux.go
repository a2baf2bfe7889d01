package postgres

import (
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// unacknowledged is how long the peer may take to acknowledge what was sent.
const unacknowledged = 10 * time.Second

// boundUnacknowledged lets the operating system end a TCP connection whose peer acknowledges
// nothing. Otherwise it would send the same again for a quarter of an hour.
func boundUnacknowledged(network, _ string, conn syscall.RawConn) error {
	if !strings.HasPrefix(network, "tcp") {
		return nil
	}

	var refused error
	err := conn.Control(func(fd uintptr) {
		refused = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
	if err != nil {
		return err
	}

	return refused
}
