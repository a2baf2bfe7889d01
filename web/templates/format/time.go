package format

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Day is 24 hours.
const Day = 24 * time.Hour

// Duration says how long something took or takes: "0.44 s", "22.6 s",
// "1 min 30 s", "3 d". Two units at most, rounded to what a person compares;
// for ages and countdowns see About.
func Duration(d time.Duration) string {
	switch {
	case d == math.MinInt64:
		return Duration(d + 1)
	case d < 0:
		return "−" + Duration(-d)
	case d == 0:
		return "0 s"
	case d.Round(time.Microsecond) < time.Millisecond:
		return Decimal(float64(d)/float64(time.Microsecond), 0) + " µs"
	case d.Round(time.Millisecond) < 100*time.Millisecond:
		return Decimal(float64(d)/float64(time.Millisecond), 1) + " ms"
	}

	return coarseDuration(d)
}

// coarseDuration writes durations that people count in seconds or more.
func coarseDuration(d time.Duration) string {
	tenths, whole := d.Round(100*time.Millisecond), d.Round(time.Second)
	switch {
	case d.Round(10*time.Millisecond) < 10*time.Second:
		return Decimal(d.Seconds(), 2) + " s"
	case whole < 90*time.Second && tenths != time.Minute:
		return Decimal(d.Seconds(), 1) + " s"
	case whole < time.Hour:
		return twoUnits(whole, time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < Day:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}

	return twoUnits(d.Round(time.Hour), Day, "d", time.Hour, "h")
}

// twoUnits writes a duration in a unit and what is left over in a smaller one.
func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := Number(int64(d/big)) + " " + bigName
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, smallName)
	}

	return s
}

// DurationRange says "34 to 46 s", or one duration where both read the same.
func DurationRange(low, high time.Duration) string {
	a, b := Duration(low), Duration(high)
	if a == b {
		return a
	}

	figure, unit, _ := strings.Cut(a, " ")
	if _, other, _ := strings.Cut(b, " "); unit == other {
		return figure + " to " + b
	}

	return a + " to " + b
}

// ClockTenths is Clock to the tenth of a second, cut and not rounded, so that it
// never names a moment that had not come.
func ClockTenths(t, now time.Time) string {
	if !SameDay(t.UTC(), now.UTC()) {
		return t.UTC().Format("2 Jan 15:04:05.0")
	}
	return t.UTC().Format("15:04:05.0")
}

// About writes a duration as a person says it: "5 s", "12 min", "1 h 59 min", "20 h",
// "2 d". Seconds are cut, so that a countdown ends when it says so; all else is
// rounded. It is for ages and countdowns; exact figures are not its task.
func About(d time.Duration) string {
	d = max(d, 0)
	switch minutes, hours := d.Round(time.Minute), d.Round(time.Hour); {
	case d < 100*time.Second:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case minutes < 100*time.Minute:
		return strconv.Itoa(int(minutes/time.Minute)) + " min"
	case minutes < 10*time.Hour:
		return twoUnits(minutes, time.Hour, "h", time.Minute, "min")
	case hours < 48*time.Hour:
		return strconv.Itoa(int(hours/time.Hour)) + " h"
	}

	return Number(int64(d.Round(Day)/Day)) + " d"
}

// Relative writes a time as seen from now: "5 s ago", "in 30 s", "due".
func Relative(t, now time.Time) string {
	switch d := t.Sub(now); {
	case d >= time.Second:
		return "in " + About(d)
	case d > -time.Second:
		return "now"
	default:
		return About(-d) + " ago"
	}
}

// Countdown writes the time until t: "in 30 s", or what it says once t has come.
func Countdown(t, now time.Time, come string) string {
	if t.Sub(now) < time.Second {
		return come
	}
	return "in " + About(t.Sub(now))
}

// SameDay compares the dates of two times in one zone.
func SameDay(a, b time.Time) bool { return a.YearDay() == b.YearDay() && a.Year() == b.Year() }

// Preposition is the word before a time, which Clock writes with its date unless
// it is on the day of now: "at", or "on".
func Preposition(t, now time.Time) string {
	if SameDay(t.UTC(), now.UTC()) {
		return "at"
	}
	return "on"
}

// Clock is the time of day, with the date when it is not the day of now.
func Clock(t, now time.Time) string {
	t, now = t.UTC(), now.UTC()
	switch {
	case SameDay(t, now):
		return t.Format(time.TimeOnly)
	case t.Year() == now.Year():
		return t.Format("2 Jan 15:04")
	}

	return t.Format("2 Jan 2006")
}

// Stamp is the whole time, for titles.
func Stamp(t time.Time) string { return t.UTC().Format("2 Jan 2006 15:04:05 UTC") }

// Moment is a time as <time datetime> has it, as exact as any page shows one.
func Moment(t time.Time) string { return Machine(t.Truncate(100 * time.Millisecond)) }

// Machine is a time as exact as it is stored.
func Machine(t time.Time) string {
	return t.UTC().Truncate(time.Microsecond).Format(time.RFC3339Nano)
}
