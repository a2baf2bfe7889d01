package source

import (
	"strconv"
	"time"

	"redrive/internal/job"
)

// ReplayedJob is a job that was given back to its source. Nothing is known since of the run
// that began then.
type ReplayedJob struct {
	Seq    int64 // of the job
	Run    int
	Since  time.Time
	Record // where it was, and under which key
}

// Success is a run of which its source says that it succeeded.
type Success struct {
	ReplayedJob
	At       time.Time // zero when the source does not say
	Attempts int       // as the source counts them; 0 when it does not say
}

// ReturnedAfter is when it is said of a job that was given back to its source that it is
// not back.
const ReturnedAfter = 10 * time.Minute

// Returned reports whether a job was given back to its source that long ago, or was to run
// there, and nothing is known since. It may have succeeded, still wait, or be gone: only the
// source knows.
func Returned(j job.Job, now time.Time) bool {
	return AtSource(j) && !now.Before(ReturnsAt(j))
}

// AtSource reports whether a job was given back to its source, of which nothing is known since.
func AtSource(j job.Job) bool { return j.Changed().AtSource }

// AddedAt is when a job of a source was seen first, to the millisecond: its id was made then,
// and begins with that time. It is zero if the id does not say it.
func AddedAt(j job.Job) time.Time {
	id, err := job.ParseID(j.ID)
	if err != nil || id[14] != '7' { // the version of the id
		return time.Time{}
	}

	milliseconds, err := strconv.ParseInt(id[:8]+id[9:13], 16, 64)
	if err != nil { // unreachable: an id is hexadecimal
		return time.Time{}
	}

	return time.UnixMilli(milliseconds).UTC()
}

// InDoubt reports whether it is unknown whether the source of a job took its replay.
func InDoubt(j job.Job) bool { return j.State == job.Returned && j.Unbegun }

// ReturnsAt is when it will be said of a job that its source has that it is not back.
func ReturnsAt(j job.Job) time.Time {
	since := j.ChangedAt
	if j.RunAt.After(since) {
		since = j.RunAt
	}

	return since.Add(ReturnedAfter)
}
