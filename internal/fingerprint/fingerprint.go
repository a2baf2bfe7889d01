// Package fingerprint tells failures with one cause from others.
//
// A failure is known by its fingerprint: 64 bits of a hash over the type of
// the job, the error's class, its message without what differs from job to job,
// and the top frames of its trace. Two failures with the same fingerprint form
// a group, and one look at one of them explains all.
//
// # Messages
//
// [Normalise] replaces ids, numbers, times, addresses and quoted values by
// placeholders such as ‹uuid› and ‹number›. When in doubt it replaces: a group
// that holds two causes is split by its frames, but a cause that is spread over
// ten thousand groups is never seen. What is the cause stays: the status of an HTTP
// answer ("503 Service Unavailable"), the names of JSON fields, names of the code
// and of the schema (column "amount"), and a quoted text that tells of an error
// itself. What databases append to an error, the statement and its values, is left out.
//
// The fingerprint knows less than the message shows: which kind of value was
// replaced, and the class with which a sentence begins, make no other cause. See
// [essence].
//
// How well this does is measured: testdata holds error texts under the causes that a
// person would put them into, and a test computes precision and recall of all pairs.
//
// # Traces
//
// [frames] knows how Go, Python, Java, JavaScript, PHP, Ruby and .NET write
// theirs, by the form of each line, and takes the names of the innermost
// functions without line numbers and addresses: those change with each release,
// and the cause does not. Frames of the program itself count, as far as their places
// tell, but not where it begins; those of libraries only below a message that says
// nothing. Any other text gives the files that it names with a line.
//
// # Bounds
//
// Whatever comes in, a kilobyte of the message and a part of the trace are
// read, once and without regular expressions: some ten microseconds for each
// failure, spent beside the database's writer. The package does no input or
// output and keeps nothing.
package fingerprint

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"
)

// Cause is what failures with one cause have in common.
type Cause struct {
	Fingerprint string   // 16 hexadecimal digits; empty: no failure
	Class       string   // the error's type
	Message     string   // normalised
	Frames      []string // the top ones of the trace, the innermost first; at most [MaxFrames]
}

// The bounds of a cause, in bytes.
const (
	maxMessage = 400 // of the normalised message
	MaxFrames  = 3   // not bytes
	maxFrame   = 160
	maxClass   = 255
)

// Of returns the cause of a failure: of a job of the type typ, with an error
// of the class, its message and its trace.
func Of(typ, class, message, trace string) Cause {
	c := Cause{Class: clip(class, maxClass), Message: Normalise(message)}
	if !tellsShortage(message) {
		c.Frames = frames(trace, speaks(c.Message))
	}

	c.Fingerprint = c.fingerprint(typ)

	return c
}

// shortages are what a machine or a process runs out of, in small letters.
var shortages = [...]string{
	"no space left on device", "there is not enough space on the disk", "disk quota exceeded", "disk full", "too many open files",
	"java heap space", "gc overhead limit exceeded", "java.lang.outofmemoryerror", "system.outofmemoryexception", "heap out of memory",
	"allowed memory size of", "cannot allocate memory", "failed to allocate memory", "memoryerror",
}

// tellsShortage reports whether a message says that something ran out. Which function asked
// for more just then is chance.
func tellsShortage(message string) bool {
	lower := strings.ToLower(clip(message, maxInput))
	for _, shortage := range shortages {
		if strings.Contains(lower, shortage) {
			return true
		}
	}

	return false
}

// speaks reports whether a normalised message is a sentence: two words or more are left
// beside its class and the values that were replaced.
func speaks(message string) bool {
	words := 0
	for word := range strings.FieldsSeq(essence(message)) {
		word = strings.TrimRight(word, ".:,")
		isName := strings.ContainsAny(word, ".:") || isClass(word)
		if run(word, isLetter) > 1 && !isName {
			words++
		}
	}

	return words > 1
}

// fingerprint hashes every part with an end that no part contains.
func (c Cause) fingerprint(typ string) string {
	text := make([]byte, 0, 512)
	for _, part := range append([]string{typ, c.Class, essence(c.Message)}, c.Frames...) {
		text = append(append(text, part...), 0)
	}

	sum := sha256.Sum256(text)

	return hex.EncodeToString(sum[:8])
}

// Replaced lists what was replaced in the message: each placeholder once, and
// what it stands for.
func (c Cause) Replaced() []Placeholder {
	var all []Placeholder
	for _, p := range Placeholders() {
		if strings.Contains(c.Message, p.Name) {
			all = append(all, p)
		}
	}

	return all
}

