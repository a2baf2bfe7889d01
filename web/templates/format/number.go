package format

import (
	"math"
	"strconv"
	"strings"
)

// Number writes a count with its thousands apart: 1,261,402.
func Number[N int | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}

	return s
}

// NumberOf writes a count that grows up to a total as wide as the total is, so that what
// stands behind the count never moves: figure and punctuation spaces, which are as wide as
// a digit and a comma, stand before it.
func NumberOf[N int | int64](n, total N) string {
	short, long := Number(n), Number(total)
	missing := long[:max(len(long)-len(short), 0)]
	spaces := strings.Map(func(r rune) rune {
		if r == ',' {
			return '\u2008'
		}
		return '\u2007'
	}, missing)

	return spaces + short
}

// Counted writes a count with its noun: "1 job", "1,204 jobs".
func Counted[N int | int64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return Number(n) + " " + many
}

// InWords says small numbers as a sentence does: "two runs", "14 runs".
func InWords(n int, one, many string) string {
	words := [...]string{"no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}
	switch {
	case n < 0 || n >= len(words):
		return Counted(n, one, many)
	case n == 1:
		return "one " + one
	}

	return words[n] + " " + many
}

// Decimal writes x with at most so many digits after the point.
func Decimal(x float64, digits int) string {
	s := strconv.FormatFloat(x, 'f', digits, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}

	return s
}

// Factor writes a coefficient or a bound of jitter as it was configured.
func Factor(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Size is a number of bytes: "412 bytes", "12.4 KiB".
func Size(n int) string {
	switch {
	case n < 1<<10:
		return Counted(n, "byte", "bytes")
	case n < 1<<20:
		return Decimal(float64(n)/(1<<10), 1) + " KiB"
	}

	return Decimal(float64(n)/(1<<20), 1) + " MiB"
}

// Sizes are two numbers of bytes, such as one and the limit that it exceeds. Where both would
// round to the same words, both are exact.
func Sizes(a, b int) (first, second string) {
	first, second = Size(a), Size(b)
	if first == second && a != b {
		first, second = Counted(a, "byte", "bytes"), Counted(b, "byte", "bytes")
	}

	return first, second
}

// FirstOf says how much of a text is shown.
func FirstOf(shown, total int) string {
	part, whole := Sizes(shown, total)
	return "The first " + part + " of " + whole
}

// Coord writes a coordinate of a drawing.
func Coord(x float64) string { return strconv.FormatFloat(math.Round(x*100)/100, 'f', -1, 64) }

// Tenth is Coord where a tenth is exact enough.
func Tenth(x float64) string { return strconv.FormatFloat(math.Round(x*10)/10, 'f', -1, 64) }

// Percent is a length as a part of the figure's width.
func Percent(percent float64) string { return Coord(percent) + "%" }
