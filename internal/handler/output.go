package handler

import (
	"fmt"
	"strings"
)

// tail is a writer that keeps the end of what is written to it: what is shown,
// and as much again before it, so that a secret of which only the end is shown is
// known by its beginning.
type tail struct {
	limit int // how much is shown
	kept  []byte
	cut   bool
}

// Write never fails: a program is not to die of its own output.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if excess := n - 2*t.limit; excess > 0 {
		p, t.cut = p[excess:], true
	}
	t.kept = append(t.kept, p...)
	if len(t.kept) > 4*t.limit { // not each time, so that small writes stay cheap
		t.trim()
	}
	return n, nil
}

func (t *tail) trim() {
	if excess := len(t.kept) - 2*t.limit; excess > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[excess:]...), true
	}
}

// shown is the end of the output without its secrets, and says so when that is
// not everything. Secrets are looked for before the output is cut. A line whose
// beginning is lost is not shown: nobody knows what it is about. Its end can still
// be the name of a secret on the next line.
func (t *tail) shown(hide Hide) string {
	t.trim()
	text := string(t.kept)
	from := max(0, len(text)-t.limit)
	if t.cut {
		lost := strings.IndexByte(text, '\n')
		if lost < 0 {
			return fmt.Sprintf("[cut] … one line of more than %d bytes; it is not shown, because its beginning is lost", 2*t.limit)
		}
		from = max(from, lost+1)
	}
	text = strings.ToValidUTF8(hide(text, from), "\uFFFD")
	if t.cut || from > 0 {
		return "[cut] …" + text
	}
	return text
}
