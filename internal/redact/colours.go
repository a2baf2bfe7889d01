package redact

import (
	"cmp"
	"slices"
	"strings"
)

// colours are the sequences that were left out of a text, in their order.
type colours []colour

type colour struct {
	at      int  // where it stood in what is left
	gone    int  // how many bytes were left out up to there
	instead bool // what stands before it in what is left was put in its place
}

// colourless is a text without the sequences that colour it on a terminal. They
// part names from their values, which a person sees side by side.
func colourless(s string) (text string, out colours) {
	var b strings.Builder
	from := 0
	for k := strings.IndexByte(s, '['); k >= 0 && k < len(s); k = orEnd(s, k, strings.IndexByte(s[k:], '[')) {
		begin := escapeBefore(s[from:k])
		k++

		if begin < 0 {
			continue
		}

		// 1;31m
		end := k
		for end < len(s) && strings.IndexByte("0123456789;:", s[end]) >= 0 {
			end++
		}

		if end == len(s) || s[end] != 'm' && s[end] != 'K' { // K: up to the end of the line
			continue
		}

		b.WriteString(s[from : from+begin])
		from, k = end+1, end+1

		// From here on, places of the result are so many bytes further on in the text.
		out = append(out, colour{at: b.Len(), gone: from - b.Len()})
	}

	if out == nil {
		return s, nil
	}

	b.WriteString(s[from:])

	return b.String(), out
}

// escapeBefore is where the character ESC begins with which a text ends, however
// it is written, or -1. What tput prints before it resets colours belongs to it.
func escapeBefore(s string) int {
	for _, esc := range [...]string{"\x1b", `\u001b`, `\u001B`, `\x1b`, `\x1B`, `\e`, `\033`, `\u{1b}`} {
		before, ok := strings.CutSuffix(s, esc)
		if !ok {
			continue
		}

		if esc[0] == '\\' {
			before = strings.TrimRight(before, `\`) // of strings within one another
		}

		if chars, ok := strings.CutSuffix(before, "(B"); ok {
			if begin := escapeBefore(chars); begin >= 0 {
				return begin
			}
		}

		return len(before)
	}

	return -1
}

// place is where the byte i of what is left stands in the whole text.
func (c colours) place(i int) int {
	n, _ := slices.BinarySearchFunc(c, i+1, func(one colour, i int) int { return cmp.Compare(one.at, i) })
	if n == 0 {
		return i
	}

	return i + c[n-1].gone
}

// places is where a part of the remaining text is in the whole text.
func (c colours) places(at span) span {
	to := c.place(at.to-1) + 1
	if n, ok := slices.BinarySearchFunc(c, at.to, func(one colour, i int) int { return cmp.Compare(one.at, i) }); ok && c[n].instead {
		to = at.to + c[n].gone
	}

	return span{c.place(at.from), to}
}
