package app

import (
	"net"
	"net/netip"
	"strings"

	"redrive/internal/usage"
)

// CheckListen refuses an address that can be reached from the network, unless
// that is allowed: because people have to log in, or because a flag says so.
func CheckListen(address string, allowed bool) error {
	_, port, err := net.SplitHostPort(address)
	if err != nil || port == "" {
		return usage.Errorf("--listen %q is not an address, for example 127.0.0.1:8080", address)
	}

	if _, err := net.LookupPort("tcp", port); err != nil {
		return usage.Errorf("--listen %s: %s is not a port; choose one from 1 to 65535, or 0 for any that is free", address, port)
	}

	if !allowed && !IsLoopback(address) {
		return usage.Errorf("--listen %s can be reached from the network, and no login is configured; "+
			"add a user (dashboard user add NAME --role admin), listen on 127.0.0.1, or add --insecure-no-auth", address)
	}

	return nil
}

// IsLoopback reports whether an address can be reached from this machine only.
func IsLoopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}

	if strings.EqualFold(host, "localhost") {
		return true
	}

	ip, err := netip.ParseAddr(host)

	return err == nil && ip.Unmap().IsLoopback()
}
