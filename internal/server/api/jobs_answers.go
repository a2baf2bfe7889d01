package api

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/clip"
	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/source"
	"redrive/internal/wire"
)

// maxListedText is what a row of a list holds of an error, in bytes, as on pages.
// Two hundred rows with all of theirs would be dozens of megabytes.
const maxListedText = 300

// jobRowOf is a job as a row of a list: a long error is cut, and clipped names
// it. GET /jobs/{id} has all of it.
func jobRowOf(j job.Job) work.JobRow {
	var clipped []string
	if len(j.Error.Message) > maxListedText {
		j.Error.Message, clipped = clip.Text(j.Error.Message, maxListedText), []string{"error.message"}
	}

	return work.JobRow{Job: jobOf(j), Clipped: clipped}
}

// deadLetterRowOf is a dead letter as a row of a list, with a long error cut.
func deadLetterRowOf(l job.DeadLetter) work.DeadLetterRow {
	var clipped []string
	if len(l.Error) > maxListedText {
		l.Error, clipped = clip.Text(l.Error, maxListedText), []string{"error"}
	}

	return work.DeadLetterRow{DeadLetter: deadLetterOf(l), Clipped: clipped}
}

// jobOf is a job with everything but its payload.
func jobOf(j job.Job) work.Job {
	now := time.Now()

	return work.Job{
		ID:            j.ID,
		Type:          j.Type,
		Queue:         j.Queue,
		State:         j.State,
		Status:        j.Status(),
		Run:           j.Run,
		Attempts:      reportedNumber(j, j.Attempts),
		MaxAttempts:   reportedNumber(j, j.MaxAttempts()),
		Execution:     j.Execution,
		Priority:      reportedValue(j, j.Priority),
		Meta:          j.Meta,
		Policy:        reportedValue(j, wire.PolicyOf(j.Policy)),
		Origins:       j.Origins,
		TTR:           reportedValue(j, apitype.Duration(j.Timeout)),
		RunAt:         apitype.At(j.RunAt),
		ExpiresAt:     apitype.At(j.ExpiresAt),
		EnqueuedAt:    apitype.At(j.EnqueuedAt),
		ChangedAt:     apitype.At(j.ChangedAt),
		StartedAt:     apitype.At(j.StartedAt),
		FinishedAt:    apitype.At(j.FinishedAt),
		Worker:        j.Worker,
		Reason:        j.Reason,
		AddedAt:       apitype.At(addedAt(j)),
		AtSource:      source.AtSource(j),
		ReturnedUntil: apitype.At(returnedUntil(j, now)),
		Returned:      source.Returned(j, now),
		ReplayUnknown: source.InDoubt(j),
		Error:         errorOf(j.Error, ""),
		TraceID:       j.TraceID,
		MessageID:     j.MessageID,
		Note:          j.Note,
	}
}

// addedAt is when Redrive saw a job of a source first. Its own jobs were enqueued then.
func addedAt(j job.Job) time.Time {
	if j.Source == "" {
		return time.Time{}
	}
	return source.AddedAt(j)
}

// returnedUntil is when a job that its source has will count as returned; zero if that is
// not to come.
func returnedUntil(j job.Job, now time.Time) time.Time {
	if !source.AtSource(j) || source.Returned(j, now) {
		return time.Time{}
	}
	return source.ReturnsAt(j)
}

// reportedValue is what Redrive decides for its own jobs. It says nothing of a job of a source,
// which it never runs.
func reportedValue[T any](j job.Job, value T) *T {
	if j.Source != "" {
		return nil
	}
	return &value
}

// reportedNumber is a number that a source may not say of its job, which is zero then.
func reportedNumber(j job.Job, n int) *int {
	if n == 0 {
		return reportedValue(j, n)
	}
	return &n
}

