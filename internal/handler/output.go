package handler

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"redrive/internal/plaintext"
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

	tooMany := n - 2*t.limit
	if tooMany > 0 {
		p = p[tooMany:]
		t.cut = true
	}

	t.kept = append(t.kept, p...)
	if len(t.kept) > 4*t.limit { // not each time, so that small writes stay cheap
		t.trim()
	}

	return n, nil
}

func (t *tail) trim() {
	tooMany := len(t.kept) - 2*t.limit
	if tooMany > 0 {
		t.kept = append(t.kept[:0], t.kept[tooMany:]...)
		t.cut = true
	}
}

// wholeCharacters is what is kept without the rest of a character whose beginning is lost,
// which would say that the output is not UTF-8.
func (t *tail) wholeCharacters() []byte {
	kept := t.kept
	for n := 0; t.cut && n < utf8.UTFMax && len(kept) > 0 && !utf8.RuneStart(kept[0]); n++ {
		kept = kept[1:]
	}

	return kept
}

// shown is the end of the output as a terminal shows it, without its secrets, and
// says so when that is not everything. Secrets are looked for before the output is
// cut. A line whose beginning is lost is not shown, because it cannot be told what
// the line is about. Its end can still be the name of a secret on the next line.
func (t *tail) shown(hide Hide) string {
	t.trim()

	lost, text := "", plaintext.Decode(t.wholeCharacters(), "")
	if text == "" { // binary data, in which words can be
		text = strings.ToValidUTF8(string(t.kept), "\uFFFD")
	}

	// What is left of the first line is not shown.
	if t.cut {
		end := strings.IndexAny(text, "\r\n")
		if end < 0 {
			return fmt.Sprintf(plaintext.CutBeginning+" one line of more than %d bytes; it is not shown, because its beginning is lost", 2*t.limit)
		}

		lost, text = plaintext.Plain(text[:end])+"\n", strings.TrimPrefix(text[end+1:], "\n")
	}

	text = lost + plaintext.Plain(text)

	from := max(len(lost), len(text)-t.limit)
	text = strings.ToValidUTF8(hide(text, from), "\uFFFD")
	if t.cut || from > 0 {
		return plaintext.CutBeginning + text
	}

	return text
}
