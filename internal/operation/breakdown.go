package operation

// Breakdown is what an operation's scope is made of.
type Breakdown struct {
	Scope   []ScopePart  // what could run when it was collected, the largest first
	Causes  []CausePart  // the same, the largest first, at most [ListedCauses]
	Sources []SourcePart // of the scope, the largest first
	Types   []TypePart   // of the scope, without the jobs of sources, the largest first
	Skips   []SkipCount  // the most frequent first
	Skipped []Item       // the first 25 of them
}

// ScopePart is the jobs of one queue and type in a scope.
type ScopePart struct {
	Queue, Type string
	Count       int64
}

// ListedCauses is how many causes a breakdown lists.
const ListedCauses = 50

// Cause is why a job had failed when it was selected: an error group, or, for a job that has
// none, its type.
type Cause struct {
	Group string // its fingerprint; empty without a group, and when the group was removed
	Class string // of the error; empty where the group is
	Type  string // of the jobs; empty when the job was removed, too
}

// CausePart is the jobs of one cause in a scope.
type CausePart struct {
	Cause
	Count int64
}

// TypePart is the jobs of one type in a scope.
type TypePart struct {
	Type      string
	Count     int64
	Unhandled bool // no handler is configured for them, at the time of the answer
}

// Unhandled counts the jobs and types of a scope that no handler can run, at the time of the
// answer.
func (b Breakdown) Unhandled() (jobs, types int64) {
	for _, p := range b.Types {
		if p.Unhandled {
			jobs += p.Count
			types++
		}
	}

	return jobs, types
}

// SourcePart is the jobs of one source in a scope.
type SourcePart struct {
	Name     string
	Count    int64
	Attached bool // at the time of the answer
}

// Discarded is what a discard does to these jobs, after "3 jobs are". At its source it cannot
// be taken back, and one that is not attached is not told.
func (p SourcePart) Discarded() string {
	if p.Attached {
		return "deleted at the source " + p.Name + " and cannot be restored"
	}

	return "discarded in Redrive only: the source " + p.Name + " is not attached, so it is not told, and what it still has comes back " +
		"when it is attached again"
}

// SkipCount is how many items were skipped for one reason.
type SkipCount struct {
	Code  Skip
	Count int64
}
