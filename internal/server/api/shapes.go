package api

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

type jobShape struct {
	ID         string          `json:"id"`
	Type       string          `json:"type"`
	Queue      string          `json:"queue"`
	State      job.State       `json:"state"`
	Status     job.Status      `json:"status"` // the state, told apart: dead_letter, dlq_failed, held
	Run        int             `json:"run"`
	Attempts   int             `json:"attempts"`
	Execution  int             `json:"execution"`
	Priority   int             `json:"priority"`
	Meta       json.RawMessage `json:"meta,omitempty"`
	Policy     json.RawMessage `json:"policy"`
	Origins    job.Origins     `json:"origins,omitempty"`
	TTR        string          `json:"ttr"`
	RunAt      string          `json:"run_at,omitempty"`
	ExpiresAt  string          `json:"expires_at,omitempty"`
	EnqueuedAt string          `json:"enqueued_at,omitempty"`
	StartedAt  string          `json:"started_at,omitempty"`
	FinishedAt string          `json:"finished_at,omitempty"`
	Worker     string          `json:"worker,omitempty"`
	Reason     retry.Reason    `json:"reason,omitempty"`
	Error      *errorShape     `json:"error,omitempty"`
	TraceID    string          `json:"trace_id,omitempty"`
	MessageID  string          `json:"message_id,omitempty"`
	Note       string          `json:"note,omitempty"`
}

type errorShape struct {
	Type    string `json:"type"`
	Message string `json:"message"`
	Trace   string `json:"trace,omitempty"`
}

type attemptShape struct {
	Run        int          `json:"run"`
	Number     int          `json:"number,omitempty"`
	Execution  int          `json:"execution"`
	Worker     string       `json:"worker,omitempty"`
	StartedAt  string       `json:"started_at,omitempty"`
	FinishedAt string       `json:"finished_at,omitempty"`
	Outcome    job.Outcome  `json:"outcome,omitempty"`
	Error      *errorShape  `json:"error,omitempty"`
	Action     retry.Action `json:"action,omitempty"`
	DecidedBy  string       `json:"decided_by,omitempty"`
	DelayMS    *float64     `json:"delay_ms,omitempty"`
	Delay      *delayShape  `json:"delay,omitempty"`
	Note       string       `json:"note,omitempty"`
}

type delayShape struct {
	Source   retry.Source `json:"source"` // policy, handler or rule
	RawMS    float64      `json:"raw_ms"`
	CappedMS float64      `json:"capped_ms"`
	Factor   float64      `json:"factor"`
	FinalMS  float64      `json:"final_ms"`
}

type letterShape struct {
	JobID         string       `json:"job_id"`
	Run           int          `json:"run"`
	Reason        retry.Reason `json:"reason"`
	Error         string       `json:"error"`
	Exception     string       `json:"exception"`
	FailedAt      string       `json:"failed_at"`
	OriginalQueue string       `json:"original_queue"`
	Attempts      int          `json:"attempts"`
	Cause         job.Outcome  `json:"cause,omitempty"`
	Refused       bool         `json:"refused,omitempty"`
	Problem       string       `json:"problem,omitempty"`
	ForwardedTo   string       `json:"forwarded_to,omitempty"`
	ForwardedAt   string       `json:"forwarded_at,omitempty"`
	ReplayedAt    string       `json:"replayed_at,omitempty"`
	ReplayedBy    string       `json:"replayed_by,omitempty"`
	DiscardedAt   string       `json:"discarded_at,omitempty"`
	DiscardedBy   string       `json:"discarded_by,omitempty"`
}

