package freeport_test

import (
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"redrive/internal/freeport"
)

// A server can listen at the port, which no connection gets.
func TestFind_IsBelowThePortsOfConnections(t *testing.T) {
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}

	listener, err := net.Listen("tcp", freeport.Address(port))
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()

	text, err := os.ReadFile("/proc/sys/net/ipv4/ip_local_port_range")
	if err != nil {
		t.Skip("this system does not say which ports connections get")
	}

	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}

	lowest, err := strconv.Atoi(strings.Fields(string(text))[0])
	if err != nil {
		t.Fatal(err)
	}

	if n >= lowest {
		t.Errorf("port %d is one that connections get, which begin at %d", n, lowest)
	}
}
