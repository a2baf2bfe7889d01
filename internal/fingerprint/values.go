package fingerprint

import (
	"strings"
)

// A matcher reports how long the value is that begins at a place of a message,
// 0 when there is none. The place is not within a word.
type matcher struct {
	as    string
	match func(s string, from int) int
}

// matchers are asked in this order. The array never changes.
var matchers = [...]matcher{
	{url, urlLength}, {email, emailLength}, {uuid, uuidLength}, {moment, timeLength}, {moment, calendarLength}, {moment, slashedLength},
	{ip, ipLength}, {host, hostLength}, {path, pathLength}, {hexa, hexLength}, {duration, durationLength}, {size, sizeLength},
	{number, phoneLength}, {number, numberLength},
}

// maxQuoted is how long a quoted value may be; a quote that is not closed by
// then is a mark of something else.
const maxQuoted = 300

// quoted is a value in quotes, but not the name of a JSON field, nor an
// apostrophe.
func quoted(s string, from int) int {
	quote := s[from]
	if quote != '"' && quote != '\'' && quote != '`' {
		return 0
	}

	for i := from + 1; i < len(s) && i <= from+maxQuoted && s[i] != '\n'; i++ {
		if s[i] == '\\' {
			i++
			continue
		}

		if s[i] != quote && !(quote == '`' && s[i] == '\'') || isWord(at(s, i+1)) { // Ruby: `name'
			continue
		}

		if quote == '"' && at(s, i+1) == ':' && inObject(s[:from]) {
			return 0
		}

		return i + 1 - from
	}

	return 0
}

// inObject reports whether a field of a JSON object can follow.
func inObject(before string) bool {
	before = strings.TrimRight(before[max(0, len(before)-16):], " \n\t")
	return strings.HasSuffix(before, "{") || strings.HasSuffix(before, ",")
}

func uuidLength(s string, from int) int {
	const length = 36
	if len(s) < from+length || isWord(at(s, from+length)) {
		return 0
	}

	for i := range length {
		c := s[from+i]
		dash := i == 8 || i == 13 || i == 18 || i == 23
		if dash && c != '-' || !dash && !isHex(c) {
			return 0
		}
	}

	return length
}

// hexLength is a number that says that it is hexadecimal, or a long one that
// has letters and digits.
func hexLength(s string, from int) int {
	if s[from] == '0' && (at(s, from+1) == 'x' || at(s, from+1) == 'X') {
		if n := run(s[from+2:], isHex); n > 0 && !isWord(at(s, from+2+n)) {
			return n + 2
		}
		return 0
	}

	const shortest = 8

	n := run(s[from:], isHex)
	value := s[from : from+n]
	if n < shortest || isWord(at(s, from+n)) || !strings.ContainsAny(value, "0123456789") || run(value, isDigit) == n {
		return 0
	}

	return n
}

// phoneLength is a telephone number with its country: +1 (555) 010-9999.
func phoneLength(s string, from int) int {
	const fewest = 8

	if s[from] != '+' || !isDigit(at(s, from+1)) {
		return 0
	}

	n := 1 + run(s[from+1:], func(c byte) bool { return isDigit(c) || strings.IndexByte(" ()-/", c) >= 0 })

	// Without a mark between its digits it may be any number.
	number := strings.TrimRight(s[from:from+n], " ()-/")
	mark := strings.IndexFunc(number, func(r rune) bool { return r != '+' && !isDigit(byte(r)) })
	if mark < 0 || len(number)-strings.Count(number, " ") < fewest || isWord(at(s, from+len(number))) {
		return 0
	}

	return len(number)
}

// numberLength is a number with its sign, its points and its exponent.
func numberLength(s string, from int) int {
	i := from
	if c := s[i]; (c == '-' || c == '+') && at(s, from-1) != '-' {
		i++
	}

	if !isDigit(at(s, i)) {
		return 0
	}

	// A point or a comma counts only before a digit: 1,234.5 but not the end of a sentence.
	for i < len(s) && (isDigit(s[i]) || strings.ContainsRune(".,", rune(s[i])) && isDigit(at(s, i+1))) {
		i++
	}

	// The exponent: 1e-9, 2E10.
	if c := at(s, i); c == 'e' || c == 'E' {
		sign := 0
		if d := at(s, i+1); d == '-' || d == '+' {
			sign = 1
		}

		if n := run(s[min(len(s), i+1+sign):], isDigit); n > 0 && !isWord(at(s, i+1+sign+n)) {
			i += 1 + sign + n
		}
	}

	// 5xx and 12abc are not numbers.
	if isWord(at(s, i)) {
		return 0
	}

	return i - from
}

var sizeWords = [...]string{"bytes", "byte", "kB", "KB", "MB", "GB", "TB", "KiB", "MiB", "GiB", "TiB", "Ki", "Mi", "Gi"}

// sizeLength is a number of bytes with its unit: programs choose the unit by the size.
func sizeLength(s string, from int) int {
	n := run(s[from:], func(c byte) bool { return isDigit(c) || c == '.' || c == ',' })
	if n == 0 || !isDigit(s[from]) {
		return 0
	}

	unit := unitWord(s[from+n:], sizeWords[:])
	if unit == 0 || isWord(at(s, from+n+unit)) {
		return 0
	}

	return n + unit
}
