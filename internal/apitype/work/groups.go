package work

import (
	"redrive/internal/apitype"
	"redrive/internal/failures"
)

// Group is an error group: the failures of one type of job that have one cause.
type Group struct {
	// Names the group: 16 hexadecimal digits.
	Fingerprint string `json:"fingerprint"`
	// The type of the jobs.
	Type string `json:"type"`
	// The class of the error.
	Class string `json:"class"`
	// What the error says, with placeholders for what differs.
	Message string `json:"message"`
	// The top frames of the trace, the innermost first.
	Frames []string `json:"frames,omitempty"`
	// Open, resolved or ignored: what a person decided, until a failure opens the group again.
	State failures.State `json:"state"`
	// When a person decided that last.
	StateAt apitype.Time `json:"state_at,omitzero"`
	// Who decided that last.
	StateBy string `json:"state_by,omitzero"`
	// When a failure opened the group again.
	ReopenedAt apitype.Time `json:"reopened_at,omitzero"`
	// Why it opened again: failure, after it was resolved; date, count or rate, when it had been ignored for so long.
	ReopenedBy failures.Reopening `json:"reopened_by,omitzero"`
	// The time until which the group is ignored.
	Until apitype.Time `json:"until,omitzero"`
	// The number of failures, as in failures, until which the group is ignored.
	UntilFailures int64 `json:"until_failures,omitzero"`
	// The number of failures within an hour until which the group is ignored.
	UntilFailuresAnHour int64 `json:"until_failures_an_hour,omitzero"`
	// What people wrote about the group.
	Note string `json:"note,omitzero"`
	// When the first failure was.
	FirstSeen apitype.Time `json:"first_seen"`
	// When the newest failure was.
	LastSeen apitype.Time `json:"last_seen"`
	// How many attempts failed with this error.
	Failures int64 `json:"failures"`
	// How many jobs are dead letters because of this error.
	Dead int64 `json:"dead"`
	// How many jobs failed permanently with this error and whose dead letter was refused by its receiver. They do not count as dead.
	Refused int64 `json:"refused"`
	// How many jobs will be retried whose newest failure has this error.
	Retrying int64 `json:"retrying"`
	// How many runs that ended with this error were replayed.
	Replayed int64 `json:"replayed"`
	// How many of the replayed runs were followed by one that succeeded.
	Recovered int64 `json:"recovered"`
	// How many of the replayed runs were followed by one that failed permanently.
	Relapsed int64 `json:"relapsed"`
	// All queues of the jobs, the one with the most failures first.
	Queues []QueueFailures `json:"queues,omitempty"`
	// The failures in each of 24 whole hours, the oldest first; the last is the current one.
	LastDay []int64 `json:"last_day,omitempty"`
}

// QueueFailures is a queue with its failures of one group.
type QueueFailures struct {
	// The name of the queue.
	Queue string `json:"queue"`
	// How many attempts failed.
	Failures int64 `json:"failures"`
}

// GroupList is one page of the error groups.
type GroupList struct {
	// The groups.
	Groups []Group `json:"groups"`
	apitype.Page
}

// GroupDetail is a group with its last day by the hour, and an example.
type GroupDetail struct {
	// The group.
	Group Group `json:"group"`
	// The last 24 whole hours, the oldest first; the last is the current one.
	Hours []FailureHour `json:"hours"`
	// The id of the job that failed last, as an example; empty when it was removed.
	Sample string `json:"sample"`
}

// FailureHour is what failed in one whole hour, such as from 10:00 to 11:00.
type FailureHour struct {
	// When the hour began.
	At apitype.Time `json:"at"`
	// How many attempts failed.
	Failures int64 `json:"failures"`
	// How many of these were not retried.
	Final int64 `json:"final"`
}

// GroupClasses are the groups by the classes of their errors.
type GroupClasses struct {
	// The classes, the one with the most dead letters first, as many as were asked for.
	Classes []GroupClass `json:"classes"`
	// How many classes there are in all.
	Total int64 `json:"total"`
}

// GroupClass is a class of errors with its groups.
type GroupClass struct {
	// The name of the class.
	Class string `json:"class"`
	// How many groups have it.
	Groups int64 `json:"groups"`
	// How many types of jobs have it.
	Types int64 `json:"types"`
	// How many queues have it.
	Queues int64 `json:"queues"`
	// How many jobs are dead letters because of this error.
	Dead int64 `json:"dead"`
	// How many jobs failed permanently with this error and whose dead letter was refused by its receiver. They do not count as dead.
	Refused int64 `json:"refused"`
	// How many jobs will be retried whose newest failure has this error.
	Retrying int64 `json:"retrying"`
	// How many attempts failed in the last 24 whole hours, the current one included.
	FailuresLastDay int64 `json:"failures_last_day"`
	// When the newest failure was.
	LastSeen apitype.Time `json:"last_seen"`
}

// GroupAnswer is the group on which a request acted.
type GroupAnswer struct {
	// The group as it is now.
	Group Group `json:"group"`
}

// GroupsAnswer is the groups on which a request acted.
type GroupsAnswer struct {
	// The groups as they are now, without those that were removed meanwhile.
	Groups []Group `json:"groups"`
}

// NoteRequest writes a note on a group.
type NoteRequest struct {
	// The note, at most 1,024 bytes. It has to be given; an empty text removes the note.
	Note *string `json:"note"`
}

// GroupsRequest names the groups that it is about.
type GroupsRequest struct {
	// The fingerprints of the groups.
	Groups []string `json:"groups" want:"a list of fingerprints"`
}

// IgnoreRequest says until when a group is ignored: forever, unless a member says
// otherwise. Of several, the first that is reached ends it; until and for cannot both be given.
type IgnoreRequest struct {
	// The time until which it is ignored.
	Until *apitype.Time `json:"until,omitzero"`
	// How long it is ignored from now on, instead of until.
	For *apitype.Duration `json:"for,omitzero"`
	// How many more failures end it.
	Failures *int64 `json:"failures,omitzero" want:"a number"`
	// How many failures within an hour end it.
	FailuresAnHour *int64 `json:"failures_an_hour,omitzero" want:"a number"`
}

// IgnoreGroupsRequest ignores several groups.
type IgnoreGroupsRequest struct {
	GroupsRequest
	IgnoreRequest
}
