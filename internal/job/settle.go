package job

import (
	"time"

	"redrive/internal/clip"
	"redrive/internal/fingerprint"
	"redrive/internal/retry"
	"redrive/internal/shortage"
)

// ErrorInfo is what failed, without its trace.
type ErrorInfo struct{ Type, Message string }

// Outcome is how an execution ended.
type Outcome string

const (
	Succeeded   Outcome = "succeeded"
	Failed      Outcome = "failed"
	Panicked    Outcome = "panicked"
	TimedOut    Outcome = "timed_out"        // it took longer than its ttr
	Lost        Outcome = "lost"             // its lease ran out without a sign of life
	Interrupted Outcome = "interrupted"      // released by a graceful stop: does not count
	CancelledBy Outcome = Outcome(Cancelled) // a person cancelled it while it ran: does not count
)

// Counted reports whether the execution was a completed cycle.
func (o Outcome) Counted() bool { return o != Interrupted && o != CancelledBy }

// Attempt is the record of one execution, written once when it ended.
type Attempt struct {
	Run        int
	Number     int // the cycle that it completed; 0 when it did not count
	Execution  int
	Worker     string
	StartedAt  time.Time
	FinishedAt time.Time
	Outcome    Outcome
	Error      ErrorInfo
	Trace      string
	Action     retry.Action // what became of the job; empty when it did not count
	DecidedBy  string       // stable code, see [retry.Decision]
	Delay      *retry.Delay // when the action is retry
	Note       string       // what else a person should know: a rule that failed and was skipped
}

// DeadLetter is the record of a run that ended in the dead-letter queue, or
// should have. Rows are history: one for each (job, run), completed by what
// became of the letter.
type DeadLetter struct {
	JobID       string
	Run         int
	Reason      retry.Reason
	Error       string
	Exception   string // the error's type
	FailedAt    time.Time
	Queue       string // where the job came from
	Attempts    int
	Cause       Outcome // timed_out or lost when the last attempt ended so, otherwise empty
	Refused     bool    // asked for, not accepted
	Problem     string  // why it was not accepted
	ForwardedTo string  // where a copy was sent and accepted, or empty
	ForwardedAt time.Time
	ReplayedAt  time.Time
	ReplayedBy  string
	DiscardedAt time.Time
	DiscardedBy string
}

// Failure is the error of a handler that has more to say than its text: a
// type, a trace, an answer to the policy. Any other error counts as one of
// type "error".
type Failure struct {
	ErrorInfo
	Trace  string
	Answer retry.Answer
}

func (f *Failure) Error() string {
	if f.Message == "" {
		return f.Type
	}
	return f.Type + ": " + f.Message
}

// Ending is how an execution ended, as its worker or the reaper saw it.
type Ending struct {
	Outcome    Outcome
	FinishedAt time.Time
	Error      ErrorInfo
	Trace      string
	Answer     retry.Answer
	Unknown    retry.Unknown // set when no handler knew the job's type
	Expired    retry.Action  // set when the time to live ended before it ran: what becomes of the job
	Ruling     *retry.Ruling // what the operator's rules said, nil: nothing
	Note       string        // see [Attempt]
	Doubtful   bool          // its process died, and nothing shows that it had begun: it was interrupted
}

// Settlement is everything that one transaction writes down when an execution
// ends. The token decides whether it may: an execution that was fenced off
// changes nothing.
type Settlement struct {
	Token
	Attempt    Attempt      // to append
	State      State        // the job's next state
	RunAt      time.Time    // when it may run again; zero when it is over
	Reason     retry.Reason // why it ended without success
	DeadLetter DeadLetterState
	Cause      fingerprint.Cause // of a failure
	Delivery

	// Of a job that was in hand: it loses no attempt, and keeps its place in the queue.
	GivenBack bool // it did not begin, and there is nothing to record
	Doubtful  bool // its process died: the next execution counts, whether it begins or not
}

// GiveBack is the settlement of a job that was taken in hand and has not begun.
func (j Job) GiveBack() Settlement {
	return Settlement{Token: j.Token, State: Available, GivenBack: true, Attempt: Attempt{Outcome: Interrupted}}
}

// Delivery is what became of a dead letter on its way out. The zero value: it
// is kept in the built-in dead-letter queue.
type Delivery struct {
	Shortage    *shortage.Error // it was not sent for want of this: it is to be tried again
	Problem     string          // why it was not accepted; empty: it was
	ForwardedTo string          // where else it was accepted, without credentials
	ForwardedAt time.Time       // when
}

// InDeadLetters is the delivery to a queue's own dead-letter queue, which may
// be switched off.
func InDeadLetters(queue string, on bool) Delivery {
	if on {
		return Delivery{}
	}
	return Delivery{Problem: "the queue " + queue + " has no dead-letter queue"}
}

