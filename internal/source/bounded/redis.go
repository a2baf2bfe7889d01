package bounded

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"strconv"
	"strings"

	"redrive/internal/source"
)

// What a Redis may answer.
const (
	maxLine     = 64_000      // bytes of a line: an error, a number, a length
	maxBulk     = 512_000_000 // bytes of a value, as in Redis itself
	maxElements = 1_000_000   // of one answer
	maxNesting  = 16
	maxTogether = 16_000_000 // bytes that a driver gets before values are left out
	smallValue  = 4_000      // one that is never left out
)

// Redis is the protocol of Redis, in its versions 2 and 3.
func Redis(l *Line) Filter { return &redis{line: l} }

// redis follows the answers of a server. It is either in a line, or in a value of which so
// many bytes are missing.
type redis struct {
	line     *Line
	head     []byte    // of the line that is being read
	missing  int64     // bytes of a value, with the two that end it
	omitted  hash.Hash // of a value that is left out; nil: it passes
	size     int64     // of that value
	later    bool      // it is left out because there was much before it
	open     []int64   // elements that are missing, of each array around
	elements int64     // of this answer
	out      []byte
}

// Pass reads along.
func (r *redis) Pass(in []byte) ([]byte, error) {
	r.out = r.out[:0]
	for len(in) > 0 {
		// Within a value there are no lines: its bytes are counted.
		if r.missing > 0 {
			in = r.value(in)
			continue
		}

		end := 0
		for end < len(in) && in[end] != '\n' {
			end++
		}

		ended := end < len(in)
		if ended {
			end++
		}

		// A line may come in several pieces. Its beginning stays in head until the rest is
		// there.
		r.head = append(r.head, in[:end]...)
		if len(r.head) > maxLine {
			return nil, r.line.exceeded("it sent a line of more than %s", source.Size(maxLine))
		}

		in = in[end:]

		if !ended {
			break
		}

		if err := r.headed(); err != nil {
			return nil, err
		}

		r.head = r.head[:0]
	}

	// All that the driver got since the request began counts, not only these bytes.
	if r.line.keep(len(r.out)) > MaxAnswer {
		return nil, r.line.exceeded("it answered a request with more than %s", source.Size(MaxAnswer))
	}

	return r.out, nil
}

// value takes the next bytes of a value, and returns those after it.
func (r *redis) value(in []byte) []byte {
	n := min(int64(len(in)), r.missing)

	part := in[:n]
	r.missing -= n
	if r.omitted == nil {
		r.out = append(r.out, part...)
	} else {
		// The two bytes that end the value are none of it.
		own := max(0, min(n, n+r.missing-2))
		r.omitted.Write(part[:own])
	}

	if r.missing == 0 {
		r.valued()
	}

	return in[n:]
}

// valued ends a value. What stands in the place of one that was left out says how large it
// is and tells it from others.
func (r *redis) valued() {
	if r.omitted != nil {
		text := fmt.Sprintf("%s %t %d %x", r.line.marker, r.later, r.size, r.omitted.Sum(nil))
		r.out = fmt.Appendf(r.out, "$%d\r\n%s\r\n", len(text), text)
		r.omitted = nil
	}

	r.ended()
}

// headed reads a line that is whole: a small answer, or the head of a value or an array.
func (r *redis) headed() error {
	kind := r.head[0]
	switch kind {
	case '+', '-', ':', ',', '#', '_', '(':
		r.out = append(r.out, r.head...)
		r.ended()
		return nil
	case '$', '!', '=', '*', '~', '>', '%':
	default:
		return r.line.exceeded("its answer is not the protocol of Redis: %.40q", r.head)
	}

	text := strings.TrimSuffix(strings.TrimSuffix(string(r.head[1:]), "\n"), "\r")
	n, err := strconv.ParseInt(text, 10, 62) // twice the number, and a million more, is one too
	if err != nil || n < -1 {
		return r.line.exceeded("it announced a length that is none: %.40q", text)
	}

	switch {
	case n == -1:
		r.out = append(r.out, r.head...)
		r.ended()
		return nil
	case kind == '$' || kind == '!' || kind == '=':
		return r.bulk(kind, n)
	case kind == '%': // pairs
		n *= 2
	}

	return r.array(n)
}

// bulk begins a value.
func (r *redis) bulk(kind byte, n int64) error {
	// Only a plain value can be left out, so no other may be larger than a record.
	limit := int64(maxBulk)
	if kind != '$' {
		limit = source.MaxRecord
	}

	if n > limit {
		size, most := source.Sizes(n, limit)
		return r.line.exceeded("it announced a value of %s, and the limit is %s", size, most)
	}

	// Values are left out one by one, so that the others of the answer still come.
	r.missing = n + 2
	r.later = n > smallValue && r.line.keep(0)+int64(len(r.out))+n > maxTogether
	if kind == '$' && (n > source.MaxRecord || r.later) {
		r.omitted, r.size = sha256.New(), n

		// A value that is too large alone will not be read later either.
		r.later = r.later && n <= source.MaxRecord

		return nil
	}

	r.out = append(r.out, r.head...)

	return nil
}

// array begins an array of so many elements.
func (r *redis) array(n int64) error {
	r.elements += n
	if r.elements > maxElements {
		return r.line.exceeded("it announced %d elements in one answer, and the limit is %d", r.elements, maxElements)
	}

	if len(r.open) == maxNesting {
		return r.line.exceeded("it nested its answer more than %d levels deep", maxNesting)
	}

	r.out = append(r.out, r.head...)
	if n == 0 {
		r.ended()
	} else {
		r.open = append(r.open, n)
	}

	return nil
}

// ended ends an element, and the arrays whose last one it is.
func (r *redis) ended() {
	for len(r.open) > 0 {
		last := len(r.open) - 1
		r.open[last]--
		if r.open[last] > 0 {
			return
		}

		r.open = r.open[:last]
	}

	r.elements = 0
}

// Omitted is what is known of a value that was left out of an answer.
type Omitted struct {
	Size   int64
	Later  bool   // it can be read alone: there was much before it
	Digest string // SHA-256, in hexadecimal
}

// Omitted reports whether a text stands in the place of a value.
func (l *Line) Omitted(text string) (o Omitted, ok bool) {
	facts, ok := strings.CutPrefix(text, l.marker)
	if !ok {
		return o, false
	}

	n, err := fmt.Sscanf(facts, "%t %d %s", &o.Later, &o.Size, &o.Digest)

	return o, n == 3 && err == nil
}