// Placeholder is what stands for values that differ from job to job.
type Placeholder struct{ Name, Meaning string }

// Placeholders lists them all.
func Placeholders() []Placeholder {
	return []Placeholder{
		{text, "a quoted value"}, {number, "a number"}, {id, "an id"}, {uuid, "a UUID"}, {hexa, "a hexadecimal value"},
		{moment, "a time"}, {duration, "a duration"}, {size, "a size in bytes"}, {url, "a URL"}, {host, "a host"}, {path, "a path"},
		{email, "an e-mail address"}, {ip, "an IP address"},
	}
}

const (
	text     = "‹text›"
	number   = "‹number›"
	id       = "‹id›"
	uuid     = "‹uuid›"
	hexa     = "‹hex›"
	moment   = "‹time›"
	duration = "‹duration›"
	size     = "‹size›"
	url      = "‹url›"
	path     = "‹path›"
	email    = "‹email›"
	ip       = "‹ip›"
	host     = "‹host›"
)

// maxInput is how much of a message is read.
const maxInput = 1000

// Normalise returns a message with everything that differs from job to job
// replaced by placeholders, on one line.
func Normalise(message string) string {
	s := clip(message, maxInput)
	if len(s) < len(message) { // the last word may be cut: it would differ
		s = s[:strings.LastIndexAny(s, " \n\t")+1] + "…"
	}

	s = withoutStatement(s)
	n := scanner{in: s, out: make([]byte, 0, len(s)+64), close: -1}
	n.values, n.named = schemaNames(s)

	return clip(n.all(), maxMessage)
}

// clip returns the beginning of s, as valid UTF-8 of at most limit bytes.
func clip(s string, limit int) string {
	if len(s) > limit {
		for limit > 0 && !utf8.RuneStart(s[limit]) {
			limit--
		}

		s = s[:limit]
	}

	return strings.ToValidUTF8(s, "\uFFFD")
}

// appended are the marks with which databases and the libraries before them begin
// what follows an error: details with values, the statement, its parameters.
var appended = [...]string{
	"\nDETAIL:", "\nHINT:", "\nCONTEXT:", "\nWHERE:",
	"\n  Detail:", "\n  Hint:", "\n  Where:", "[SQL: ", " (Connection: ", " (SQL: ", "\nThe SQL being executed was: ",
}

// withoutStatement is a message up to the first of those marks.
func withoutStatement(s string) string {
	for _, mark := range appended {
		if i := strings.Index(s, mark); i > 0 {
			s = s[:i]
		}
	}

	return s
}

// scanner reads a message once, from its beginning to its end.
type scanner struct {
	in    string
	pos   int
	out   []byte
	close int // where the quote ends that is being read like any other text
	tried int // how many brackets were read as objects

	named  bool // quotes hold names of the schema of a database
	values int  // but for so many of the next
}

// all reads the whole message.
func (n *scanner) all() string {
	for n.pos < len(n.in) {
		n.step()

		// A value that is too long to be read whole can end within a character.
		for n.pos < len(n.in) && !utf8.RuneStart(n.in[n.pos]) {
			n.pos++
		}
	}

	return strings.TrimSpace(string(n.out))
}

// step takes over the next thing of the message, or what stands for it.
func (n *scanner) step() {
	rest := n.in[n.pos:]
	if c := rest[0]; c <= ' ' || c == 0x7f {
		n.pos++
		if len(n.out) > 0 && n.out[len(n.out)-1] != ' ' {
			n.out = append(n.out, ' ')
		}

		return
	}

	if length := foreignQuote(rest); length > 0 { // before the words: its bytes are those of letters
		n.foreignQuote(length)
		return
	}

	if strings.IndexByte("{[(<", rest[0]) >= 0 && n.object() {
		return
	}

	if (n.pos == 0 || !isWord(n.in[n.pos-1])) && n.value() {
		return
	}

	if !isWord(rest[0]) {
		n.keep(1)
		return
	}

	n.word(untilQuote(rest))
}

// value takes over what begins here and is more than a word; false: it is none.
func (n *scanner) value() bool {
	if length := codeLength(n.in, n.pos); length > 0 {
		n.keep(length)
		return true
	}

	if length := quoted(n.in, n.pos); length > 0 && n.pos != n.close {
		n.quote(length)
		return true
	}

	for _, m := range matchers {
		if length := m.match(n.in, n.pos); length > 0 {
			n.replace(length, m.as)
			return true
		}
	}

	return false
}

