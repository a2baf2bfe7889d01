package operation

import (
	"slices"
	"time"
)

// Canary is what became of the first items, after which an operation paused.
type Canary struct {
	Done, Succeeded, Relapsed, Dropped, Unknown int64

	Causes []CauseCanary // the same by cause, the one with most failures first

	SourceRuns SourceRuns // of those that are unsettled
	EndedAt    time.Time  // of the last run; zero while one has not ended
}

// CauseCanary is what became of the jobs of one cause in a canary.
type CauseCanary struct {
	Cause
	Done, Succeeded, Relapsed, Dropped, Unknown int64
}

// Passed reports whether all jobs of the cause that were in the canary succeeded.
func (c CauseCanary) Passed() bool { return c.Done > 0 && c.Succeeded == c.Done }

// Passed are the causes whose jobs all succeeded.
func (c Canary) Passed() []CauseCanary {
	return slices.DeleteFunc(slices.Clone(c.Causes), func(cause CauseCanary) bool { return !cause.Passed() })
}

// Unsettled is how many of the replayed runs have not ended.
func (c CauseCanary) Unsettled() int64 {
	return c.Done - c.Succeeded - c.Relapsed - c.Dropped - c.Unknown
}

// Unsettled is how many of the replayed runs have not ended.
func (c Canary) Unsettled() int64 { return c.Done - c.Succeeded - c.Relapsed - c.Dropped - c.Unknown }
