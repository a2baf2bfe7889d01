package filter

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/invalid"
	"redrive/internal/wire"
)

// Span is a range of whole numbers, both ends included. The zero Span holds
// every number; a Max of 0 is no end.
type Span struct{ Min, Max int }

// parseSpan reads a range of numbers: 3, >3, >=3, <3, <=3, 2..5.
func parseSpan(field, text string) (Span, error) {
	bad := invalid.Errorf(field, "%q is not a number or a range (3, >3, >=3, <3, <=3, 2..5)", clip.Text(text, 64))
	number := strings.TrimLeft(text, "<>=")

	// 2..5 has two ends; of a single number both are the same.
	low, high, isRange := strings.Cut(number, "..")
	if !isRange {
		high = low
	}

	a, ok1 := parseCount(low)

	b, ok2 := parseCount(high)

	// 5..2 and >2..5 are refused.
	compare := strings.TrimSuffix(text, number)
	if !ok1 || !ok2 || a > b || isRange && compare != "" {
		return Span{}, bad
	}

	s := Span{a, b}
	switch compare {
	case "":
	case ">=":
		s = Span{Min: a}
	case ">":
		s = Span{Min: a + 1}
	case "<=":
		s = Span{Max: a}
	case "<":
		s = Span{Max: a - 1}
	default:
		return Span{}, bad
	}

	if s.Min <= 0 && s.Max <= 0 { // a Span cannot select zero alone
		return Span{}, invalid.Errorf(field, "%s; it begins at 1", bad.(*invalid.Error).Problem)
	}

	return s, nil
}

// parseCount reads a number without a sign that a Span can hold.
func parseCount(s string) (int, bool) {
	n, err := strconv.ParseUint(s, 10, 31)
	return int(n), err == nil && n < math.MaxInt32 && !strings.HasPrefix(s, "+")
}

// String is the form in which people write the range; empty for every number.
func (s Span) String() string { return s.format(">=%d", "<=%d", "%d..%d") }

// words is the range in a sentence.
func (s Span) words() string { return s.format("%d or more", "%d or fewer", "%d to %d") }

func (s Span) format(atLeast, atMost, between string) string {
	switch {
	case s == Span{}:
		return ""
	case s.Max == 0:
		return fmt.Sprintf(atLeast, s.Min)
	case s.Min == 0:
		return fmt.Sprintf(atMost, s.Max)
	case s.Min == s.Max:
		return strconv.Itoa(s.Min)
	}

	return fmt.Sprintf(between, s.Min, s.Max)
}

// parseMoment reads a time as people write one: RFC 3339, a date, a date and a
// time of day in UTC, or how long ago it was, such as 2h.
func parseMoment(field, text string, now time.Time) (time.Time, error) {
	for _, layout := range []string{
		time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateTime, "2006-01-02 15:04", time.DateOnly,
	} {
		t, err := time.Parse(layout, text)
		if err != nil {
			continue
		}

		t = t.UTC().Truncate(time.Microsecond)
		if t.Year() < 1971 || t.Year() > 9999 {
			return time.Time{}, invalid.Errorf(field, "%q is not between the years 1971 and 9999", clip.Text(text, 64))
		}

		return t, nil
	}

	ago, err := wire.ParseDuration(text)
	if err != nil {
		return time.Time{}, invalid.Errorf(field,
			"%q is not a time such as 2026-03-12T14:00:00Z or 2026-03-12, nor a time ago such as 2h or 7d", clip.Text(text, 64))
	}

	return now.Add(-ago).UTC().Truncate(time.Second), nil
}
