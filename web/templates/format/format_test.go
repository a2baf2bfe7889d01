package format

import (
	"math"
	"strconv"
	"testing"
	"time"
)

func TestDuration_ReadsAsAPersonSaysIt(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{0, "0 s"},
		{340 * time.Microsecond, "340 µs"},
		{999999 * time.Nanosecond, "1 ms"},
		{1500 * time.Microsecond, "1.5 ms"},
		{12 * time.Millisecond, "12 ms"},
		{99 * time.Millisecond, "99 ms"},
		{100 * time.Millisecond, "0.1 s"},
		{440 * time.Millisecond, "0.44 s"},
		{1310 * time.Millisecond, "1.31 s"},
		{5 * time.Second, "5 s"},
		{9996 * time.Millisecond, "10 s"},
		{22634 * time.Millisecond, "22.6 s"},
		{59980 * time.Millisecond, "1 min"},
		{time.Minute, "1 min"},
		{81 * time.Second, "81 s"},
		{90 * time.Second, "1 min 30 s"},
		{116 * time.Second, "1 min 56 s"},
		{5 * time.Minute, "5 min"},
		{time.Hour - time.Millisecond, "1 h"},
		{65 * time.Minute, "1 h 5 min"},
		{72 * time.Hour, "3 d"},
		{76 * time.Hour, "3 d 4 h"},
		{-5 * time.Second, "−5 s"},
		{math.MaxInt64, "106,751 d 23 h"},
		{math.MinInt64, "−106,751 d 23 h"},
	} {
		if got := Duration(c.d); got != c.want {
			t.Errorf("duration(%v) = %q, want %q", c.d, got, c.want)
		}
	}
}

func TestAbout_IsRoundedAndHasTwoUnitsBelowTenHours(t *testing.T) {
	for _, c := range []struct {
		d    time.Duration
		want string
	}{
		{-time.Second, "0 s"},
		{30*time.Second - 1, "29 s"},
		{99 * time.Second, "99 s"},
		{119 * time.Second, "2 min"},
		{99*time.Minute + 29*time.Second, "99 min"},
		{99*time.Minute + 30*time.Second, "1 h 40 min"},
		{2*time.Hour - time.Minute, "1 h 59 min"},
		{2*time.Hour - time.Second, "2 h"},
		{10*time.Hour - time.Minute, "9 h 59 min"},
		{10*time.Hour - time.Second, "10 h"},
		{20*time.Hour - time.Minute, "20 h"},
		{48*time.Hour - time.Second, "2 d"},
		{90*Day - time.Minute, "90 d"},
	} {
		if got := About(c.d); got != c.want {
			t.Errorf("about(%v) = %q, want %q", c.d, got, c.want)
		}
	}
}

func TestDurationRange_NamesASharedUnitOnce(t *testing.T) {
	for _, c := range []struct {
		low, high time.Duration
		want      string
	}{
		{34 * time.Second, 46 * time.Second, "34 to 46 s"},
		{5 * time.Second, 5 * time.Second, "5 s"},
		{45 * time.Second, 3 * time.Minute, "45 s to 3 min"},
		{4*time.Minute + 15*time.Second, 5*time.Minute + 45*time.Second, "4 min 15 s to 5 min 45 s"},
	} {
		if got := DurationRange(c.low, c.high); got != c.want {
			t.Errorf("durationRange(%v, %v) = %q, want %q", c.low, c.high, got, c.want)
		}
	}
}

func TestTenths_AreCutNotRounded(t *testing.T) {
	now := time.Date(2026, 3, 12, 14, 2, 11, 0, time.UTC)
	if got := ClockTenths(now.Add(990*time.Millisecond), now); got != "14:02:11.9" {
		t.Errorf("tenths = %q, want 14:02:11.9", got)
	}
	if got := ClockTenths(now.Add(-Day), now); got != "11 Mar 14:02:11.0" {
		t.Errorf("tenths of yesterday = %q, want 11 Mar 14:02:11.0", got)
	}
}

func TestWordsOfNumbers(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{InWords(0, "attempt", "attempts"), "no attempts"},
		{InWords(1, "run", "runs"), "one run"},
		{InWords(8, "attempt", "attempts"), "eight attempts"},
		{InWords(1204, "attempt", "attempts"), "1,204 attempts"},
		{UpperFirst("two runs"), "Two runs"},
		{Size(1), "1 byte"},
		{Size(412), "412 bytes"},
		{Size(12700), "12.4 KiB"},
		{Size(1 << 20), "1 MiB"},
		{FirstOf(64<<10, 70<<10), "The first 64 KiB of 70 KiB"},
		{FirstOf(64<<10, 64<<10+3), "The first 65,536 bytes of 65,539 bytes"},
		{FirstOf(64<<10, 64<<10), "The first 64 KiB of 64 KiB"},
		{Factor(2), "2"},
		{Factor(0.85), "0.85"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
}

func TestCoord_WritesWhatAFloatIsToItsDigits(t *testing.T) {
	for _, x := range []float64{0, 0.004, 0.05, 0.5, 1, 1.05, 1.5, 9.99, 9.996, 100, 12345.678, -0.5, -3, -7.25, 96.0 / 7} {
		exact := math.Round(x*100) / 100
		if got, want := Coord(x), strconv.FormatFloat(exact, 'f', -1, 64); got != want {
			t.Errorf("coord(%v) = %s, want %s", x, got, want)
		}
		rough := math.Round(x*10) / 10
		if got, want := Tenth(x), strconv.FormatFloat(rough, 'f', -1, 64); got != want {
			t.Errorf("tenth(%v) = %s, want %s", x, got, want)
		}
	}
}

func TestNumberOf_IsAsWideAsItsTotal(t *testing.T) {
	const figure, comma = "\u2007", "\u2008"
	for _, c := range []struct {
		n, total int
		want     string
	}{
		{5, 9, "5"},
		{9, 164, figure + figure + "9"},
		{10, 164, figure + "10"},
		{164, 164, "164"},
		{5, 1640, figure + comma + figure + figure + "5"},
		{1000, 12_640, figure + "1,000"},
		{11, 9, "11"}, // more than was known
	} {
		if got := NumberOf(c.n, c.total); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.n, c.total, got, c.want)
		}
	}
}
