package server

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/server/web"
)

// A full disk fails every request. The log tells the first ones and how many there were,
// and an error of another kind among them.
func TestFailureLog_TellsTheFirstOfEachKindAndTheirNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		l := &failureLog{log: slog.New(slog.NewTextHandler(&out, nil))}
		for range 1000 {
			l.failed(web.StorageFull, "error", "the disk is full")
		}
		l.failed(web.Unexpected, "error", "a bug")
		if n := strings.Count(out.String(), "the disk is full"); n != failureBurst || !strings.Contains(out.String(), "a bug") {
			t.Errorf("%d lines, want %d and the bug:\n%s", n, failureBurst, out.String())
		}
		time.Sleep(failurePeriod)
		synctest.Wait()
		if !strings.Contains(out.String(), "requests=990") {
			t.Errorf("the log does not say how many more there were:\n%s", out.String())
		}
		out.Reset()
		l.failed(web.StorageFull, "error", "the disk is full")
		time.Sleep(failurePeriod)
		synctest.Wait()
		if strings.Count(out.String(), "\n") != 1 {
			t.Errorf("a new period:\n%s", out.String())
		}
	})
}
