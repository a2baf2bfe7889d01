package config

import (
	"strconv"
	"strings"

	"redrive/internal/access"
	"redrive/internal/failures"
)

// Limits bound what strangers and users together can take of the process. Each has a
// default that suits a machine of its own; docs/limits.md says what is answered
// beyond it.
type Limits struct {
	Connections  int          // to browsers and programs, open at once
	Requests     int          // under way at once
	RequestBytes int          // of the bodies of requests under way, but for large batches
	Memory       int          // beyond which the garbage collector works harder
	WriteBytes   int          // of jobs that wait to be written to the disk
	Batches      int          // requests with a body larger than one job can be, read at once
	Exports      int          // files written at once
	Websockets   int          // open pages of one address that are told of changes
	AddressShare int          // percent that one address can have alone of connections, requests, their bytes, batches and exports
	Logins       access.Tries // of passwords
	Statements   int          // texts of queries that are kept prepared
	Queues       int          // names of queues
	Types        int          // of jobs that are told apart where they are counted
	Groups       int          // of failures
}

const (
	kib = 1 << 10
	mib = 1 << 20
	gib = 1 << 30
)

// defaultLimits are the limits of a file that says nothing about them.
func defaultLimits() Limits {
	return Limits{
		Connections: 12_000, Requests: 1_000, RequestBytes: 32 * mib, WriteBytes: 128 * mib,
		Batches: 4, Exports: 8, Websockets: 100, AddressShare: 50, Statements: 256, Memory: 256 * mib,
		Queues: 1000, Types: 1000, Groups: failures.DefaultGroups,
		Logins: access.Tries{Person: 5, Address: 30, Minute: 100},
	}
}

// Limits are the bounds on what all clients together may use.
func (c *Config) Limits() Limits { return c.limits }

// readLimits reads the section limits.
func (c *Config) readLimits(v value) error {
	l := &c.limits

	return v.fields(map[string]func(value) error{
		"connections":   into(&l.Connections, between(10, 1_000_000)),
		"requests":      into(&l.Requests, between(10, 1_000_000)),
		"request_bytes": into(&l.RequestBytes, sizeBetween(mib, 1024*gib)),
		"memory":        into(&l.Memory, sizeBetween(64*mib, 1024*gib)),
		"write_bytes":   into(&l.WriteBytes, sizeBetween(mib, 1024*gib)),
		"batches":       into(&l.Batches, between(1, 1000)),
		"exports":       into(&l.Exports, between(1, 1000)),
		"websockets":    into(&l.Websockets, between(1, 1_000_000)),
		"address_share": into(&l.AddressShare, between(1, 100)),
		"statements":    into(&l.Statements, between(16, 100_000)),
		"logins": func(v value) error {
			return v.fields(map[string]func(value) error{
				"person":  into(&l.Logins.Person, between(1, 1000)),
				"address": into(&l.Logins.Address, between(1, 100_000)),
				"minute":  into(&l.Logins.Minute, between(1, 100_000)),
			})
		},
		"queues": into(&l.Queues, between(1, 1_000_000)),
		"types":  into(&l.Types, between(1, 100_000)),
		"groups": into(&l.Groups, between(10, 1_000_000)),
	})
}

// between makes a reader of a whole number that is neither too small nor too large.
func between(least, most int) func(value) (int, error) {
	return func(v value) (int, error) {
		n, err := v.integer()
		if err == nil && (n < least || n > most) {
			err = v.wrong("%d is out of range; use %d to %d", n, least, most)
		}

		return n, err
	}
}

// sizeBetween is between for a number of bytes, written as 64MiB, 512KiB or 2GiB.
func sizeBetween(least, most int) func(value) (int, error) {
	return func(v value) (int, error) {
		text, err := v.text()
		if err != nil {
			return 0, err
		}

		for _, unit := range []struct {
			name  string
			bytes int
		}{{"KiB", kib}, {"MiB", mib}, {"GiB", gib}} {
			digits, ok := strings.CutSuffix(text, unit.name)
			n, err := strconv.ParseUint(strings.TrimSpace(digits), 10, 31)
			if bytes := int(n) * unit.bytes; ok && err == nil && bytes >= least && bytes <= most {
				return bytes, nil
			}
		}

		return 0, v.wrong("is not a size from %s to %s, for example 64MiB", sizeText(least), sizeText(most))
	}
}

// sizeText writes a number of bytes that is a whole number of units.
func sizeText(bytes int) string {
	switch {
	case bytes%gib == 0:
		return strconv.Itoa(bytes/gib) + "GiB"
	case bytes%mib == 0:
		return strconv.Itoa(bytes/mib) + "MiB"
	}

	return strconv.Itoa(bytes/kib) + "KiB"
}
