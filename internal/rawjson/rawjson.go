// Package rawjson reads JSON without decoding it, and changes it without
// encoding it again. What a decoder and an encoder would change, big numbers,
// 1.0, white space, the order of members and names that come twice, is kept to
// the byte by those who only need to know where a value begins and ends.
//
// The tokens come from jsontext, so that no code here has to know what a string
// or a number looks like. A [Cursor] goes through them one by one; [Members] and
// [Elements] list the parts of one value; [Splice] puts other text in the place
// of parts. They read as JSON what the standard library does: a name may come
// twice, and text may be invalid UTF-8. A caller that is stricter asks [Check],
// [HalfPair] and [Repeated].
package rawjson

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"sync"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Check says what is wrong with data that should be one JSON value in UTF-8, at
// most so many levels deep; nothing if it is that.
func Check(data []byte, levels int) (problem string) {
	if !utf8.Valid(data) {
		return "is not valid UTF-8"
	}

	if Depth(data) > levels {
		return fmt.Sprintf("is nested deeper than %d levels", levels)
	}

	if !Valid(data) {
		at := new(json.SyntaxError)
		err := json.Unmarshal(data, new(json.RawMessage)) // says it in words that people know
		errors.As(err, &at)
		return fmt.Sprintf("is not JSON: %v, at byte %d", err, at.Offset)
	}

	return ""
}

