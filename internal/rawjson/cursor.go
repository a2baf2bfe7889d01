package rawjson

import (
	"bytes"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
)

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

// Next passes a bracket, or another value, and tells where it lies. The kind is 0
// where that is not JSON.
func (c *Cursor) Next() (kind byte, from, to int) {
	from = c.begin()
	token, err := c.tokens.ReadToken()
	if c.end = int(c.tokens.InputOffset()); err != nil {
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
