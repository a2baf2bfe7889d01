package templates

import (
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/format"
)

// answer says, at the top of the page, when the job runs again and why then, or
// what became of it. The lead is the answer.
type answer struct{ sentence }

// answerOf says it for every state.
func answerOf(v JobPage, f forecast) answer {
	s := answer{sentence{now: v.Now}}
	switch v.Job.State {
	case job.Scheduled:
		s.scheduled(v, f)
	case job.Pending:
		s.pending(v)
	case job.Available:
		s.available(v)
	case job.Active:
		s.active(v, f)
	case job.Retryable:
		s.retryable(v, f)
	case job.Completed:
		s.completed(v)
	case job.Discarded:
		s.discarded(v)
	case job.Cancelled:
		s.cancelled(v)
	default:
		s.answers("It is %v", v.Job.State)
		s.says(", since %v.", v.Job.ChangedAt)
	}
	return s
}

// nth is an attempt among those that the policy allows: "Attempt 4 of 5".
func nth(n int, p retry.Policy) string {
	if n > p.Limit() {
		return "Attempt " + format.Number(n)
	}
	return "Attempt " + format.Number(n) + " of " + format.Number(p.Limit())
}

func (s *answer) scheduled(v JobPage, f forecast) {
	at := v.Job.RunAt
	if s.starts(v, at) {
		s.says(" It was enqueued to run not before then.")
	}
	s.ifAllFail(v, f)
	s.expires(v)
	s.waits(v)
}

// starts says when the next attempt starts, and reports whether that is still
// to come.
func (s *answer) starts(v JobPage, at time.Time) bool {
	if at.Sub(s.now) < time.Second {
		s.answers("%v is due", nth(v.Job.Attempts+1, v.Job.Policy))
		s.says(" since %v: it starts as soon as a worker is free.", at)
		return false
	}
	s.answers("%v starts %v", nth(v.Job.Attempts+1, v.Job.Policy), in(at))
	s.says(", "+s.when(at)+" %v.", at)
	return true
}

func (s *answer) pending(v JobPage) {
	s.answers("It waits for a signal from outside")
	s.says(" since %v. No time is set: until the signal comes, nothing runs. Cancel it if the signal will not come.", v.Job.ChangedAt)
}

func (s *answer) available(v JobPage) {
	next := nth(v.Job.Attempts+1, v.Job.Policy)
	since := latest(v.Job.RunAt, v.Job.ChangedAt)
	if why, args := hurdle(v); why != "" {
		s.answers("%v does not start", next)
		s.says(": "+why+". It waits since %v, and keeps waiting: nothing is lost.", append(args, since)...)
	} else {
		s.answers("%v starts as soon as a worker is free", next)
		s.says("; it waits since %v.", since)
	}
	s.expires(v)
	if r := replayOf(v.Replays, v.Job.Run-1); r != nil && v.Job.Attempts == 0 {
		s.says(" %v replayed it "+s.when(r.At)+" %v.", format.Someone(r.By), r.At)
	}
	if a := lastAttempt(v); a != nil && a.Outcome == job.Interrupted {
		s.says(" A graceful stop released it; that does not count as an attempt.")
	}
}

func (s *answer) active(v JobPage, f forecast) {
	j := v.Job
	if v.Waits {
		s.begins(v)
		return
	}
	s.answers("%v runs for %v", nth(j.Attempts+1, j.Policy), format.About(s.now.Sub(j.StartedAt)))
	s.says(", since %v, on %v.", j.StartedAt, j.Worker)
	if j.Timeout > 0 {
		s.says(" It may take %v, until %v.", format.Duration(j.Timeout), j.StartedAt.Add(j.Timeout))
	}
	switch {
	case j.LeaseUntil.IsZero():
	case j.LeaseUntil.Before(s.now):
		s.says(" Its lease ran out at %v and its worker gave no sign of life since %v: it will be settled as lost.", j.LeaseUntil, j.LastSeen)
		return
	default:
		s.says(" Its lease is kept until %v; the worker's last sign of life was at %v.", j.LeaseUntil, j.LastSeen)
	}
	if len(f.coming) == 0 {
		s.says(" It is the last attempt: if it fails, %v.", fate(v))
		return
	}
	s.says(" If it fails, attempt %v follows after %v.", format.Number(f.coming[0].number), waitRange(f.coming[0]))
}

// begins says for what a claimed job waits that has not begun.
func (s *answer) begins(v JobPage) {
	next := nth(v.Job.Attempts+1, v.Job.Policy)
	if v.StuckSince.IsZero() {
		s.answers("%v starts as soon as a worker is free", next)
		s.says("; it waited for its previous execution, whose handler did not heed that it was told to stop.")
		return
	}
	s.answers("%v waits for its previous execution", next)
	s.says(", which was told to stop and has not returned since %v. It waits until that returns, or until %v, and then starts as soon as a worker is free.",
		v.StuckSince, v.StuckUntil)
}

// waitRange is the delay before an attempt to come.
func waitRange(c coming) string {
	if c.high == 0 {
		return "no delay"
	}
	return format.DurationRange(c.low, c.high)
}