// Valid reports whether data is one JSON value.
func Valid(data []byte) bool {
	return jsontext.Value(data).IsValid(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Depth is how deep the deepest bracket is nested, as far as data is JSON.
func Depth(data []byte) (deepest int) {
	c := NewCursor(data)
	defer c.Close()

	for {
		if kind, _, _ := c.Next(); kind == 0 {
			return deepest
		}

		deepest = max(deepest, c.tokens.StackDepth())
	}
}

// HalfPair returns the first escape in valid JSON that is half of a surrogate
// pair, as "\ud800", or nothing. It is no character, and a decoder would silently
// make another one of it.
func HalfPair(data []byte) string {
	if bytes.IndexByte(data, '\\') < 0 {
		return ""
	}

	wrong := strictly(data, jsontext.AllowDuplicateNames(true))
	if wrong == nil {
		return ""
	}

	escape := data[wrong.ByteOffset:]

	return string(escape[:min(len(escape), len(`\ud800`))])
}

// Repeated returns the first name that stands twice in one object.
func Repeated(data []byte) (name string, ok bool) {
	wrong := strictly(data, jsontext.AllowInvalidUTF8(true))
	if wrong == nil || !errors.Is(wrong, jsontext.ErrDuplicateName) {
		return "", false
	}

	return wrong.JSONPointer.LastToken(), true
}

// strictly returns what jsontext has against data, if only one thing is allowed.
func strictly(data []byte, allowed jsontext.Options) *jsontext.SyntacticError {
	if jsontext.Value(data).IsValid(allowed) {
		return nil
	}

	wrong := new(jsontext.SyntacticError)
	if _, err := jsontext.NewDecoder(bytes.NewBuffer(data), allowed).ReadValue(); !errors.As(err, &wrong) {
		return nil
	}

	return wrong
}

// Text is what a string of JSON says, also one that is cut off. Of one that is
// not JSON it is what stands between the quotes, and of anything else all of it.
func Text(raw []byte) string {
	inside, quoted := bytes.CutPrefix(raw, []byte(`"`))
	if !quoted {
		return string(raw)
	}

	inside, closed := bytes.CutSuffix(inside, []byte(`"`))
	if closed && bytes.IndexByte(inside, '\\') < 0 && utf8.Valid(inside) {
		return string(inside)
	}

	text, err := jsontext.AppendUnquote(nil, raw)
	if err == nil || errors.Is(err, io.ErrUnexpectedEOF) || Valid(raw) {
		return string(text)
	}

	return string(inside)
}

// Quote writes a text as a string of JSON. What is not UTF-8 in it is replaced.
func Quote(text string) []byte {
	quoted, _ := jsontext.AppendQuote(nil, text)
	return quoted
}

// Encode writes a value that can be written as JSON, with nothing escaped that
// need not be.
func Encode(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)

	if err := e.Encode(v); err != nil { // the caller's fault
		panic(fmt.Sprintf("rawjson.Encode(%+v): %v", v, err))
	}

	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// Kind is the kind of the value that data begins with, see [Cursor.Peek].
func Kind(data []byte) byte {
	c := NewCursor(data)
	defer c.Close()

	kind, _ := c.Peek()

	return kind
}

// Member is a member of an object: its name begins at From, its value is that
// from Value to To.
type Member struct {
	Name            string
	From, Value, To int
}

// Members yields the members of the object that data is.
func Members(data []byte) iter.Seq[Member] {
	return func(yield func(Member) bool) {
		c := NewCursor(data)
		defer c.Close()

		c.Next()

		for {
			kind, from, named := c.Next()
			if kind != '"' {
				return
			}

			_, value := c.Peek()
			to, ok := c.Skip()
			if !ok || !yield(Member{Text(data[from:named]), from, value, to}) {
				return
			}
		}
	}
}

// Elements yields the elements of the array that data is.
func Elements(data []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		c := NewCursor(data)
		defer c.Close()

		c.Next()

		for {
			_, from := c.Peek()
			to, ok := c.Skip()
			if !ok || !yield(data[from:to:to]) {
				return
			}
		}
	}
}

// AfterValue returns the index after the value that begins at i.
func AfterValue(data []byte, i int) int {
	c := NewCursor(data[i:])
	defer c.Close()

	to, _ := c.Skip()

	return i + to
}

// Edit puts a text in the place of the bytes from From to To.
type Edit struct {
	From, To int
	Text     []byte
}

// Splice returns data with the edits, which come in their order.
func Splice(data []byte, edits iter.Seq[Edit]) []byte {
	var out []byte
	done := 0
	for e := range edits {
		out = append(append(out, data[done:e.From]...), e.Text...)
		done = e.To
	}

	return append(out, data[done:]...)
}

// Cursor goes through the tokens of a document, in their order. It stops where
// the document is cut off or no longer JSON, and never before: what it has passed
// by then is JSON as far as it goes. A cursor that is closed is used again, which
// spares a small document more than half of what it costs.
type Cursor struct {
	data   []byte
	end    int // of what it has passed
	source bytes.Buffer
	tokens jsontext.Decoder
}

var cursors = sync.Pool{New: func() any { return new(Cursor) }}

// NewCursor returns a cursor at the beginning of data.
func NewCursor(data []byte) *Cursor {
	c := cursors.Get().(*Cursor)
	c.data, c.end, c.source = data, 0, *bytes.NewBuffer(data)
	c.tokens.Reset(&c.source, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	return c
}

// Close gives the cursor back.
func (c *Cursor) Close() { cursors.Put(c) }

// Peek tells what comes next: a string '"', a number '0', null 'n', true 't',
// false 'f', or one of the brackets, and where it begins. Only its first byte has
// been looked at. The kind is 0 where nothing comes that is JSON.
func (c *Cursor) Peek() (kind byte, from int) {
	return known(c.tokens.PeekKind()), c.begin()
}

// Next passes a bracket, or another value, and tells where it is. The kind is 0
// where that is not JSON.
func (c *Cursor) Next() (kind byte, from, to int) {
	from = c.begin()

	token, err := c.tokens.ReadToken()
	c.end = int(c.tokens.InputOffset())
	if err != nil {
		return 0, from, c.end
	}

	return byte(token.Kind()), from, c.end
}

// Skip passes a value with all that is in it, and tells where it ends. It does
// not pass the end of the object or the array that it is in.
func (c *Cursor) Skip() (to int, ok bool) {
	_, err := c.tokens.ReadValue()
	c.end = int(c.tokens.InputOffset())
	return c.end, err == nil
}

// begin is where the next token begins.
func (c *Cursor) begin() int {
	for i := c.end; i < len(c.data); i++ {
		switch c.data[i] {
		case ' ', '\t', '\r', '\n', ',', ':':
		default:
			return i
		}
	}

	return len(c.data)
}

// known returns the kind of a token, if it is one of JSON.
func known(kind jsontext.Kind) byte {
	switch kind {
	case '{', '}', '[', ']', '"', '0', 'n', 't', 'f':
		return byte(kind)
	}

	return 0
}

// Beginning describes the JSON that a text begins with.
type Beginning struct {
	Whole  bool  // whether it is a complete value
	Len    int   // its length in bytes; of an incomplete value, as far as it is JSON
	Looked int   // how many bytes were read to find out
	Open   []int // the offsets of the brackets that an incomplete value leaves open, in order
}

// Prefix describes the JSON that data begins with.
func Prefix(data []byte) (b Beginning) {
	c := NewCursor(data)
	defer c.Close()

	for {
		from := c.begin()
		token, err := c.tokens.ReadToken()
		c.end = int(c.tokens.InputOffset())

		b.Len, b.Looked = c.end, c.end
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF): // an open string is read to its end
			b.Looked = len(data)
			return b
		case err != nil:
			return b
		}

		switch token.Kind() {
		case '{', '[':
			b.Open = append(b.Open, from)
		case '}', ']':
			b.Open = b.Open[:len(b.Open)-1]
		}

		if len(b.Open) == 0 {
			b.Whole = true
			return b
		}
	}
}