// quote takes over a text in quotes: a name, a sentence that is read on, or else
// a value.
func (n *scanner) quote(length int) {
	inside, end := n.in[n.pos+1:n.pos+length-1], n.pos+length
	switch {
	case isMethod(inside) && isMethodBefore(n.in[:n.pos]):
		n.pos = end
		n.out = append(append(append(n.out, '\''), inside...), '\'')
	case isName(inside) && (n.schemaName() || namedBefore(n.in[:n.pos]) || !strings.Contains(inside, ".") && namedAfter(n.in[end:])):
		n.pos++
		n.out = append(n.out, '\'')
		for n.pos < end-1 {
			if length := wordLength(n.in[n.pos : end-1]); length > 0 {
				n.word(length)
			} else {
				n.keep(1)
			}
		}

		n.pos = end
		n.out = append(n.out, '\'')
	case tellsError(inside):
		n.close = end - 1
		n.keep(1)
	default:
		n.replace(length, text)
	}
}

// foreignQuote takes over a text in quotes that are not ASCII: a name that a database
// says, or else a value.
func (n *scanner) foreignQuote(length int) {
	inside := strings.Trim(n.in[n.pos:n.pos+length], "«»„“”‘’「」『』 \u00a0\u202f")
	if isName(inside) && n.schemaName() {
		n.out = append(append(append(n.out, '\''), inside...), '\'')
		n.pos += length
		return
	}

	n.replace(length, text)
}

// schemaName reports whether the quote that was reached holds a name of the schema of a
// database, which says so.
func (n *scanner) schemaName() bool {
	if n.values > 0 {
		n.values--
		return false
	}

	return n.named
}

func (n *scanner) keep(length int) {
	n.out = append(n.out, n.in[n.pos:n.pos+length]...)
	n.pos += length
}

// replace writes a placeholder, and one only for a list of such values: lists
// differ in their lengths.
func (n *scanner) replace(length int, as string) {
	n.pos += length
	end := string(n.out[max(0, len(n.out)-len(as)-2):])
	for _, separator := range [...]string{", ", ",", " "} {
		if strings.HasSuffix(end, as+separator) {
			n.out = n.out[:len(n.out)-len(separator)]
			return
		}
	}

	n.out = append(n.out, as...)
}

// word takes over a word: ids as a whole, and of any other the letters, because
// the digits of "user42" and "attempt_3" differ.
func (n *scanner) word(length int) {
	if n.literal(n.in[n.pos : n.pos+length]) {
		n.replace(length, text)
		return
	}

	end := n.pos + length
	for n.pos < end {
		part := n.in[n.pos:end]
		if i := strings.IndexByte(part, '_'); i >= 0 {
			part = part[:max(1, i)]
		}

		if isID(part) {
			n.replace(len(part), id)
			continue
		}

		digits := run(part, isDigit)
		if digits > 0 {
			n.replace(digits, number)
			continue
		}

		n.keep(run(part, func(c byte) bool { return !isDigit(c) }))
	}
}

// isID reports whether a word is made by chance: its letters and digits, and
// its cases, change too often for a name, or it is digits for the most part.
func isID(s string) bool {
	if len(s) < 10 {
		return false
	}

	switches, digits := 0, 0
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}

		if isDigit(s[i]) {
			digits++
		}

		if i == 0 {
			continue
		}

		before, now := kind(s[i-1]), kind(s[i])
		if before != now && !(before == 'A' && now == 'a') { // as a name begins
			switches++
		}
	}

	return switches*3 >= len(s) || digits < len(s) && digits*2 >= len(s)
}

// kind is '0' for a digit, 'A' for an upper-case letter, 'a' for anything else.
func kind(c byte) byte {
	switch {
	case isDigit(c):
		return '0'
	case 'A' <= c && c <= 'Z':
		return 'A'
	}

	return 'a'
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F' }

func isLetter(c byte) bool { return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }

// isWord reports whether a byte is part of a word: any other language's letters
// are.
func isWord(c byte) bool { return isDigit(c) || isLetter(c) || c == '_' || c >= utf8.RuneSelf }

func wordLength(s string) int { return run(s, isWord) }

// run is how many bytes at the beginning of s are of a kind.
func run(s string, of func(byte) bool) int {
	for i := range len(s) {
		if !of(s[i]) {
			return i
		}
	}

	return len(s)
}

// at is the byte at a place, 0 outside.
func at(s string, i int) byte {
	if i < 0 || i >= len(s) {
		return 0
	}
	return s[i]
}