// encodeJob writes a job. Its payload goes in as the bytes that were received:
// an encoder would change them.
func encodeJob(j job.Job, whole bool) web.Raw {
	data := web.Encode(jobShape{
		ID: j.ID, Type: j.Type, Queue: j.Queue, State: j.State, Status: j.Status(), Run: j.Run, Attempts: j.Attempts,
		Execution: j.Execution, Priority: j.Priority, Meta: j.Meta, Policy: wire.EncodePolicy(j.Policy), Origins: j.Origins,
		TTR: wire.FormatDuration(j.Timeout), RunAt: wire.FormatTime(j.RunAt), ExpiresAt: wire.FormatTime(j.ExpiresAt),
		EnqueuedAt: wire.FormatTime(j.EnqueuedAt),
		StartedAt:  wire.FormatTime(j.StartedAt), FinishedAt: wire.FormatTime(j.FinishedAt),
		Worker: j.Worker, Reason: j.Reason, Error: errorOf(j.Error, ""),
		TraceID: j.TraceID, MessageID: j.MessageID, Note: j.Note,
	})
	if !whole {
		return data
	}
	payload := j.Payload
	if !json.Valid(payload) { // it did not come through the API
		payload = web.Encode(strings.ToValidUTF8(string(payload), "\uFFFD"))
	}
	return slices.Concat(data[:len(data)-1], []byte(`,"payload":`), payload, []byte("}"))
}

func errorOf(e job.ErrorInfo, trace string) *errorShape {
	if e == (job.ErrorInfo{}) {
		return nil
	}
	return &errorShape{e.Type, e.Message, trace}
}

// shapeAttempts are the attempts, and last the execution that is under way.
func shapeAttempts(d history.Detail) []attemptShape {
	all := []attemptShape{}
	for _, a := range d.Attempts {
		shape := attemptShape{
			Run: a.Run, Number: a.Number, Execution: a.Execution, Worker: a.Worker,
			StartedAt: wire.FormatTime(a.StartedAt), FinishedAt: wire.FormatTime(a.FinishedAt), Outcome: a.Outcome,
			Error: errorOf(a.Error, a.Trace), Action: a.Action, DecidedBy: a.DecidedBy, Note: a.Note,
		}
		if a.Delay != nil {
			final := millis(a.Delay.Final)
			shape.DelayMS = &final
			shape.Delay = &delayShape{a.Delay.Source, millis(a.Delay.Raw), millis(a.Delay.Capped), a.Delay.Factor, final}
		}
		all = append(all, shape)
	}
	if j := d.Job; j.State == job.Active {
		all = append(all, attemptShape{Run: j.Run, Execution: j.Execution, Worker: j.Worker, StartedAt: wire.FormatTime(j.StartedAt)})
	}
	return all
}

// replayShape is a run that was replayed.
type replayShape struct {
	Run      int          `json:"run"`
	State    job.State    `json:"state"`
	Reason   retry.Reason `json:"reason,omitempty"`
	Attempts int          `json:"attempts"`
	At       string       `json:"at"`
	By       string       `json:"by"`
	Changed  bool         `json:"changed,omitempty"` // the next run has something otherwise
}

func shapeReplay(r history.Replay) replayShape {
	return replayShape{r.Run, r.State, r.Reason, r.Attempts, wire.FormatTime(r.At), r.By, r.Earlier != nil}
}

// bulkActShape is what an operation on many jobs did to one.
type bulkActShape struct {
	Operation int64          `json:"operation"`
	Kind      operation.Kind `json:"kind"`
	Run       int            `json:"run"`
	At        string         `json:"at"`
	By        string         `json:"by"`
}

func shapeBulkAct(a operation.Act) bulkActShape {
	return bulkActShape{a.Operation, a.Kind, a.Run, wire.FormatTime(a.At), a.By}
}

func shapeLetter(l job.DeadLetter) letterShape {
	return letterShape{
		JobID: l.JobID, Run: l.Run, Reason: l.Reason, Error: l.Error, Exception: l.Exception,
		FailedAt: wire.FormatTime(l.FailedAt), OriginalQueue: l.Queue, Attempts: l.Attempts,
		Cause: l.Cause, Refused: l.Refused, Problem: l.Problem,
		ForwardedTo: l.ForwardedTo, ForwardedAt: wire.FormatTime(l.ForwardedAt),
		ReplayedAt: wire.FormatTime(l.ReplayedAt), ReplayedBy: l.ReplayedBy,
		DiscardedAt: wire.FormatTime(l.DiscardedAt), DiscardedBy: l.DiscardedBy,
	}
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
