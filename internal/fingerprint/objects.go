package fingerprint

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Languages print the objects of a program in their messages, with all their fields:
//
//	#<User id: 7, admin: false, bio: nil>      Ruby
//	User(id=7, admin=False, bio=None)          Python, Kotlin
//	User{id=7, admin=false}, User[id=7]        Java
//	{ID:7 Name:Ana Lee Admin:false Bio:<nil>}  Go, also after & and map
//	User { id: 7, bio: None, tags: Some(3) }   Rust, JavaScript
//	%User{id: 7, bio: nil}, [id: 7, bio: nil]  Elixir
//	{:id=>7, "bio"=>nil}                       Ruby
//
// What is in them is of the job, even where it has no quotes, apart from a field that says
// what went wrong. The objects of JSON, whose names are quoted, are read as any other text.

// maxObject is how long a printed object may be.
const maxObject = maxInput

// maxTried is how many brackets of a message are read as objects: a message of nothing but
// brackets is read in the time of any other.
const maxTried = 32

// telling are the fields whose values tell of the error, sorted, in small letters.
var telling = strings.Fields(`caused_by cause code err errno error errors exception kind message msg problem reason sqlstate syscall`)

func init() { slices.Sort(telling) }

// object takes over the printed object whose bracket stands at the place that was reached;
// false: none does.
func (n *scanner) object() bool {
	closing, head := n.opens()
	if closing == 0 || n.tried == maxTried {
		return false
	}

	n.tried++
	from := n.pos + head

	r := fieldReader{in: n.in[from:min(len(n.in), from+maxObject)], closing: closing}
	fields, length := r.read()
	if len(fields) == 0 || closing == ']' && len(fields) == 1 && fields[0].separator == ": " {
		return false
	}

	class, _, _ := strings.Cut(n.in[n.pos:from], ":0x") // of Ruby, with an address
	n.out = append(n.out, class...)
	if head > 1 {
		n.out = append(n.out, ' ')
	}

	n.out = append(n.out, text...)
	for _, f := range fields {
		if f.tells() {
			n.out = append(n.out, ", "+f.name+f.separator+f.said()...)
		}
	}

	n.pos = from + length

	return true
}

// opens returns how an object ends that can begin at the place that was reached, and how
// long it is up to its first field.
func (n *scanner) opens() (closing byte, head int) {
	before := at(n.in, n.pos-1)
	switch n.in[n.pos] {
	case '{':
		return '}', 1
	case '[':
		return ']', 1
	case '(':
		if isWord(before) {
			return ')', 1
		}
	case '<':
		if before == '#' {
			return '>', 1 + run(n.in[n.pos+1:], func(c byte) bool { return isWord(c) || c == ':' || c == '.' })
		}
	}

	return 0, 0
}

// field is a field of a printed object.
type field struct{ name, separator, value string }

// tells reports whether a field says what went wrong.
func (f field) tells() bool {
	_, tells := slices.BinarySearch(telling, strings.ToLower(strings.Trim(f.name, ":@")))
	return tells
}

// said is what the value of a field says, without the values in it: a code as it is, and a
// quoted text only if it tells of an error.
func (f field) said() string {
	inside := strings.Trim(f.value, "\"'`")

	isCode := slices.Contains(coded[:], strings.ToLower(strings.Trim(f.name, ":@")))
	word := run(inside, func(c byte) bool { return isWord(c) && c < utf8.RuneSelf || c == '-' })
	switch {
	case isCode && len(inside) <= maxCode && word == len(inside):
		return inside
	case inside != f.value && !tellsError(inside):
		return text
	}

	value := scanner{in: inside, close: -1, tried: maxTried}

	return value.all()
}

// coded are the fields that have the code of an error.
var coded = [...]string{"code", "errno", "sqlstate", "syscall"}

const maxCode = 24

// fieldReader reads the fields of a printed object, whose text begins after its bracket.
type fieldReader struct {
	in      string
	pos     int
	closing byte
}

// read returns the fields up to the closing bracket, or to the end of a text that was cut,
// and how much of the text they take. It returns none for what has no fields.
func (r *fieldReader) read() (fields []field, end int) {
	for {
		r.skip(" \t\n,")

		f, ok := r.named()
		if !ok {
			break
		}

		f.value = strings.TrimSpace(r.value(f.separator))
		fields = append(fields, f)
	}

	r.skip(" \t\n,")

	if r.pos < len(r.in) && r.in[r.pos] != r.closing {
		return nil, 0 // something else follows: it is no object
	}

	return fields, r.pos
}

func (r *fieldReader) skip(set string) {
	for r.pos < len(r.in) && strings.IndexByte(set, r.in[r.pos]) >= 0 {
		r.pos++
	}
}

// separators stand between the name of a field and its value.
var separators = [...]string{" => ", "=>", ": ", ":", "="}

// named reads the name of a field and what separates it from its value.
func (r *fieldReader) named() (f field, ok bool) {
	rest := r.in[r.pos:]
	length := 0
	if strings.HasPrefix(rest, ":") || strings.HasPrefix(rest, "@") { // a symbol or a variable of Ruby
		length = 1
	}

	word := run(rest[length:], func(c byte) bool { return isWord(c) || c == '.' || c == '?' })
	if word == 0 || isDigit(rest[length]) {
		return field{}, false
	}

	length += word
	for _, separator := range separators {
		if strings.HasPrefix(rest[length:], separator) && !strings.HasPrefix(rest[length:], "://") {
			r.pos += length + len(separator)
			return field{name: rest[:length], separator: separator}, true
		}
	}

	return field{}, false
}

// value reads up to the comma or the bracket behind a value. Go separates fields with
// spaces only: there, the next name ends a value, too.
func (r *fieldReader) value(separator string) string {
	from, depth := r.pos, 0
	for r.pos < len(r.in) {
		c := r.in[r.pos]
		switch {
		case c == '"' || c == '\'' || c == '`':
			if length := quoted(r.in, r.pos); length > 0 {
				r.pos += length
				continue
			}
		case c == '>' && strings.IndexByte("=-", at(r.in, r.pos-1)) >= 0: // an arrow
		case strings.IndexByte("([{<", c) >= 0:
			depth++
		case depth > 0 && strings.IndexByte(")]}>", c) >= 0:
			depth--
		case depth == 0 && (c == ',' || c == r.closing):
			return r.in[from:r.pos]
		case depth == 0 && c == ' ' && separator == ":" && r.nameFollows():
			return r.in[from:r.pos]
		}

		r.pos++
	}

	return r.in[from:]
}

// nameFollows reports whether the next field of Go begins behind a space.
func (r *fieldReader) nameFollows() bool {
	rest := r.in[r.pos+1:]
	length := run(rest, isWord)
	return length > 0 && at(rest, length) == ':' && at(rest, length+1) != ':'
}

// literals are the values that languages write without quotes.
var literals = [...]string{"true", "false", "null", "nil", "None", "True", "False", "undefined", "NaN", "NULL"}

// literal reports whether a word at the place that was reached is the value of a field of
// JSON, or of a setting: "paid":true, paid=true.
func (n *scanner) literal(word string) bool {
	if !slices.Contains(literals[:], word) {
		return false
	}

	before := strings.TrimRight(n.in[max(0, n.pos-4):n.pos], " ")

	return strings.HasSuffix(before, `":`) || strings.HasSuffix(before, "=") || strings.HasSuffix(before, "=>")
}
