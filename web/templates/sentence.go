package templates

import (
	"fmt"
	"redrive/web/templates/format"
	"strings"
	"time"
)

// sentence is prose with times in it, which the scripts keep current. The lead
// stands out.
type sentence struct {
	lead, rest []phrase
	now        time.Time
}

// phrase is a piece of text, or a time.
type phrase struct {
	text string
	time time.Time
	down bool // it counts down to the time
}

func (s *sentence) answers(format string, args ...any) {
	s.lead = append(s.lead, phrases(format, args)...)
}

func (s *sentence) says(format string, args ...any) {
	s.rest = append(s.rest, phrases(format, args)...)
}

// in marks a time that is counted down to.
type in time.Time

// phrases formats text in which %v stands for a time, an in, or text that may
// come from data.
func phrases(text string, args []any) []phrase {
	all := make([]phrase, 0, 1+2*len(args))
	for i, piece := range strings.Split(text, "%v") {
		if i > 0 {
			switch arg := args[i-1].(type) {
			case time.Time:
				all = append(all, phrase{time: arg})
			case in:
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

// when is the preposition before a time, which has a date unless it is today.
func (s *sentence) when(t time.Time) string {
	if format.SameDay(t.UTC(), s.now.UTC()) {
		return "at"
	}
	return "on"
}

// around is when for a time that is only expected.
func (s *sentence) around(t time.Time) string {
	if s.when(t) == "at" {
		return "at about"
	}
	return "around"
}
