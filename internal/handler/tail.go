package handler

import "strings"

// tail is a writer that keeps the last bytes of what is written to it.
type tail struct {
	limit int
	kept  []byte
	cut   bool
}

// Write never fails: a program is not to die of its own output.
func (t *tail) Write(p []byte) (int, error) {
	n := len(p)
	if n > t.limit {
		p, t.cut = p[n-t.limit:], true
	}
	t.kept = append(t.kept, p...)
	if len(t.kept) > 2*t.limit { // rarely, so that small writes stay cheap
		t.trim()
	}
	return n, nil
}

func (t *tail) trim() {
	if excess := len(t.kept) - t.limit; excess > 0 {
		t.kept, t.cut = append(t.kept[:0], t.kept[excess:]...), true
	}
}

// String returns what was kept, and says so when that is not everything.
func (t *tail) String() string {
	t.trim()
	if t.cut {
		return "[cut] …" + string(t.kept)
	}
	return string(t.kept)
}

// lastLine is the last line that says something.
func (t *tail) lastLine() string {
	text := strings.TrimSpace(string(t.kept))
	return strings.TrimSpace(text[strings.LastIndexByte(text, '\n')+1:])
}
