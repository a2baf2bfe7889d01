package templates

import "testing"

func TestPips_FitTheirBox(t *testing.T) {
	for _, test := range []struct{ used, limit, drawn, filled int }{
		{0, 1, 1, 0}, {5, 5, 5, 5}, {3, 8, 8, 3}, {10, 10, 10, 10}, {7, 3, 3, 3}, {0, -1, 0, 0},
	} {
		pips := pipsOf(test.used, test.limit)
		filled := 0
		for _, p := range pips {
			if p.used {
				filled++
			}
		}
		if len(pips) != test.drawn || filled != test.filled {
			t.Errorf("pipsOf(%d, %d) draws %d of %d, want %d of %d", test.used, test.limit, filled, len(pips), test.filled, test.drawn)
		}
	}
}
