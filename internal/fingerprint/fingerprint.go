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
