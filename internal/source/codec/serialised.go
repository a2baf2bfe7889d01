package codec

import (
	"bytes"
	"regexp"
	"strconv"
)

// depthOfSerialised is how deep PHP reads what it has serialised.
const depthOfSerialised = 4096

// serialisedObject returns the class of an object that PHP has serialised; ok is false for
// anything else, and for an object that is cut off or followed by something. PHP before 8.3
// would pass over what follows. Nothing is built of the object.
func serialisedObject(raw []byte) (class string, ok bool) {
	s := serialised{rest: raw}
	if !s.isOne() || (raw[0] != 'O' && raw[0] != 'C') {
		return "", false
	}

	s = serialised{rest: raw[len("O:"):]}
	name, _ := s.passQuoted()

	return string(name), true
}

// The forms of numbers.
var (
	integer = regexp.MustCompile(`^:[+-]?[0-9]+;`)
	float   = regexp.MustCompile(`^:(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?INF|NAN);`)
)

// serialised reads the text that PHP's serialize writes. Its methods report whether the
// text goes on as it should.
type serialised struct{ rest []byte }

// isOne reports whether the text is one value.
func (s *serialised) isOne() bool {
	var left []int // keys and values that are missing in each array or object that is open
	for {
		isKey := len(left) > 0 && left[len(left)-1]%2 == 0
		inside, isOpen, ok := s.value(isKey)
		if !ok || len(left) == depthOfSerialised && isOpen {
			return false
		}

		if isOpen {
			left = append(left, 2*inside)
		} else if len(left) > 0 {
			left[len(left)-1]--
		}

		// What has all of its members ends, and is a value of what it is in.
		for len(left) > 0 && left[len(left)-1] == 0 {
			if !s.take("}") {
				return false
			}

			left = left[:len(left)-1]
			if len(left) > 0 {
				left[len(left)-1]--
			}
		}

		if len(left) == 0 {
			return len(s.rest) == 0
		}
	}
}

// value passes a value that is no array and no object, or the beginning of one of these,
// which then is open and has so many members.
func (s *serialised) value(isKey bool) (members int, isOpen, ok bool) {
	if len(s.rest) == 0 {
		return 0, false, false
	}

	kind := s.rest[0]
	s.rest = s.rest[1:]

	// Keys are numbers or texts.
	if isKey && kind != 'i' && kind != 's' {
		return 0, false, false
	}

	switch kind {
	case 'N':
		return 0, false, s.take(";")
	case 'b':
		return 0, false, s.take(":0;") || s.take(":1;")
	// i:42; or r:2; which refers to another value.
	case 'i', 'r', 'R':
		return 0, false, s.passNumber(integer)
	case 'd':
		return 0, false, s.passNumber(float)
	// s:5:"hello"; or E:11:"Suit:Hearts";
	case 's', 'E':
		_, ok := s.passText()
		return 0, false, ok && s.take(";")
	// a:1:{
	case 'a':
		members, ok := s.passCount()
		return members, true, ok && s.take("{")
	// O:8:"stdClass":1:{
	case 'O':
		ok := s.passClass()
		members, counted := s.passCount()
		return members, true, ok && counted && s.take("{")
	case 'C': // what it holds is written by the class itself
		ok := s.passClass()
		size, counted := s.passCount()
		return 0, false, ok && counted && s.take("{") && s.skip(size) && s.take("}")
	}

	return 0, false, false
}

// take passes a text.
func (s *serialised) take(text string) (ok bool) {
	s.rest, ok = bytes.CutPrefix(s.rest, []byte(text))
	return ok
}

// skip passes so many bytes.
func (s *serialised) skip(n int) bool {
	if n > len(s.rest) {
		return false
	}

	s.rest = s.rest[n:]

	return true
}

// passNumber passes a number of a form, with its colon and its semicolon.
func (s *serialised) passNumber(form *regexp.Regexp) bool {
	found := form.Find(s.rest)
	s.rest = s.rest[len(found):]
	return found != nil
}

// passCount passes a count between two colons.
func (s *serialised) passCount() (n int, ok bool) {
	if !s.take(":") {
		return 0, false
	}

	digits, rest, found := bytes.Cut(s.rest, []byte(":"))
	s.rest = rest
	n, ok = decimal(digits)

	return n, ok && found
}

// decimal is a count that is written in digits.
func decimal(digits []byte) (n int, ok bool) {
	const most = 10 // digits
	if len(digits) > most {
		return 0, false
	}

	count, err := strconv.ParseUint(string(digits), 10, 30)

	return int(count), err == nil
}

// passText passes a colon and a text with its length in bytes.
func (s *serialised) passText() ([]byte, bool) {
	if !s.take(":") {
		return nil, false
	}
	return s.passQuoted()
}

// passQuoted passes the length of a text, and the text in its quotes.
func (s *serialised) passQuoted() (text []byte, ok bool) {
	digits, rest, found := bytes.Cut(s.rest, []byte(`:"`))
	size, ok := decimal(digits)
	if !found || !ok || size > len(rest) {
		return nil, false
	}

	text, s.rest = rest[:size], rest[size:]

	return text, s.take(`"`)
}

// passClass passes a colon and the name of a class.
func (s *serialised) passClass() bool {
	name, ok := s.passText()
	if !ok || len(name) == 0 || name[0] == '\\' {
		return false
	}

	for _, c := range name {
		isLetter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
		if !isLetter && c != '_' && c != '\\' && (c < '0' || c > '9') {
			return false
		}
	}

	return true
}
