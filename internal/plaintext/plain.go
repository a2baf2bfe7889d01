// Package plaintext makes text of what a producer sent: [Decode] reads bytes in the encoding
// that they name, [Plain] shows what a terminal would, and [Complete] closes a JSON document
// of which the end is missing.
//
// It does no input or output, and takes time in proportion to its input.
package plaintext

import (
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Plain is a text as a person sees it on a terminal: without the sequences that colour it, set
// links and titles and move the cursor, without what backspaces take away and what is written
// over behind a carriage return. Characters that are made of several are composed.
func Plain(text string) string {
	if strings.ContainsFunc(text, isControl) {
		s := screen{in: text}
		s.read()
		text = s.out.String()
	}

	composed := norm.NFC.String(text)
	if len(composed) > len(text) { // rare: characters that Unicode wants in pieces
		return text
	}

	return composed
}

// The control characters that have a name in what follows.
const (
	escape = '\x1b'
	csi    = '\u009b' // one character for ESC [
	osc    = '\u009d' // one character for ESC ]
)

func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\t' || r == 0x7f || r == csi || r == osc
}

// screen reads a text line by line as a terminal does.
type screen struct {
	in  string
	out strings.Builder

	line []byte // what stands in the line that is being written
	over []byte // what stood there before a carriage return
}

func (s *screen) read() {
	for len(s.in) > 0 {
		r, size := utf8.DecodeRuneInString(s.in)

		char := s.in[:size]
		s.in = s.in[size:]
		switch {
		case r == '\n' || r == '\v' || r == '\f':
			s.endLine()
			s.out.WriteByte('\n')
		case r == '\r':
			s.carriageReturn()
		case r == '\b':
			_, last := utf8.DecodeLastRune(s.line)
			s.line = s.line[:len(s.line)-last]
		case r == escape:
			s.sequence()
		case r == csi:
			s.control()
		case r == osc:
			s.command()
		case isControl(r):
		case r == utf8.RuneError && size == 1: // what follows a byte that is no text must not complete it
			s.line = append(s.line, '?')
		default:
			s.line = append(s.line, char...)
		}
	}

	s.endLine()
}

// endLine writes the line, or what stood there before a carriage return if nothing that can be
// seen was written over it.
func (s *screen) endLine() {
	if isEmpty(s.line) && !isEmpty(s.over) {
		s.line, s.over = s.over, s.line
	}

	s.out.Write(s.line)
	s.line, s.over = s.line[:0], s.over[:0]
}

func (s *screen) carriageReturn() {
	if !isEmpty(s.line) {
		s.line, s.over = s.over[:0], s.line
		return
	}

	s.line = s.line[:0]
}

func isEmpty(line []byte) bool { return len(strings.TrimSpace(string(line))) == 0 }

// sequence leaves out what belongs to an ESC.
func (s *screen) sequence() {
	if s.in == "" {
		return
	}

	c := s.in[0]
	switch {
	case c == '[':
		s.in = s.in[1:]
		s.control()
	case strings.IndexByte("]PX^_", c) >= 0:
		s.in = s.in[1:]
		s.command()
	case c >= ' ' && c <= '/': // a set of characters: ESC ( B
		s.in = s.in[1:]
		if s.in != "" && s.in[0] >= '0' && s.in[0] <= '~' {
			s.in = s.in[1:]
		}
	case c >= '0' && c <= '~':
		s.in = s.in[1:]
	}
}

// control leaves out a control sequence. Those that move the cursor within the line or to
// another place do what comes close to it.
func (s *screen) control() {
	end := 0
	for end < len(s.in) && s.in[end] >= ' ' && s.in[end] <= '?' {
		end++
	}

	if end == len(s.in) || s.in[end] < '@' || s.in[end] > '~' {
		s.in = s.in[end:]
		return
	}

	parameters, final := s.in[:end], s.in[end]
	s.in = s.in[end+1:]
	switch {
	case final == 'C':
		s.line = append(s.line, ' ')
	case final == 'G' && strings.Trim(parameters, "01") == "":
		s.carriageReturn()
	case (final == 'H' || final == 'f') && !isEmpty(s.line):
		s.endLine()
		s.out.WriteByte('\n')
	}
}

// command leaves out a command to the terminal, which ends with BEL or ESC \, in front of the
// text of a link for example. One without an end ends with the line.
func (s *screen) command() {
	end := strings.IndexAny(s.in, "\a\x1b\n\u009c")
	if end < 0 {
		s.in = ""
		return
	}

	rest := s.in[end:]
	switch {
	case strings.HasPrefix(rest, "\x1b\\"):
		s.in = rest[2:]
	case rest[0] == '\a':
		s.in = rest[1:]
	case rest[0] == '\n' || rest[0] == escape:
		s.in = rest
	default:
		s.in = strings.TrimPrefix(rest, "\u009c")
	}
}
