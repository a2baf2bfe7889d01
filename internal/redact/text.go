package redact

import (
	"strings"

	"redrive/internal/rawjson"
)

// Text hides the secrets of a text, as of an error or a trace, wherever a name
// stands before a value: key=value, "key": "value", key: value, ('key', 'value'),
// --key value, <key>value</key>, and so with each of = : " ' < > written as
// %3D, \u003d or &quot;. Hidden are also credentials of HTTP, those in addresses
// and command lines, private keys, tokens that show by their form what they are,
// and what [Redactor.Payload] hides by names in JSON inside the text. A value
// without quotes ends at the next blank, or with the lines below its name that are
// indented more.
func (r *Redactor) Text(s string) string { return r.TextFrom(s, 0) }

// TextFrom is the part of Text that begins at the byte from of s, or before it
// with the token of a secret that contains from.
func (r *Redactor) TextFrom(s string, from int) string {
	locks := r.find(s, Hidden, 0)
	if isCutOff(s) {
		locks = (&masker{redactor: r.ByKey(), token: Hidden}).document([]byte(s), nil)
	}

	// Secrets that end before the part are left out.
	for len(locks) > 0 && locks[0].To <= from {
		locks = locks[1:]
	}

	if len(locks) == 0 {
		return s[from:]
	}

	var b strings.Builder
	for _, l := range locks {
		b.WriteString(s[from:max(from, l.From)])
		b.Write(l.Text)
		from = l.To
	}

	b.WriteString(s[from:])

	return b.String()
}

// find returns where the secrets of a text are, in their order, and what is shown
// instead. The text is inside as many strings of JSON as nested says.
func (r *Redactor) find(s, token string, nested int) []lock {
	if !announces(s) {
		return nil
	}

	s, out := colourless(s)
	locks := r.inDocuments(s, token, nested)
	for _, at := range r.inText(s, nested) {
		locks = append(locks, lock{Edit: rawjson.Edit{From: at.from, To: at.to, Text: []byte(token)}})
	}

	locks = joined(locks, []byte(s), token)

	for i := range locks {
		l := &locks[i]
		at := out.places(span{l.From, l.To})
		l.From, l.To = at.from, at.to
	}

	return locks
}

// inText returns where the secrets are that stand behind names, or show by their form
// what they are.
func (r *Redactor) inText(s string, nested int) []span {
	text, foreign := asciiText(s)

	found := newScanner(r, text, nested).scan()
	if foreign == nil {
		return found
	}

	// Back to the characters that are written. A secret within the value before is not
	// extended, so that each part of the text is looked at once.
	end := 0
	for i := range found {
		at := foreign.places(found[i])
		if at.from >= end {
			at = withSpaces(s, at)
		}

		end = max(end, at.to)
		found[i] = at
	}

	return found
}

// announces reports whether a text has anything behind which a secret can stand,
// or can be a token itself.
func announces(s string) bool {
	return len(s) >= leastToken || strings.ContainsAny(s, `=: >%,&;|\@`) || !ascii(s)
}
