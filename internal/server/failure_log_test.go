package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/loglimit"
	"redrive/internal/server/problem"
)

// A full disk fails every request. The log tells the first ones and how many there were,
// and an error of another kind among them.
func TestFailureLog_TellsTheFirstOfEachKindAndTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		log := slog.New(slog.NewTextHandler(&out, nil))
		l := newFailureLog(log)
		fail := func(k problem.Kind, what string) { l.Log(k, func() { log.Error("request failed", "error", what) }) }
		for range 1000 {
			fail(problem.StorageFull, "the disk is full")
		}
		fail(problem.Unexpected, "a bug")
		if n := strings.Count(out.all(), "the disk is full"); n != loglimit.Burst || !strings.Contains(out.all(), "a bug") {
			t.Errorf("%d lines, want %d and the bug:\n%s", n, loglimit.Burst, out.all())
		}
		time.Sleep(loglimit.Period)
		synctest.Wait()
		if !strings.Contains(out.all(), "requests=990") {
			t.Errorf("the log does not say how many more there were:\n%s", out.all())
		}
		out.Reset()
		fail(problem.StorageFull, "the disk is full")
		time.Sleep(loglimit.Period)
		synctest.Wait()
		if strings.Count(out.all(), "\n") != 1 {
			t.Errorf("a new period:\n%s", out.all())
		}
	})
}
