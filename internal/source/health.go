package source

import (
	"slices"
	"time"
)

// Health is how a source fares.
type Health struct {
	Name      string
	Preset    string
	Profile   Profile
	Allow     []Kind
	Every     time.Duration // between two looks
	Report    Report
	Ready     bool      // it was reached, and everything that is there was read once
	Reading   int       // records that the reading under way has met
	Polled    time.Time // when it was looked at last; zero: never
	Took      time.Duration
	Next      time.Time     // when it is looked at next; zero while it is
	Problem   string        // why the last look failed; empty: it did not
	Own       bool          // the problem is one of this side: the source has answered
	Moved     bool          // the problem is that its URL names another place than the one that its jobs are from
	Since     time.Time     // since when looks fail
	Acts      map[End]int64 // that ended since it was attached
	Succeeded int64         // replayed jobs that the source said have succeeded, since then

	Quarantined []Quarantined // the newest first
	Beyond      int           // records in quarantine that are too many to be listed
}

// Quarantined is a record that is at a source and cannot be taken over. All others of
// the source are, and this one is as soon as that is possible.
type Quarantined struct {
	Refusal
	Since time.Time // when it was met first since the source was attached or changed
}

// Unattached is what is left of a source that redrive.yaml no longer names.
type Unattached struct {
	Name        string
	DeadLetters int64 // dead letters
	Waiting     int64 // acts that were asked for before: they are carried out when it is attached again
}

// Standing is how well what is shown of a source is known to be true.
type Standing string

// The standings of a source.
const (
	Starting Standing = "starting" // not everything that is there was read yet
	Current  Standing = "current"
	Late     Standing = "late"    // the last look is longer ago than it should be
	Blocked  Standing = "blocked" // it answers, and this side cannot keep what it says
	Down     Standing = "down"    // it does not answer
	Moved    Standing = "moved"   // its URL names another place than the one that its jobs are from, and is not used
)

// grace is how much later than it should be a look may end.
const grace = 5 * time.Second

// Standing is how well the source is known at a time.
func (h Health) Standing(now time.Time) Standing {
	switch {
	case h.Problem != "" && h.Moved:
		return Moved
	case h.Problem != "" && h.Own:
		return Blocked
	case h.Problem != "":
		return Down
	case !h.Ready:
		return Starting
	case now.Sub(h.Polled) > 2*h.Every+grace:
		return Late
	}

	return Current
}

// Quarantine is how many records are in quarantine.
func (h Health) Quarantine() int { return len(h.Quarantined) + h.Beyond }

// Allows reports whether an act is allowed.
func (h Health) Allows(k Kind) bool { return slices.Contains(h.Allow, k) }
