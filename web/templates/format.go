package templates

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"redrive/internal/job"
	"redrive/internal/retry"
)

const day = 24 * time.Hour

// duration says how long something took or takes: "0.44 s", "22.6 s",
// "1 min 30 s", "3 d". Two units at most, rounded to what a person compares;
// for ages and countdowns see about.
func duration(d time.Duration) string {
	switch {
	case d == math.MinInt64:
		return duration(d + 1)
	case d < 0:
		return "−" + duration(-d)
	case d == 0:
		return "0 s"
	case d.Round(time.Microsecond) < time.Millisecond:
		return decimal(float64(d)/float64(time.Microsecond), 0) + " µs"
	case d.Round(time.Millisecond) < 100*time.Millisecond:
		return decimal(float64(d)/float64(time.Millisecond), 1) + " ms"
	}
	return longDuration(d)
}

func longDuration(d time.Duration) string {
	tenths, whole := d.Round(100*time.Millisecond), d.Round(time.Second)
	switch {
	case d.Round(10*time.Millisecond) < 10*time.Second:
		return decimal(d.Seconds(), 2) + " s"
	case whole < 90*time.Second && tenths != time.Minute:
		return decimal(d.Seconds(), 1) + " s"
	case whole < time.Hour:
		return twoUnits(whole, time.Minute, "min", time.Second, "s")
	case d.Round(time.Minute) < day:
		return twoUnits(d.Round(time.Minute), time.Hour, "h", time.Minute, "min")
	}
	return twoUnits(d.Round(time.Hour), day, "d", time.Hour, "h")
}

func twoUnits(d, big time.Duration, bigName string, small time.Duration, smallName string) string {
	s := number(int64(d/big)) + " " + bigName
	if rest := d % big / small; rest > 0 {
		s += fmt.Sprintf(" %d %s", rest, smallName)
	}
	return s
}

// decimal writes x with at most so many digits after the point.
func decimal(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s
}

// factor writes a coefficient or a bound of jitter as it was configured.
func factor(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// durationRange says "34 to 46 s", or one duration where both read the same.
func durationRange(low, high time.Duration) string {
	a, b := duration(low), duration(high)
	if a == b {
		return a
	}
	figure, unit, _ := strings.Cut(a, " ")
	if _, other, _ := strings.Cut(b, " "); unit == other {
		return figure + " to " + b
	}
	return a + " to " + b
}

// tenths is clock to the tenth of a second, cut and not rounded, so that it
// never names a moment that had not come.
func tenths(t, now time.Time) string {
	if !sameDay(t.UTC(), now.UTC()) {
		return t.UTC().Format("2 Jan 15:04:05.0")
	}
	return t.UTC().Format("15:04:05.0")
}

// inWords says small numbers as a sentence does: "two runs", "14 runs".
func inWords(n int, one, many string) string {
	words := [...]string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	switch {
	case n < 0 || n >= len(words):
		return counted(n, one, many)
	case n == 1:
		return "one " + one
	}
	return words[n] + " " + many
}

// upperFirst begins a sentence.
func upperFirst(s string) string {
	first, size := utf8.DecodeRuneInString(s)
	if !unicode.IsLower(first) {
		return s
	}
	return string(unicode.ToUpper(first)) + s[size:]
}

// size is a number of bytes: "412 bytes", "12.4 KiB".
func size(n int) string {
	switch {
	case n < 1<<10:
		return counted(n, "byte", "bytes")
	case n < 1<<20:
		return decimal(float64(n)/(1<<10), 1) + " KiB"
	}
	return decimal(float64(n)/(1<<20), 1) + " MiB"
}

// actionWord says what became of a job after an attempt.
func actionWord(a retry.Action) string {
	if a == retry.DeadLetter {
		return "dead letter"
	}
	return visible(string(a))
}

// lookOfOutcome draws how an attempt ended. The form of its bar says the same
// as its colour.
func lookOfOutcome(o job.Outcome) look {
	switch o {
	case job.TimedOut:
		return look{"is-timed-out", "timed-out", "timed out"}
	case job.Succeeded, job.Failed, job.Panicked, job.Lost, job.Interrupted, job.CancelledBy:
		return look{"is-" + string(o), string(o), string(o)}
	}
	return look{"is-pending", "unknown", visible(string(o))}
}
