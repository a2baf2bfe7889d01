package app

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"redrive/internal/job"
	"redrive/internal/loglimit"
	"redrive/internal/retry"
	"redrive/test/rig"
)

func TestDeadLetterLog_CountsWhatItDoesNotLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out rig.Transcript // the end of a period is logged by another goroutine
		read := 0
		l := newDeadLetterLog(slog.New(slog.NewJSONHandler(&out, nil)))
		dead := job.Settlement{DeadLetter: job.DeadLetterStored, Reason: retry.AttemptsExhausted}
		dead.Attempt.Error.Type = "http.status_503"
		j := job.Job{Token: job.Token{ID: "01890000-0000-7000-8000-000000000000", Run: 2}, Type: "email.send", Queue: "mail"}
		lines := func() (all []map[string]any) {
			synctest.Wait()
			text := out.String()
			for line := range strings.Lines(text[read:]) {
				var fields map[string]any
				if err := json.Unmarshal([]byte(line), &fields); err != nil {
					t.Fatal(err)
				}
				all = append(all, fields)
			}
			read = len(text)
			return all
		}

		l.settled(j, job.Settlement{State: job.Completed})
		for range loglimit.Burst + 3 {
			l.settled(j, dead)
		}
		all := lines()
		if len(all) != loglimit.Burst {
			t.Fatalf("%d lines, want %d", len(all), loglimit.Burst)
		}
		for field, want := range map[string]any{
			"level": "WARN", "job": j.ID, "run": 2.0, "type": j.Type, "queue": j.Queue, "reason": "attempts_exhausted", "error": "http.status_503",
		} {
			if all[0][field] != want {
				t.Errorf("%s is %v, want %v", field, all[0][field], want)
			}
		}
		time.Sleep(loglimit.Period)
		if all := lines(); len(all) != 1 || all[0]["jobs"] != 3.0 {
			t.Errorf("at the end of the period: %v", all)
		}
		l.settled(j, dead)
		if all := lines(); len(all) != 1 || all[0]["job"] != j.ID {
			t.Errorf("in the next period: %v", all)
		}
		for range loglimit.Burst {
			l.settled(j, dead)
		}
		lines()
		l.limit.Flush()
		if all := lines(); len(all) != 1 || all[0]["jobs"] != 1.0 {
			t.Errorf("at the end: %v", all)
		}
	})
}