// fullJobOf is a job with its payload, which is written as the bytes that were
// received: an encoder would change large numbers, white space and the order of
// members.
func fullJobOf(j job.Job) work.FullJob {
	payload := apitype.Payload(j.Payload)
	if !json.Valid(payload) { // it did not come through the API
		payload = asText(j.Payload)
	}

	return work.FullJob{Job: jobOf(j), Payload: payload}
}

// asText is a payload that is no JSON, as a text.
func asText(payload []byte) apitype.Payload {
	data, err := json.Marshal(strings.ToValidUTF8(string(payload), "\uFFFD"))
	if err != nil { // unreachable: any valid text can be written
		panic(fmt.Sprintf("api.asText(%q): %v", payload, err))
	}

	return data
}

// errorOf is an error, or nil when there was none.
func errorOf(e job.ErrorInfo, trace string) *work.Error {
	if e == (job.ErrorInfo{}) {
		return nil
	}
	return &work.Error{Type: e.Type, Message: e.Message, Trace: trace}
}

// attemptsOf lists a page of the attempts of a job, and last the execution under way.
func attemptsOf(d history.Detail) []work.Attempt {
	all := mapped(d.Attempts, attemptOf)
	if j := d.Job; j.State == job.Active && d.Following == nil {
		all = append(all, work.Attempt{Run: j.Run, Execution: j.Execution, Worker: j.Worker, StartedAt: apitype.At(j.StartedAt)})
	}

	return all
}

// attemptOf is an attempt that has ended.
func attemptOf(a job.Attempt) work.Attempt {
	attempt := work.Attempt{
		Run:        a.Run,
		Number:     a.Number,
		Execution:  a.Execution,
		Worker:     a.Worker,
		StartedAt:  apitype.At(a.StartedAt),
		FinishedAt: apitype.At(a.FinishedAt),
		Outcome:    a.Outcome,
		Error:      errorOf(a.Error, a.Trace),
		Action:     a.Action,
		DecidedBy:  a.DecidedBy,
		Note:       a.Note,
	}
	if d := a.Delay; d != nil {
		final := millis(d.Final)
		attempt.DelayMS = &final
		attempt.Delay = &work.Delay{
			Source:   d.Source,
			RawMS:    millis(d.Raw),
			CappedMS: millis(d.Capped),
			Factor:   d.Factor,
			FinalMS:  final,
		}
	}

	return attempt
}

// replayOf is a run that was replayed.
func replayOf(j job.Job, r history.Replay) work.Replay {
	return work.Replay{
		Run:      r.Run,
		State:    r.State,
		Reason:   r.Reason,
		Attempts: reportedNumber(j, r.Attempts),
		At:       apitype.At(r.At),
		By:       r.By,
		Changed:  r.Earlier != nil,
	}
}

// operationActOf is what an operation on many jobs did to one.
func operationActOf(a operation.Act) work.OperationAct {
	return work.OperationAct{Operation: a.Operation, Kind: a.Kind, Run: a.Run, At: apitype.At(a.At), By: a.By}
}

// deadLetterOf is a dead letter with the acts that took it out of the queue again.
func deadLetterOf(l job.DeadLetter) work.DeadLetter {
	return work.DeadLetter{
		JobID:         l.JobID,
		Run:           l.Run,
		Reason:        l.Reason,
		Error:         l.Error,
		Exception:     l.Exception,
		FailedAt:      apitype.At(l.FailedAt),
		OriginalQueue: l.Queue,
		Attempts:      reportedNumber(job.Job{Source: job.SourceOf(l.Queue)}, l.Attempts),
		Cause:         l.Cause,
		Refused:       l.Refused,
		Problem:       l.Problem,
		ForwardedTo:   l.ForwardedTo,
		ForwardedAt:   apitype.At(l.ForwardedAt),
		ReplayedAt:    apitype.At(l.ReplayedAt),
		ReplayedBy:    l.ReplayedBy,
		DiscardedAt:   apitype.At(l.DiscardedAt),
		DiscardedBy:   l.DiscardedBy,
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
