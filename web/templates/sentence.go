package templates

import (
	"time"

	"redrive/web/templates/format"
)

// On is a time with its preposition in a sentence: "at 14:02:10", or "on 12 Mar
// 14:02" on another day.
type On time.Time

// About is On for a time that is only expected.
type About time.Time

// Countdown is a time in a sentence that is counted down to.
type Countdown time.Time

// Since says in a sentence how long ago a time was: "5 min ago".
type Since time.Time

// aboutWord is the word before a time that is only expected.
func aboutWord(t, now time.Time) string {
	if format.Preposition(t, now) == "at" {
		return "at about"
	}
	return "around"
}
