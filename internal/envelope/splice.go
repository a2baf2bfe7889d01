package envelope

import (
	"bytes"
	"cmp"
	"slices"
	"strconv"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
)

// deadLetterShape is the block dead_letter as BabelQueue documents it.
type deadLetterShape struct {
	Reason        string  `json:"reason"`
	Error         *string `json:"error"`
	Exception     *string `json:"exception"`
	FailedAt      int64   `json:"failed_at"` // Unix milliseconds
	OriginalQueue string  `json:"original_queue"`
	Attempts      int     `json:"attempts"`
	Lang          string  `json:"lang"`
}

// Annotate returns the envelope with the block dead_letter, new or in the place
// of an earlier one, and with the dead letter's attempts. Attempts that are no count
// stay as they came. ok is false for bytes that are not_json: those cannot be
// annotated.
func Annotate(raw []byte, deadLetter job.DeadLetter) (annotated []byte, ok bool) {
	d, problem := open(raw)
	if problem != "" {
		return nil, false
	}

	block := rawjson.Encode(blockOf(deadLetter))

	m, there := d.find("dead_letter")
	at := rawjson.Edit{From: m.Value, To: m.To, Text: block}
	if !there {
		at = d.append(`"dead_letter":` + string(block))
	}

	return d.splice(append(d.attempts(deadLetter.Attempts), at)), true
}

// Tried returns the envelope as a consumer sees it that has tried it so often:
// without the block dead_letter. With attempts 0 that is the envelope as it was
// before it failed. ok is false for bytes that are not_json.
func Tried(raw []byte, attempts int) (tried []byte, ok bool) {
	d, problem := open(raw)
	if problem != "" {
		return nil, false
	}

	return d.splice(append(d.attempts(attempts), d.remove("dead_letter")...)), true
}

// WithData returns the envelope with other data, which must be JSON. ok is false
// for bytes that are no envelope, or whose data has no place.
func WithData(raw, data []byte) (edited []byte, ok bool) {
	d, problem := open(raw)
	m, there := d.find("data")
	if problem != "" || !there {
		return nil, false
	}

	edited = d.splice([]rawjson.Edit{{From: m.Value, To: m.To, Text: data}})

	// An envelope that came in a frame stays in it.
	frame := inside(raw)
	if body, framed := frame.find("body"); framed && string(frame.value("__bq_frame")) == "1" {
		return frame.splice([]rawjson.Edit{{From: body.Value, To: body.To, Text: rawjson.Encode(string(edited))}}), true
	}

	return edited, true
}

func blockOf(l job.DeadLetter) deadLetterShape {
	return deadLetterShape{
		Reason: reasonWord(l.Reason), Error: orNull(l.Error), Exception: orNull(l.Exception),
		FailedAt: l.FailedAt.UnixMilli(), OriginalQueue: l.Queue, Attempts: l.Attempts, Lang: "go",
	}
}

// reasonWord is the word of BabelQueue for a reason. It has two of its own.
func reasonWord(r retry.Reason) string {
	switch r {
	case retry.AttemptsExhausted:
		return "failed"
	case retry.UnknownType:
		return "unknown_urn"
	}

	return string(r)
}

func orNull(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func (d document) splice(edits []rawjson.Edit) []byte {
	slices.SortFunc(edits, func(a, b rawjson.Edit) int { return cmp.Compare(a.From, b.From) })
	return rawjson.Splice(d.raw, slices.Values(edits))
}

// attempts is the edit that sets the attempts, if they are a count.
func (d document) attempts(n int) []rawjson.Edit {
	m, there := d.find("attempts")
	if !there {
		return nil
	}

	if _, ok := readCount(d.raw[m.Value:m.To]); !ok {
		return nil
	}

	return []rawjson.Edit{{From: m.Value, To: m.To, Text: []byte(strconv.Itoa(n))}}
}

// append is the edit that adds a member after the last one.
func (d document) append(text string) rawjson.Edit {
	at := bytes.IndexByte(d.raw, '{') + 1
	if n := len(d.members); n > 0 {
		at, text = d.members[n-1].To, ","+text
	}

	return rawjson.Edit{From: at, To: at, Text: []byte(text)}
}

// remove is the edit that takes a member away, and the comma that joined it to
// its neighbour: the one before it, or else the one after it.
func (d document) remove(name string) []rawjson.Edit {
	i := d.index(name)
	if i < 0 {
		return nil
	}

	from, to := d.members[i].From, d.members[i].To
	if i > 0 {
		from = d.comma(i - 1)
	} else if len(d.members) > 1 {
		to = d.comma(0) + 1
	}

	return []rawjson.Edit{{From: from, To: to}}
}

// comma returns where the comma after a member is.
func (d document) comma(i int) int {
	to := d.members[i].To
	return to + bytes.IndexByte(d.raw[to:], ',')
}
