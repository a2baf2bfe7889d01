package sqlite

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// What the index is given of a text that changed holds every trigram that is new,
// and no more than the characters beside the change.
func TestChanged_HoldsEveryNewTrigram(t *testing.T) {
	for _, c := range []struct{ was, is, want string }{
		{"", "refused", "refused"},
		{"capture 7919: 503", "capture 15838: 503", "e 15838: "},
		{"503", "503 for good", "03 for good"},
		{"an old 503", "503", "50"},
		{"aaaa", "aaaaa", "aaa"},
		{"zürich: müde", "zürich: mürbe", "mürbe"},
	} {
		if got := changed(c.was, c.is); got != c.want {
			t.Errorf("from %q to %q: %q, want %q", c.was, c.is, got, c.want)
		}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	text := func() string {
		var b strings.Builder
		for range random.IntN(12) { // of the last three, two share their first byte and two their last
			b.WriteRune([]rune("aüéļ")[random.IntN(4)])
		}
		return b.String()
	}
	for range 10_000 {
		was, is := text(), text()
		for trigram := range trigramsOf(is) {
			if !strings.Contains(was, trigram) && !strings.Contains(changed(was, is), trigram) {
				t.Fatalf("from %q to %q: %q lacks %q", was, is, changed(was, is), trigram)
			}
		}
	}
}

func trigramsOf(text string) map[string]bool {
	all := map[string]bool{}
	runes := []rune(text)
	for i := range max(0, len(runes)-2) {
		all[string(runes[i:i+3])] = true
	}
	return all
}