func (s *answer) retryable(v JobPage, f forecast) {
	s.starts(v, v.Job.RunAt)
	s.whyThen(v)
	s.ifAllFail(v, f)
	s.expires(v)
	s.waits(v)
}

// whyThen explains the time of a retry by the attempt that failed.
func (s *answer) whyThen(v JobPage) {
	a := lastAttempt(v)
	if a == nil || a.Delay == nil {
		return
	}
	s.says(" Attempt %v %v; ", format.Number(a.Number), failedHow(a.Outcome))
	switch {
	case a.Delay.Source == retry.FromHandler:
		s.says("the handler asked to wait %v", wait(a.Delay.Final))
	case ruleOf(a) != "" && a.Delay.Final == 0:
		s.says("the rule %v retries at once", ruleOf(a))
	case ruleOf(a) != "":
		s.says("the rule %v retries it after %v", ruleOf(a), format.Duration(a.Delay.Final))
	case a.Delay.Final == 0:
		s.says("the policy retries at once")
	default:
		s.says("the policy waits %v", format.Duration(a.Delay.Final))
	}
	if a.Outcome == job.Lost {
		s.says(", counted from the worker's last sign of life")
	}
	s.says(".")
}

// failedHow is the outcome as a verb.
func failedHow(o job.Outcome) string {
	if o == job.Lost {
		return "was lost"
	}
	return lookOfOutcome(o).word
}

// ifAllFail says where the run ends when nothing succeeds.
func (s *answer) ifAllFail(v JobPage, f forecast) {
	if len(f.coming) == 0 {
		return
	}
	first, last := f.coming[0].number, v.Job.Policy.Limit()
	switch {
	case first == 1 && last > 1:
		s.says(" If all %v fail, ", format.Number(last))
	case first == 1:
		s.says(" If it fails, ")
	case first == last:
		s.says(" If it fails too, ")
	case first+1 == last:
		s.says(" If %v and %v fail too, ", first, last)
	default:
		s.says(" If %v to %v fail too, ", first, format.Number(last))
	}
	if f.ends.IsZero() {
		s.says("%v.", fate(v))
		return
	}
	s.says("%v "+s.around(f.ends)+" %v.", fate(v), f.ends)
}

// fate is what becomes of the job when its last attempt fails.
func fate(v JobPage) string {
	switch {
	case v.Job.Policy.OnExhaustion != retry.DeadLetter:
		return "it is discarded"
	case v.DeadLetters:
		return "it is dead-lettered"
	}
	return "its dead letter will be refused (its queue has no dead-letter queue)"
}

// waits says what else keeps the job from starting.
func (s *answer) waits(v JobPage) {
	if why, args := hurdle(v); why != "" {
		s.says(" But not now: "+why+".", args...)
	}
}

// expires says until when the job is worth running, which bounds its first
// attempt only.
func (s *answer) expires(v JobPage) {
	switch at := v.Job.ExpiresAt; {
	case at.IsZero() || v.Job.Run > 1 || v.Job.Attempts > 0:
	case at.After(s.now):
		s.says(" It expires "+s.when(at)+" %v unless it starts before.", at)
	default:
		s.says(" Its time to live ended "+s.when(at)+" %v: it will not run any more.", at)
	}
}

// hurdle is what keeps the job from starting when its time has come, as a part
// of a sentence with what stands in it; empty when nothing does.
func hurdle(v JobPage) (why string, args []any) {
	switch {
	case v.NoHandler || v.Job.Held:
		return "no handler is configured for %v; name one under handlers in the configuration and start again", []any{v.Job.Type}
	case !v.PausedAt.IsZero():
		return "queue %v is paused by %v since %v", []any{v.Job.Queue, format.By(v.PausedBy), v.PausedAt}
	}
	return "", nil
}

func (s *answer) completed(v JobPage) {
	s.answers("It succeeded "+s.when(v.Job.FinishedAt)+" %v", v.Job.FinishedAt)
	s.says(", %v, at attempt %v of run %v.", format.Relative(v.Job.FinishedAt, s.now), format.Number(v.Job.Attempts), v.Job.Run)
	if v.Job.Run > 1 {
		s.says(" The replay worked.")
	}
	s.says(" Nothing more will run.")
}

func (s *answer) cancelled(v JobPage) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	s.answers("It was cancelled by hand "+s.when(ended)+" %v", ended)
	if a := lastAttempt(v); a != nil && a.Outcome == job.CancelledBy {
		s.says(", while it ran; what the worker still did cannot change the job")
	}
	s.says(".")
	s.replayStarts(v)
}

func (s *answer) replayStarts(v JobPage) {
	s.says(" It does not run again by itself; a replay starts run %v.", v.Job.Run+1)
}

// replayOf finds the replay of a run.
func replayOf(replays []job.Replay, run int) *job.Replay {
	if i := slices.IndexFunc(replays, func(r job.Replay) bool { return r.Run == run }); i >= 0 {
		return &replays[i]
	}
	return nil
}

// lastAttempt is the newest record of the current run.
func lastAttempt(v JobPage) *job.Attempt {
	if n := len(v.Attempts); n > 0 && v.Attempts[n-1].Run == v.Job.Run {
		return &v.Attempts[n-1]
	}
	return nil
}
