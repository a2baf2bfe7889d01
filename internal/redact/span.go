package redact

// span is a part of a text, from one byte up to another. The zero value is none.
type span struct{ from, to int }

// empty reports whether nothing is in it.
func (p span) empty() bool { return p.from >= p.to }

// len is how many bytes are in it.
func (p span) len() int { return p.to - p.from }

// in is the part of the text.
func (p span) in(s string) string { return s[p.from:p.to] }
