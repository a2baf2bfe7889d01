package app

import (
	"log/slog"

	"redrive/internal/job"
	"redrive/internal/loglimit"
)

// deadLetterLog logs the jobs that become dead letters. A service that is down makes
// thousands of them.
type deadLetterLog struct {
	log   *slog.Logger
	limit *loglimit.Limit[struct{}] // all are of one kind
}

func newDeadLetterLog(log *slog.Logger) *deadLetterLog {
	return &deadLetterLog{log, loglimit.New(func(_ struct{}, times int) {
		log.Warn("More jobs became dead letters.", "jobs", times, "within", loglimit.Period)
	})}
}

// settled logs the job if its execution ended as a dead letter.
func (l *deadLetterLog) settled(j job.Job, s job.Settlement) {
	if s.DeadLetter == job.NoDeadLetter {
		return
	}

	l.limit.Log(struct{}{}, func() {
		l.log.Warn("A job became a dead letter.",
			"job", j.ID, "run", j.Run, "type", j.Type, "queue", j.Queue, "reason", s.Reason, "error", s.Attempt.Error.Type)
	})
}
