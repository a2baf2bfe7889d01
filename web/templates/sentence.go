package templates

import (
	"fmt"
	"strings"
	"time"

	"redrive/web/templates/format"
)

// Sentence is prose with times in it, which the scripts keep current. The lead
// stands out.
type Sentence struct {
	Lead, Rest []phrase
	Now        time.Time
}

// phrase is a piece of text, or a time.
type phrase struct {
	text string
	time time.Time
	down bool // it counts down to the time
}

// Answers adds to the lead.
func (s *Sentence) Answers(format string, args ...any) {
	s.Lead = append(s.Lead, phrases(format, args)...)
}

// Says adds to the rest.
func (s *Sentence) Says(format string, args ...any) {
	s.Rest = append(s.Rest, phrases(format, args)...)
}

// CountDown marks a time that is counted down to.
type CountDown time.Time

// phrases formats text in which %v stands for a time, an in, or text that may
// come from data.
func phrases(text string, args []any) []phrase {
	all := make([]phrase, 0, 1+2*len(args))
	for i, piece := range strings.Split(text, "%v") {
		if i > 0 {
			switch arg := args[i-1].(type) {
			case time.Time:
				all = append(all, phrase{time: arg})
			case CountDown:
				all = append(all, phrase{time: time.Time(arg), down: true})
			case string:
				all = append(all, phrase{text: format.Visible(arg)})
			default:
				all = append(all, phrase{text: format.Visible(fmt.Sprint(arg))})
			}
		}
		if piece != "" {
			all = append(all, phrase{text: piece})
		}
	}
	return all
}

// When is the preposition before a time, which has a date unless it is today.
func (s *Sentence) When(t time.Time) string {
	if format.SameDay(t.UTC(), s.Now.UTC()) {
		return "at"
	}
	return "on"
}

// Around is when for a time that is only expected.
func (s *Sentence) Around(t time.Time) string {
	if s.When(t) == "at" {
		return "at about"
	}
	return "around"
}
