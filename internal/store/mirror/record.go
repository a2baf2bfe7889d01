package mirror

import (
	"time"

	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/store/db"
)

// newMirrored makes the job of a record. What the source does not say stays unknown: a time
// is zero, a number of attempts too, and no policy or time limit of Redrive is made up for a
// job that Redrive never runs. Only ChangedAt must be set: to when the job failed, or to
// now, when Redrive saw it first. A time in the future becomes now. The job has no id yet.
func newMirrored(now time.Time, name string, r *source.Record) *mirrored {
	now = now.UTC().Truncate(time.Microsecond)

	failed := plausible(now, r.FailedAt)
	made := plausible(now, r.CreatedAt)

	// A job was made before it failed, whatever its source says.
	if !failed.IsZero() && made.After(failed) {
		made = failed
	}

	since := failed
	if since.IsZero() {
		since = now
	}

	j := job.Job{
		Token: job.Token{Run: 1}, Queue: source.Queue(name, r.Queue), Source: name, Type: r.Type, State: job.Discarded,
		Payload: r.Payload, Meta: r.Meta, RunAt: made, EnqueuedAt: made, ChangedAt: since, FinishedAt: failed,
		DeadLetter: job.DeadLetterStored, Attempts: r.Attempts, Reason: source.ReasonOf(r), Error: r.Error,
	}

	// The limit is never below the attempts that were made, whatever the record says.
	if r.Limit > 0 {
		j.Policy.MaxAttempts, j.Origins = max(r.Limit, r.Attempts), job.Origins{"max_attempts": "source:" + name}
	}

	// The texts are cleaned first: the fingerprint is that of the texts that are stored.
	for _, text := range []*string{&j.Type, &j.Error.Type, &j.Error.Message, &r.Trace} {
		*text = db.Clean(*text)
	}

	if j.Payload == nil {
		j.Payload = []byte{}
	}

	return &mirrored{Record: r, job: j, cause: fingerprint.Of(j.Type, j.Error.Type, j.Error.Message, r.Trace)}
}

// endOfTime is the first second after the year 9999, since 1970.
const endOfTime = 253402300800

// plausible is a time that a source says. It is zero if the source says none, or one that
// cannot be: not after the first second of 1970, or after the year 9999. The bounds come
// first, since a time that has overflowed is neither before nor after another one.
func plausible(now, t time.Time) time.Time {
	if seconds := t.Unix(); seconds <= 0 || seconds >= endOfTime {
		return time.Time{}
	}

	if t.After(now) {
		return now
	}

	return t.UTC().Truncate(time.Microsecond)
}
