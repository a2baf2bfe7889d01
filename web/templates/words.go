package templates

import (
	"strconv"
	"time"

	"redrive/internal/job"
)

// number writes a count with its thousands apart: 1,261,402.
func number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// counted writes a count with its noun: "1 job", "1,204 jobs".
func counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

// room is the class that keeps enough room for a live count to double without
// moving what stands beside it.
func room(n int64) string { return "ch-" + strconv.Itoa(min(11, len(number(2*n+100)))) }

// upTo is the class that keeps just enough room for a live count that reaches n.
func upTo(n int64) string { return "ends ch-" + strconv.Itoa(min(max(3, len(number(n))), 11)) }

// about writes a duration as a person says it, in one unit: "5 s", "12 min",
// "3 h", "2 d". It is for ages and countdowns; exact figures are not its task.
func about(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 100*time.Second:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < 100*time.Minute:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	}
	return number(int64(d/day)) + " d"
}

// relative writes a time as seen from now: "5 s ago", "in 30 s", "due".
func relative(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + about(d)
	case d > -time.Second:
		return "now"
	default:
		return about(-d) + " ago"
	}
}

// countdown writes the time until t: "in 30 s", or "due" once it has come.
func countdown(t, now time.Time) string {
	if t.Sub(now) < time.Second {
		return "due"
	}
	return "in " + about(t.Sub(now))
}

// sameDay compares the dates of two times in one zone.
func sameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// clock is the time of day, with the date when it is not the day of now.
func clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch {
	case sameDay(t, now):
		return t.Format(time.TimeOnly)
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}
	return t.Format("2 Jan 2006")
}

// stamp is the whole time, for titles.
func stamp(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04:05 UTC") }

// machine is the time as <time datetime> has it.
func machine(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}

// look is how a state, an outcome or a reason is drawn: the class that sets
// its colour, its icon and its word.
type look struct{ class, icon, word string }

// lookOf draws a status; pages and scripts use the same words.
func lookOf(s job.Status) look {
	switch s {
	case job.StatusDeadLetter:
		return look{"is-dead", "dead", "dead letter"}
	case job.StatusDLQFailed:
		return look{"is-dlq-failed", "dlq-failed", "dlq failed"}
	case job.StatusTrashed:
		return look{"is-discarded", "discarded", "trashed"}
	case job.StatusHeld:
		return look{"is-warn", "unknown", "no handler"}
	}
	for _, known := range job.States() {
		if s == job.Status(known) {
			return look{"is-" + string(s), string(s), string(s)}
		}
	}
	return look{"is-pending", "unknown", visible(string(s))}
}