// Settle turns the end of an execution into its settlement. The rules and the
// policy decide (see [retry.Policy.Decide]); random feeds the jitter. A dead
// letter is taken for stored until Delivered says otherwise.
//
// A lost execution's delay counts from its worker's last sign of life: the job
// has already waited for its lease to run out.
func (j Job) Settle(e Ending, random func() float64) Settlement {
	s := Settlement{Token: j.Token, Attempt: Attempt{
		Run: j.Run, Execution: j.Execution, Worker: j.Worker,
		StartedAt: j.StartedAt, FinishedAt: e.FinishedAt, Outcome: e.Outcome,
		Error: ErrorInfo{clip.Text(e.Error.Type, retry.MaxErrorType), clip.Text(e.Error.Message, MaxErrorMessage)},
		Trace: clip.Text(e.Trace, MaxTrace), Note: clip.Text(e.Note, MaxNote),
	}}

	// An execution that was interrupted or cancelled costs no attempt: the job is available
	// again at once. After a doubtful one the job keeps the time at which it was to run.
	if !e.Outcome.Counted() {
		s.State, s.RunAt, s.Doubtful = Available, e.FinishedAt, e.Doubtful
		if e.Doubtful {
			s.RunAt = time.Time{}
		}

		return s
	}

	s.Attempt.Number = j.Attempts + 1

	// What a handler reports beside its success is no error of the job.
	if e.Outcome == Succeeded {
		s.State, s.Attempt.Action, s.Attempt.DecidedBy = Completed, retry.Complete, "handler:success"
		s.Attempt.Error, s.Attempt.Trace = ErrorInfo{}, ""
		return s
	}

	s.Cause = fingerprint.Of(j.Type, s.Attempt.Error.Type, s.Attempt.Error.Message, s.Attempt.Trace)
	s.apply(j.Policy.Decide(retry.Failure{
		Attempt: s.Attempt.Number, Type: s.Attempt.Error.Type, Ruling: e.Ruling, Answer: e.Answer,
		Unknown: e.Unknown, Expired: e.Expired,
	}, random), j.lastSign(e))

	return s
}

// Delivered is the settlement once it is known what became of its dead letter.
func (s Settlement) Delivered(d Delivery) Settlement {
	if s.DeadLetter == NoDeadLetter {
		return s
	}

	s.DeadLetter, s.Delivery = DeadLetterStored, d
	if d.Problem != "" {
		s.DeadLetter = DeadLetterRefused
	}

	return s
}

// Plain is the settlement without the texts that came with the execution, of which
// the database refused one: the job goes the same way, and the attempt says so.
func (s Settlement) Plain(typ, refusal string) Settlement {
	a := &s.Attempt
	a.Trace, a.Note = "", ""
	if a.Error != (ErrorInfo{}) {
		a.Error = ErrorInfo{"record_refused", clip.Text(
			"the database refused the error of this attempt, and its text is lost: "+refusal, MaxErrorMessage)}
	}

	if s.Problem != "" {
		s.Problem = "the database refused the reason"
	}

	if s.Cause.Fingerprint != "" {
		s.Cause = fingerprint.Of(typ, a.Error.Type, a.Error.Message, "")
	}

	return s
}

// lastSign is the moment from which the next delay counts.
func (j Job) lastSign(e Ending) time.Time {
	if e.Outcome == Lost && !j.LastSeen.IsZero() {
		return j.LastSeen
	}
	return e.FinishedAt
}

func (s *Settlement) apply(d retry.Decision, since time.Time) {
	s.Attempt.Action, s.Attempt.DecidedBy, s.Attempt.Delay = d.Action, d.By, d.Delay
	s.Reason = d.Reason
	switch d.Action {
	case retry.Retry:
		s.State, s.RunAt = Retryable, since.Add(d.Delay.Final)
	case retry.DeadLetter:
		s.State, s.DeadLetter = Discarded, DeadLetterStored
	default:
		s.State = Discarded
	}
}

// NewDeadLetter is the record that the settlement leaves behind; ok is false when
// the run did not ask for one.
func (s Settlement) NewDeadLetter(queue string) (deadLetter DeadLetter, ok bool) {
	deadLetter = DeadLetter{
		JobID: s.ID, Run: s.Run, Reason: s.Reason,
		Error: s.Attempt.Error.Message, Exception: s.Attempt.Error.Type,
		FailedAt: s.Attempt.FinishedAt, Queue: queue, Attempts: s.Attempt.Number,
		Refused: s.DeadLetter == DeadLetterRefused, Problem: clip.Text(s.Problem, MaxNote),
		ForwardedTo: s.ForwardedTo, ForwardedAt: s.ForwardedAt,
	}
	if o := s.Attempt.Outcome; o == TimedOut || o == Lost {
		deadLetter.Cause = o
	}

	return deadLetter, s.DeadLetter != NoDeadLetter
}
