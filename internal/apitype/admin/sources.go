package admin

import (
	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/source"
)

// Source is an attached source, and how it fares.
type Source struct {
	// The name in the configuration.
	Name string `json:"name"`
	// The preset that says how its records are read.
	Preset string `json:"preset"`
	// What the preset is called.
	System string `json:"system"`
	// The version that the source says it has.
	Version string `json:"version,omitzero"`
	// What Redrive may do at the source.
	Allow []source.Kind `json:"allow"`
	// How well what is shown of the source is known to be true.
	State source.Standing `json:"state"`
	// It was reached, and everything that is there was read once.
	Ready bool `json:"ready"`
	// When it was looked at last.
	PolledAt apitype.Time `json:"polled_at,omitzero"`
	// How long that took.
	Took apitype.Duration `json:"took,omitzero"`
	// When it is looked at next.
	NextLookAt apitype.Time `json:"next_look_at,omitzero"`
	// Why the last look failed.
	Problem string `json:"problem,omitzero"`
	// Since when looks fail.
	FailingSince apitype.Time `json:"failing_since,omitzero"`
	// How many records could not be taken over.
	Quarantine int `json:"quarantine"`
	// Its queues with open dead letters.
	Queues []SourceQueue `json:"queues"`
	// How many jobs were replayed there and have not come back.
	Returned int64 `json:"handed"`
}

// SourceQueue is a queue of a source.
type SourceQueue struct {
	// The name: QUEUE@SOURCE.
	Name string `json:"name"`
	// How many open dead letters it has.
	DeadLetters int64 `json:"dead_letters"`
}

// SourceList is the attached sources, and what is left of others.
type SourceList struct {
	// The sources that the configuration names.
	Sources []Source `json:"sources"`
	// Those that it no longer names, of which something is left.
	Unattached []UnattachedSource `json:"unattached"`
}

// UnattachedSource is what is left of a source that is no longer attached.
type UnattachedSource struct {
	// The name that it had.
	Name string `json:"name"`
	// How many open dead letters it has.
	DeadLetters int64 `json:"dead_letters"`
	// How many replays and discards were requested before and have not ended.
	Waiting int64 `json:"waiting"`
}

// SourceDetail is a source with the newest requests to it.
type SourceDetail struct {
	Source
	// What a person should know before acting at the source.
	Hazards []string `json:"hazards" schema:"nullable"`
	// The newest 50 requests to the source.
	Acts []work.SourceAct `json:"acts"`
	// The records that could not be taken over, the newest first.
	Quarantined []QuarantinedRecord `json:"quarantined"`
}

// QuarantinedRecord is a record that could not be taken over.
type QuarantinedRecord struct {
	// Names the record at the source.
	Key string `json:"key"`
	// Why it could not be taken over.
	Why string `json:"why"`
	// Since when.
	Since apitype.Time `json:"since"`
}
