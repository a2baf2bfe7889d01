// Package limit keeps strangers, and any single address, from taking what everyone
// needs: connections, requests under way, bytes of their bodies, files that are
// written.
//
// Each of these is a [Share]: so many for everyone together, of which one address
// can have no more than it leaves free for all others (with a share of half; other
// shares shift the balance). So one address alone gets half, two get a third each,
// and however many hold as much as they can, the next one still finds room. No
// address is given a number of its own that would be too small for the office
// behind one router, and too large for a thousand strangers.
package limit

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"
)

// Address is what a limit counts by: an IPv4 address, or the IPv6 network of 64 bits
// that one customer has as a whole. The zero Address stands for no client in
// particular, such as a proxy: it has no share of its own to exceed.
type Address = netip.Prefix

// AddressOf reads the address of a connection or a request, with its port or
// without.
func AddressOf(text string) Address {
	if host, _, err := net.SplitHostPort(text); err == nil {
		text = host
	}

	ip, err := netip.ParseAddr(text)
	if err != nil {
		return Address{}
	}

	ip = ip.Unmap().WithZone("")
	bits := 32
	if ip.Is6() {
		bits = 64
	}

	network, _ := ip.Prefix(bits) // no error: so many bits an address has

	return network
}

// Refusal is why something was not given.
type Refusal string

// The reasons. The zero Refusal is none.
const (
	ByAddress Refusal = "address" // this address has its share
	ByAll     Refusal = "all"     // nothing is left for anyone
)

// Share is so much of something, shared among addresses.
type Share struct {
	total, percent int

	mu      sync.Mutex
	used    int
	by      map[Address]int
	changed chan struct{} // closed when something was given back; nil while no request waits
}

// NewShare shares out a total, of which one address alone can have so many percent.
func NewShare(total, percent int) *Share {
	return &Share{total: total, percent: percent, by: map[Address]int{}}
}

// Take takes n for an address, or says why not.
func (s *Share) Take(who Address, n int) Refusal {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(who, n)
}

func (s *Share) take(who Address, n int) Refusal {
	free, mine := s.total-s.used-n, s.by[who]+n
	switch {
	case free < 0:
		return ByAll
	case who != Address{} && mine > n && mine*(100-s.percent) > free*s.percent: // an address that has nothing yet takes what there is
		return ByAddress
	}

	s.used += n
	s.by[who] = mine

	return ""
}

// Give gives back what was taken.
func (s *Share) Give(who Address, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()

	s.used -= n
	s.by[who] -= n
	if s.by[who] <= 0 {
		delete(s.by, who)
	}

	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
}

// Wait takes one for an address, and waits for it as long as it may. The context's
// end is an error.
func (s *Share) Wait(ctx context.Context, who Address, patience time.Duration) (Refusal, error) {
	late := time.NewTimer(patience)
	defer late.Stop()

	for {
		s.mu.Lock()

		refused := s.take(who, 1)
		if refused == "" {
			s.mu.Unlock()
			return "", nil
		}

		if s.changed == nil {
			s.changed = make(chan struct{})
		}

		changed := s.changed
		s.mu.Unlock()

		select {
		case <-changed:
		case <-late.C:
			return refused, nil
		case <-ctx.Done():
			return refused, ctx.Err()
		}
	}
}

// Used is how much is taken at this moment.
func (s *Share) Used() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.used
}

// biggest is the address that has the most, if that is more than another one has.
func (s *Share) biggest(than Address) (who Address, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()

	most := s.by[than]
	for from, n := range s.by {
		if n > most {
			who, most, ok = from, n, true
		}
	}

	return who, ok
}
