package limit

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// takeAll takes one by one what an address can have.
func takeAll(s *Share, who Address) (n int, why Refusal) {
	for {
		if why := s.Take(who, 1); why != "" {
			return n, why
		}
		n++
	}
}

func TestShare_OneAddressLeavesHalf(t *testing.T) {
	s := NewShare(1000, 50)
	if n, why := takeAll(s, AddressOf("192.0.2.1")); n != 500 || why != ByAddress {
		t.Errorf("the first address takes %d of 1000, then %q; want 500", n, why)
	}
	if n, _ := takeAll(s, AddressOf("192.0.2.2")); n != 250 {
		t.Errorf("the second takes %d, want half of what is left", n)
	}
	if why := s.Take(AddressOf("192.0.2.3"), 1); why != "" {
		t.Errorf("somebody else is refused: %s", why)
	}
}

// Addresses that take whatever they can, again and again, end with equal parts, and
// leave as much to others.
func TestShare_BecomesFair(t *testing.T) {
	s, greedy := NewShare(1000, 50), []Address{AddressOf("192.0.2.1"), AddressOf("192.0.2.2"), AddressOf("192.0.2.3")}
	for range 1000 {
		for _, who := range greedy {
			takeAll(s, who)
			s.Give(who, 5)
		}
	}
	for _, who := range greedy {
		if n := s.by[who]; n < 200 || n > 300 {
			t.Errorf("%s has %d of 1000, want about a quarter", who, n)
		}
	}
}

func TestShare_OtherPercents(t *testing.T) {
	for percent, want := range map[int]int{10: 100, 50: 500, 80: 800, 100: 1000} {
		if n, _ := takeAll(NewShare(1000, percent), AddressOf("192.0.2.1")); n != want {
			t.Errorf("with %d percent one address takes %d of 1000, want %d", percent, n, want)
		}
	}
	if n, why := takeAll(NewShare(10, 50), Address{}); n != 10 || why != ByAll {
		t.Errorf("a proxy takes %d of 10, then %q; want all", n, why)
	}
	if n, _ := takeAll(NewShare(1, 1), AddressOf("192.0.2.1")); n != 1 {
		t.Error("nobody can have the only one")
	}
}

func TestAddressOf(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.1": "192.0.2.1/32", "192.0.2.1:80": "192.0.2.1/32", "[::ffff:192.0.2.1]:80": "192.0.2.1/32",
		"2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64", "[2001:db8:1:2::9]:1": "2001:db8:1:2::/64", "[fe80::1%eth0]:1": "fe80::/64",
		"": "invalid Prefix", "@": "invalid Prefix", "pipe": "invalid Prefix",
	} {
		if got := AddressOf(text).String(); got != want {
			t.Errorf("%q counts as %s, want %s", text, got, want)
		}
	}
}

func TestShare_WaitTakesWhatIsGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, one, two := NewShare(1, 50), AddressOf("192.0.2.1"), AddressOf("192.0.2.2")
		s.Take(one, 1)
		go func() {
			time.Sleep(time.Second)
			s.Give(one, 1)
		}()
		begin := time.Now()
		if why, err := s.Wait(t.Context(), two, 2*time.Second); why != "" || err != nil || time.Since(begin) != time.Second {
			t.Errorf("%q, %v after %v; want a place after a second", why, err, time.Since(begin))
		}
		if why, err := s.Wait(t.Context(), one, 2*time.Second); why != ByAll || err != nil || time.Since(begin) != 3*time.Second {
			t.Errorf("%q, %v after %v; want a refusal after two seconds more", why, err, time.Since(begin))
		}
		left, leave := context.WithCancel(t.Context())
		leave()
		if _, err := s.Wait(left, one, time.Minute); err == nil {
			t.Error("nobody noticed that the caller had left")
		}
	})
}
