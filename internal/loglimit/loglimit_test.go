package loglimit

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// seen is a limit with what it let through and what it counted.
type seen struct {
	*Limit[string]
	logged  int
	counted []string
}

func newSeen() *seen {
	s := &seen{}
	s.Limit = New(func(kind string, times int) { s.counted = append(s.counted, fmt.Sprint(kind, " ", times)) })
	return s
}

// counts is what was counted so far. A period may end meanwhile.
func (s *seen) counts() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.counted)
}

// happens calls Log many times.
func (s *seen) happens(kind string, times int) {
	for range times {
		s.Log(kind, func() { s.logged++ })
	}
}

func TestLimit_CountsWhatItDoesNotLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeen()
		s.happens("a", Burst+3)
		s.happens("b", 1)
		if s.logged != Burst+1 || len(s.counts()) > 0 {
			t.Errorf("%d lines and %q, want %d lines", s.logged, s.counts(), Burst+1)
		}

		time.Sleep(Period)
		synctest.Wait()
		if !slices.Equal(s.counts(), []string{"a 3"}) {
			t.Errorf("at the end of the period: %q", s.counts())
		}

		s.happens("a", Burst)
		time.Sleep(Period)
		synctest.Wait()
		if s.logged != 2*Burst+1 || len(s.counts()) != 1 {
			t.Errorf("the next period logged %d lines and counted %q", s.logged-Burst-1, s.counts())
		}
	})
}

func TestLimit_FlushCountsEachPeriodOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSeen()
		s.happens("a", Burst+1)
		s.Flush()
		s.happens("a", Burst+2)
		s.Flush()
		s.Flush()

		time.Sleep(2 * Period)
		synctest.Wait()
		if !slices.Equal(s.counts(), []string{"a 1", "a 2"}) || s.logged != 2*Burst {
			t.Errorf("%d lines and %q", s.logged, s.counts())
		}
	})
}
