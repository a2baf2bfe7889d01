package plaintext

import (
	"encoding/json"
	"slices"
	"strings"
)

// CutMark is the end of a text of which the rest is missing, see [Complete].
const CutMark = "… [cut]"

// CutBeginning stands before the end of an output of which the beginning is missing.
const CutBeginning = "[cut] …"

// Complete makes a JSON document of the beginning of one: it leaves out a name, a number
// or a word that is not whole, ends a text that is not with [CutMark], and closes what is
// open. It returns ok=false for what is not the beginning of an object or a list.
func Complete(cut []byte) (whole []byte, ok bool) {
	var r cutReader
	r.read(cut)

	if r.safe == 0 {
		return nil, false
	}

	whole = slices.Clone(cut[:r.safe])
	if r.inText {
		whole = append(whole, CutMark+`"`...)
	}

	for _, open := range slices.Backward(r.open) {
		if open == '{' {
			whole = append(whole, '}')
		} else {
			whole = append(whole, ']')
		}
	}

	return whole, json.Valid(whole)
}

// cutReader follows a document up to where it can be completed.
type cutReader struct {
	open   []byte // the brackets around the place that was reached
	safe   int    // what comes before it can be kept; zero: nothing
	inText bool   // the text before safe has no end
}

// read goes through the document once. It stops where the document ends or is malformed:
// nothing after the last safe place is used, and brackets open and close at safe places
// only, so that open belongs to safe.
func (r *cutReader) read(s []byte) {
	name := false // a text that comes next is a name
	i := 0
	for i < len(s) {
		switch c := s[i]; {
		case c == '{' || c == '[':
			r.open = append(r.open, c)
			i++
			r.safe, name = i, c == '{'
		case c == '}' || c == ']':
			if len(r.open) == 0 || (c == '}') != (r.open[len(r.open)-1] == '{') {
				return
			}

			r.open = r.open[:len(r.open)-1]
			i++
			r.safe = i
		case len(r.open) == 0 && c > ' ': // behind the document, or no document
			return
		case c == ',':
			i++
			name = r.open[len(r.open)-1] == '{'
		case c == ':':
			i++
			name = false
		case c == '"':
			end, closed := textEnd(s, i+1)
			if !name {
				r.safe, r.inText = end, !closed
			}

			if !closed {
				return
			}

			i = end
		case c <= ' ':
			i++
		default:
			end := i
			for end < len(s) && strings.IndexByte(",:{}[]\" \t\r\n", s[end]) < 0 {
				end++
			}

			if end == len(s) {
				return // a number or a word may go on
			}

			if !name {
				r.safe = end
			}

			i = end
		}
	}
}

// textEnd is the index behind the text whose first character is at i. That of a text that
// is not closed leaves out an escape that is not whole.
func textEnd(s []byte, i int) (end int, closed bool) {
	for i < len(s) {
		switch {
		case s[i] == '"':
			return i + 1, true
		case s[i] != '\\':
			i++
		case i+1 < len(s) && s[i+1] == 'u':
			if i+6 > len(s) {
				return i, false
			}

			i += 6
		case i+1 < len(s):
			i += 2
		default:
			return i, false
		}
	}

	return i, false
}
