package jobpage

import (
	"slices"
	"time"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates"
	"redrive/web/templates/format"
)

// answer says, at the top of the page, when the job runs again and why then, or
// what became of it. The lead is the answer.
type answer struct{ templates.Sentence }

// answerOf says it for every state.
func answerOf(v View, f forecast) answer {
	s := answer{templates.Sentence{Now: v.Now}}
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
		s.Answers("It is %v", v.Job.State)
		s.Says(", since %v.", v.Job.ChangedAt)
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

func (s *answer) scheduled(v View, f forecast) {
	at := v.Job.RunAt
	if s.starts(v, at) {
		s.Says(" It was enqueued to run not before then.")
	}
	s.ifAllFail(v, f)
	s.expires(v)
	s.waits(v)
}

// starts says when the next attempt starts, and reports whether that is still
// to come.
func (s *answer) starts(v View, at time.Time) bool {
	if at.Sub(s.Now) < time.Second {
		s.Answers("%v is due", nth(v.Job.Attempts+1, v.Job.Policy))
		s.Says(" since %v: it starts as soon as a worker is free.", at)
		return false
	}
	s.Answers("%v starts %v", nth(v.Job.Attempts+1, v.Job.Policy), templates.CountDown(at))
	s.Says(", "+s.When(at)+" %v.", at)
	return true
}

func (s *answer) pending(v View) {
	s.Answers("It waits for a signal from outside")
	s.Says(" since %v. No time is set: until the signal comes, nothing runs. Cancel it if the signal will not come.", v.Job.ChangedAt)
}

func (s *answer) available(v View) {
	next := nth(v.Job.Attempts+1, v.Job.Policy)
	since := latest(v.Job.RunAt, v.Job.ChangedAt)
	if why, args := hurdle(v); why != "" {
		s.Answers("%v does not start", next)
		s.Says(": "+why+". It waits since %v, and keeps waiting: nothing is lost.", append(args, since)...)
	} else {
		s.Answers("%v starts as soon as a worker is free", next)
		s.Says("; it waits since %v.", since)
	}
	s.expires(v)
	if r := replayOf(v.Replays, v.Job.Run-1); r != nil && v.Job.Attempts == 0 {
		s.Says(" %v replayed it "+s.When(r.At)+" %v.", format.Someone(r.By), r.At)
	}
	if a := lastAttempt(v); a != nil && a.Outcome == job.Interrupted {
		s.Says(" A graceful stop released it; that does not count as an attempt.")
	}
}

func (s *answer) active(v View, f forecast) {
	j := v.Job
	if v.Waits {
		s.begins(v)
		return
	}
	s.Answers("%v runs for %v", nth(j.Attempts+1, j.Policy), format.About(s.Now.Sub(j.StartedAt)))
	s.Says(", since %v, on %v.", j.StartedAt, j.Worker)
	if j.Timeout > 0 {
		s.Says(" It may take %v, until %v.", format.Duration(j.Timeout), j.StartedAt.Add(j.Timeout))
	}
	switch {
	case j.LeaseUntil.IsZero():
	case j.LeaseUntil.Before(s.Now):
		s.Says(" Its lease ran out at %v and its worker gave no sign of life since %v: it will be settled as lost.", j.LeaseUntil, j.LastSeen)
		return
	default:
		s.Says(" Its lease is kept until %v; the worker's last sign of life was at %v.", j.LeaseUntil, j.LastSeen)
	}
	if len(f.coming) == 0 {
		s.Says(" It is the last attempt: if it fails, %v.", fate(v))
		return
	}
	s.Says(" If it fails, attempt %v follows after %v.", format.Number(f.coming[0].number), waitRange(f.coming[0]))
}

// begins says for what a claimed job waits that has not begun.
func (s *answer) begins(v View) {
	next := nth(v.Job.Attempts+1, v.Job.Policy)
	if v.StuckSince.IsZero() {
		s.Answers("%v starts as soon as a worker is free", next)
		s.Says("; it waited for its previous execution, whose handler did not heed that it was told to stop.")
		return
	}
	s.Answers("%v waits for its previous execution", next)
	s.Says(", which was told to stop and has not returned since %v.", v.StuckSince)
	s.Says(" It waits until that returns, or until %v, and then starts as soon as a worker is free.", v.StuckUntil)
}

// waitRange is the delay before an attempt to come.
func waitRange(c coming) string {
	if c.high == 0 {
		return "no delay"
	}
	return format.DurationRange(c.low, c.high)
}

func (s *answer) retryable(v View, f forecast) {
	s.starts(v, v.Job.RunAt)
	s.whyThen(v)
	s.ifAllFail(v, f)
	s.expires(v)
	s.waits(v)
}

// whyThen explains the time of a retry by the attempt that failed.
func (s *answer) whyThen(v View) {
	a := lastAttempt(v)
	if a == nil || a.Delay == nil {
		return
	}
	s.Says(" Attempt %v %v; ", format.Number(a.Number), failedHow(a.Outcome))
	switch {
	case a.Delay.Source == retry.FromHandler:
		s.Says("the handler asked to wait %v", wait(a.Delay.Final))
	case ruleOf(a) != "" && a.Delay.Final == 0:
		s.Says("the rule %v retries at once", ruleOf(a))
	case ruleOf(a) != "":
		s.Says("the rule %v retries it after %v", ruleOf(a), format.Duration(a.Delay.Final))
	case a.Delay.Final == 0:
		s.Says("the policy retries at once")
	default:
		s.Says("the policy waits %v", format.Duration(a.Delay.Final))
	}
	if a.Outcome == job.Lost {
		s.Says(", counted from the worker's last sign of life")
	}
	s.Says(".")
}

// failedHow is the outcome as a verb.
func failedHow(o job.Outcome) string {
	if o == job.Lost {
		return "was lost"
	}
	return templates.LookOfOutcome(o).Word
}

// ifAllFail says where the run ends when nothing succeeds.
func (s *answer) ifAllFail(v View, f forecast) {
	if len(f.coming) == 0 {
		return
	}
	first, last := f.coming[0].number, v.Job.Policy.Limit()
	switch {
	case first == 1 && last > 1:
		s.Says(" If all %v fail, ", format.Number(last))
	case first == 1:
		s.Says(" If it fails, ")
	case first == last:
		s.Says(" If it fails too, ")
	case first+1 == last:
		s.Says(" If %v and %v fail too, ", first, last)
	default:
		s.Says(" If %v to %v fail too, ", first, format.Number(last))
	}
	if f.ends.IsZero() {
		s.Says("%v.", fate(v))
		return
	}
	s.Says("%v "+s.Around(f.ends)+" %v.", fate(v), f.ends)
}

// fate is what becomes of the job when its last attempt fails.
func fate(v View) string {
	switch {
	case v.Job.Policy.OnExhaustion != retry.DeadLetter:
		return "it is discarded"
	case v.DeadLetters:
		return "it is dead-lettered"
	}
	return "its dead letter will be refused (its queue has no dead-letter queue)"
}

// waits says what else keeps the job from starting.
func (s *answer) waits(v View) {
	if why, args := hurdle(v); why != "" {
		s.Says(" But not now: "+why+".", args...)
	}
}

// expires says until when the job is worth running, which bounds its first
// attempt only.
func (s *answer) expires(v View) {
	switch at := v.Job.ExpiresAt; {
	case at.IsZero() || v.Job.Run > 1 || v.Job.Attempts > 0:
	case at.After(s.Now):
		s.Says(" It expires "+s.When(at)+" %v unless it starts before.", at)
	default:
		s.Says(" Its time to live ended "+s.When(at)+" %v: it will not run any more.", at)
	}
}

// hurdle is what keeps the job from starting when its time has come, as a part
// of a sentence with what stands in it; empty when nothing does.
func hurdle(v View) (why string, args []any) {
	switch {
	case v.NoHandler || v.Job.Held:
		return "no handler is configured for %v; name one under handlers in the configuration and start again", []any{v.Job.Type}
	case !v.PausedAt.IsZero():
		return "queue %v is paused by %v since %v", []any{v.Job.Queue, format.By(v.PausedBy), v.PausedAt}
	}
	return "", nil
}

func (s *answer) completed(v View) {
	s.Answers("It succeeded "+s.When(v.Job.FinishedAt)+" %v", v.Job.FinishedAt)
	s.Says(", %v, at attempt %v of run %v.", format.Relative(v.Job.FinishedAt, s.Now), format.Number(v.Job.Attempts), v.Job.Run)
	if v.Job.Run > 1 {
		s.Says(" The replay worked.")
	}
	s.Says(" Nothing more will run.")
}

func (s *answer) cancelled(v View) {
	ended := latest(v.Job.FinishedAt, v.Job.ChangedAt)
	s.Answers("It was cancelled by hand "+s.When(ended)+" %v", ended)
	if a := lastAttempt(v); a != nil && a.Outcome == job.CancelledBy {
		s.Says(", while it ran; what the worker still did cannot change the job")
	}
	s.Says(".")
	s.replayStarts(v)
}

func (s *answer) replayStarts(v View) {
	s.Says(" It does not run again by itself; a replay starts run %v.", v.Job.Run+1)
}

// replayOf finds the replay of a run.
func replayOf(replays []history.Replay, run int) *history.Replay {
	if i := slices.IndexFunc(replays, func(r history.Replay) bool { return r.Run == run }); i >= 0 {
		return &replays[i]
	}
	return nil
}

// lastAttempt is the newest record of the current run.
func lastAttempt(v View) *job.Attempt {
	if n := len(v.Attempts); n > 0 && v.Attempts[n-1].Run == v.Job.Run {
		return &v.Attempts[n-1]
	}
	return nil
}
