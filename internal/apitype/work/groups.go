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
	// What a person decided about the group: open, resolved or ignored.
	State failures.State `json:"state"`
	// When a person decided that.
	StateAt apitype.Time `json:"state_at,omitzero"`
	// Who decided that.
	StateBy string `json:"state_by,omitzero"`
	// When the group reopened automatically.
	ReopenedAt apitype.Time `json:"reopened_at,omitzero"`
	// Why the group reopened: failure, date, count or rate.
	ReopenedBy failures.Reopening `json:"reopened_by,omitzero"`
	// Ignored until then.
	Until apitype.Time `json:"until,omitzero"`
	// Ignored until there are so many failures in all.
	UntilFailures int64 `json:"until_failures,omitzero"`
	// Ignored until there are so many failures within an hour.
	UntilFailuresAnHour int64 `json:"until_failures_an_hour,omitzero"`
	// What people wrote about the group.
	Note string `json:"note,omitzero"`
	// When the first failure was.
	FirstSeen apitype.Time `json:"first_seen"`
	// When the newest failure was.
	LastSeen apitype.Time `json:"last_seen"`
	// How many attempts failed so.
	Failures int64 `json:"failures"`
	// How many jobs are dead letters for it.
	Dead int64 `json:"dead"`
	// How many jobs have a dead letter for it that was refused.
	Refused int64 `json:"refused"`
	// How many jobs are not over and failed so last.
	Retrying int64 `json:"retrying"`
	// How many runs of it were replayed.
	Replayed int64 `json:"replayed"`
	// Of the replayed ones, how many next runs succeeded.
	Recovered int64 `json:"recovered"`
	// Of the replayed ones, how many next runs failed permanently again.
	Relapsed int64 `json:"relapsed"`
	// The queues of the jobs, the one with the most failures first.
	Queues []QueueFailures `json:"queues,omitempty"`
	// The failures of the last 24 hours by the clock, the oldest hour first.
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

// GroupDetail is a group with its last day.
type GroupDetail struct {
	// The group.
	Group Group `json:"group"`
	// The last 24 hours by the clock, the oldest first.
	Hours []FailureHour `json:"hours"`
	// The job that failed last; empty when it was removed.
	Sample string `json:"sample"`
}

// FailureHour is what failed in one hour by the clock.
type FailureHour struct {
	// When the hour began.
	At apitype.Time `json:"at"`
	// How many attempts failed.
	Failures int64 `json:"failures"`
	// Of these, the last attempts of a run.
	Final int64 `json:"final"`
}

// GroupClasses are the groups by the classes of their errors.
type GroupClasses struct {
	// The classes, the one with the most dead jobs first.
	Classes []GroupClass `json:"classes"`
	// How many classes there are.
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
	// How many jobs are dead letters for it.
	Dead int64 `json:"dead"`
	// How many jobs have a dead letter for it that was refused.
	Refused int64 `json:"refused"`
	// How many jobs are not over and failed so last.
	Retrying int64 `json:"retrying"`
	// How many attempts failed in the last 24 hours by the clock.
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
	// The note, at most 1,024 bytes. An empty text removes it.
	Note *string `json:"note"`
}

// GroupsRequest names the groups that it is about.
type GroupsRequest struct {
	// The fingerprints of the groups.
	Groups []string `json:"groups" want:"a list of fingerprints"`
}

// IgnoreRequest says until when a group is ignored: forever, unless a member says
// otherwise.
type IgnoreRequest struct {
	// Until then.
	Until *apitype.Time `json:"until,omitzero"`
	// Instead of until: for so long from now.
	For *apitype.Duration `json:"for,omitzero"`
	// Until there are so many more failures.
	Failures *int64 `json:"failures,omitzero" want:"a number"`
	// Until there are so many failures within an hour.
	FailuresAnHour *int64 `json:"failures_an_hour,omitzero" want:"a number"`
}

// IgnoreGroupsRequest ignores several groups.
type IgnoreGroupsRequest struct {
	GroupsRequest
	IgnoreRequest
}
