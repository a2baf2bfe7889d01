package server

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/server/problem"
)

// A full disk fails every request. The log tells the first ones and how many there were,
// and an error of another kind among them.
func TestFailureLog_TellsTheFirstOfEachKindAndTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out lines
		l := &failureLog{log: slog.New(slog.NewTextHandler(&out, nil))}
		for range 1000 {
			l.failed(problem.StorageFull, "error", "the disk is full")
		}
		l.failed(problem.Unexpected, "error", "a bug")
		if n := strings.Count(out.all(), "the disk is full"); n != failureBurst || !strings.Contains(out.all(), "a bug") {
			t.Errorf("%d lines, want %d and the bug:\n%s", n, failureBurst, out.all())
		}
		time.Sleep(failurePeriod)
		synctest.Wait()
		if !strings.Contains(out.all(), "requests=990") {
			t.Errorf("the log does not say how many more there were:\n%s", out.all())
		}
		out.Reset()
		l.failed(problem.StorageFull, "error", "the disk is full")
		time.Sleep(failurePeriod)
		synctest.Wait()
		if strings.Count(out.all(), "\n") != 1 {
			t.Errorf("a new period:\n%s", out.all())
		}
	})
}
