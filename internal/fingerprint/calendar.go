package fingerprint

import (
	"slices"
	"strings"
)

var (
	weekdays = [...]string{"Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"}
	months   = [...]string{"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
	fulls    = [...]string{
		"Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday", "January", "February", "March", "April", "June",
		"July", "August", "September", "October", "November", "December",
	}
)

// calendarLength is a date that names its month, with its weekday and its time of
// day: "Tue, 03 Mar 2026 10:00:00 GMT", "March 4, 2026 at 9:30 AM", "Mar 4 05:06:07".
func calendarLength(s string, from int) int {
	i := from
	if c := s[i]; !isDigit(c) && (c < 'A' || c > 'Z') {
		return 0
	}

	// The weekday, which may be missing: "Tue, ".
	if n := nameLength(s[i:], weekdays[:]); n > 0 {
		i += n + marks(s[i+n:])
	}

	// The day stands before the month, "03 Mar", or behind it, "March 4".
	day := dayLength(s[i:])
	i += day + marks(s[i+day:])

	month := nameLength(s[i:], months[:])
	if month == 0 {
		return 0
	}

	i += month
	if day == 0 {
		skip := marks(s[i:])

		day = dayLength(s[i+skip:])
		if day == 0 {
			return 0
		}

		i += skip + day
	}

	// The year, which may be missing: "Mar 4 05:06:07".
	skip := marks(s[i:])
	if run(s[i+skip:], isDigit) == len("2026") && !isWord(at(s, i+skip+len("2026"))) {
		i += skip + len("2026")
	}

	// The time of day, which may be missing, too.
	i += hourLength(s, i)
	if isWord(at(s, i)) {
		return 0
	}

	return i - from
}

// slashedLength is a date in figures with its time of day, as Java writes it for people: "9/16/25,
// 2:00 AM".
func slashedLength(s string, from int) int {
	i := from
	for part := range 3 {
		if part > 0 {
			if at(s, i) != '/' {
				return 0
			}

			i++
		}

		digits := run(s[i:], isDigit)
		if digits == 0 || digits > len("2026") {
			return 0
		}

		i += digits
	}

	// Without a time of day, 9/16/25 can be anything.
	hour := hourLength(s, i)
	if hour == 0 || isWord(at(s, i+hour)) {
		return 0
	}

	return i + hour - from
}

// nameLength is one of the names at the beginning of a text, short or in full.
func nameLength(s string, short []string) int {
	n := run(s, isLetter)
	if n < 3 || !slices.Contains(short, s[:3]) || n > 3 && !slices.Contains(fulls[:], s[:n]) {
		return 0
	}

	return n
}

// dayLength is the day of a month: one digit or two.
func dayLength(s string) int {
	if n := run(s, isDigit); n <= 2 && !isWord(at(s, n)) {
		return n
	}
	return 0
}

// marks is what stands between the parts of a date.
func marks(s string) int {
	return run(s[:min(len(s), 2)], func(c byte) bool { return c == ' ' || c == ',' || c == '-' })
}

// hourLength is the time of day that follows a date, and what stands between them.
func hourLength(s string, from int) int {
	i := from + marks(s[from:])
	if strings.HasPrefix(s[i:], "at ") {
		i += len("at ")
	}

	if n := clockLength(s, i); n > 0 {
		return i + n - from
	}

	// 9:30 AM
	hour := run(s[i:], isDigit)
	if hour == 0 || hour > 2 || at(s, i+hour) != ':' || run(s[i+hour+1:], isDigit) != 2 {
		return 0
	}

	i += hour + len(":30")
	for _, half := range [...]string{" AM", " PM", "AM", "PM", " am", " pm", "am", "pm"} {
		if strings.HasPrefix(s[i:], half) && !isWord(at(s, i+len(half))) {
			i += len(half)
			break
		}
	}

	return i - from
}
