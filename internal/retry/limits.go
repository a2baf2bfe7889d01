package retry

// The limits of what a policy lists.
const (
	MaxEntries   = 100 // of its schedule, and of its errors that are never retried
	MaxErrorType = 255 // bytes of an error's type
)
