package jobpage

import (
	"slices"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
)

// What happened at one time is told in the order in which it happened, the last
// thing on top.
func TestHistory_OfOneMomentIsInOrder(t *testing.T) {
	at := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	var v View
	v.Job = job.Job{EnqueuedAt: at, FinishedAt: at, ChangedAt: at, State: job.Discarded, DeadLetter: job.DeadLetterTrashed}
	v.Job.Run = 4
	for run := range 4 {
		v.DeadLetters = append(v.DeadLetters, job.DeadLetter{Run: run + 1, Reason: retry.AttemptsExhausted, Attempts: 1, FailedAt: at})
	}
	v.Replays = []history.Replay{{Run: 1, At: at, By: "ana"}, {Run: 2, At: at}, {Run: 3, At: at, By: "bo"}}
	v.Bulk = []operation.Act{{Operation: 1, Kind: operation.Discard, Run: 4, At: at}}
	v.Trail = []audit.Entry{{Action: "job.discard", At: at}, {Action: "job.restore", At: at}} // the newest first
	var got []string
	for _, e := range historyOf(v) {
		got = append(got, e.what)
	}
	const failed = "dead-lettered: attempts exhausted"
	slices.Reverse(got)
	want := []string{
		"enqueued", failed, "replayed the job, run 2", failed, "replayed the job, run 3", failed, "replayed the job, run 4", failed,
		"moved the job to the trash with", "restored the job from the trash", "moved the job to the trash",
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history is\n%q, want\n%q", got, want)
	}
}
