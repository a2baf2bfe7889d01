package fingerprint

import (
	"slices"
	"strings"
)

// timeLength is a date, a time of day or both, with a zone.
func timeLength(s string, from int) int {
	end := from
	if n := dateLength(s, from); n > 0 {
		end += n
		if c := at(s, end); c == 'T' || c == ' ' || c == 't' {
			if n := clockLength(s, end+1); n > 0 {
				end += 1 + n
			}
		}
	} else {
		end += clockLength(s, from)
		if end == from {
			return 0
		}
	}

	if isWord(at(s, end)) {
		return 0
	}

	return end - from
}

// dateLength is a date that begins with its year.
func dateLength(s string, from int) int {
	const length = len("2006-01-02")
	if len(s) < from+length {
		return 0
	}

	date := s[from : from+length]
	separator := date[4]
	if separator != '-' && separator != '/' && separator != '.' || date[7] != separator || isDigit(at(s, from+length)) {
		return 0
	}

	for _, i := range [...]int{0, 1, 2, 3, 5, 6, 8, 9} {
		if !isDigit(date[i]) {
			return 0
		}
	}

	return length
}

// clockLength is a time of day with seconds, their fraction and a zone.
func clockLength(s string, from int) int {
	i := from
	for part := range 3 {
		if part > 0 {
			if at(s, i) != ':' {
				return 0
			}

			i++
		}

		// The hour can have one digit, 9:05:06, and the other parts have two.
		n := run(s[min(len(s), i):min(len(s), i+3)], isDigit)
		if n == 0 || n > 2 || part > 0 && n != 2 {
			return 0
		}

		i += n
	}

	// 10:00:00.123 and 10:00:00,123
	if c := at(s, i); (c == '.' || c == ',') && isDigit(at(s, i+1)) {
		i += 1 + run(s[i+1:], isDigit)
	}

	if at(s, i) == ':' { // an address
		return 0
	}

	return i - from + zoneLength(s, i)
}

// zoneLength is "Z", an offset, or what Go writes: " +0000 UTC".
func zoneLength(s string, from int) int {
	i := from
	if at(s, i) == 'Z' || at(s, i) == 'z' {
		return 1
	}

	if at(s, i) == ' ' && (at(s, i+1) == '+' || at(s, i+1) == '-') && run(s[i+2:], isDigit) == 4 {
		i++
	}

	if c := at(s, i); c == '+' || c == '-' {
		i += offsetLength(s[i:])
	}

	for _, name := range [...]string{" UTC", " GMT"} {
		if strings.HasPrefix(s[i:], name) && !isWord(at(s, i+len(name))) {
			return i + len(name) - from
		}
	}

	return i - from
}

// offsetLength is "+0200" or "+02:00".
func offsetLength(s string) int {
	i := 1
	for range 2 {
		if !isDigit(at(s, i)) || !isDigit(at(s, i+1)) {
			return 0
		}

		i += 2
		if i == 3 && at(s, i) == ':' {
			i++
		}
	}

	return i
}

// durationLength is a duration as programs and people write it: 1m2.5s, 30s, 12 ms,
// 5 minutes.
func durationLength(s string, from int) int {
	i := from
	for i < len(s) && isDigit(s[i]) {
		n := run(s[i:], func(c byte) bool { return isDigit(c) || c == '.' })
		unit := unitLength(s[i+n:])
		if unit == 0 {
			unit = unitWord(s[i+n:], timeWords[:])
		}

		if unit == 0 {
			return 0
		}

		i += n + unit
	}

	if i == from || isWord(at(s, i)) {
		return 0
	}

	return i - from
}

func unitLength(s string) int {
	for _, unit := range [...]string{"ns", "us", "µs", "μs", "ms", "s", "min", "m", "h", "d"} {
		if strings.HasPrefix(s, unit) && !isLetter(at(s, len(unit))) {
			return len(unit)
		}
	}

	return 0
}

// unitWord is one of the units, after one space or none.
func unitWord(s string, units []string) int {
	space := 0
	if at(s, 0) == ' ' {
		space = 1
	}

	n := run(s[space:], isLetter)
	if slices.Contains(units, s[space:space+n]) {
		return space + n
	}

	return 0
}

var timeWords = [...]string{
	"ms", "s", "milliseconds", "millisecond", "seconds", "second", "secs", "sec", "minutes", "minute", "mins", "min",
	"hours", "hour", "hrs", "days", "day", "weeks", "week",
}
