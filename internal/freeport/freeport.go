// Package freeport finds ports for the servers that tests start, which cannot choose one by
// themselves and say which.
//
// A port that the system chose for a listener, as it does for ":0", is one of those that it also gives to
// connections: as soon as the listener is closed, a connection of another test can take the port
// before the server does. So the ports of this package come from below that range.
package freeport

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
)

// The range is free of what connections get on Linux (from 32768) and macOS (from 49152).
const (
	first = 20_000
	last  = 32_000
)

// tries is how many ports are looked at before none is found.
const tries = 1000

// Find returns a port of 127.0.0.1 at which no program listens. It is chosen at random, so that tests
// that run side by side do not choose the same one.
func Find() (string, error) {
	for range tries {
		port := strconv.Itoa(first + rand.IntN(last-first))

		listener, err := net.Listen("tcp", Address(port))
		if err == nil {
			return port, listener.Close()
		}

		if !errors.Is(err, syscall.EADDRINUSE) {
			return "", fmt.Errorf("look for a free port: %w", err)
		}
	}

	return "", fmt.Errorf("none of %d ports between %d and %d is free", tries, first, last)
}

// Address is the address of a port, such as "127.0.0.1:20417".
func Address(port string) string { return net.JoinHostPort("127.0.0.1", port) }
