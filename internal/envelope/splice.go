package envelope

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"redrive/internal/job"
	"redrive/internal/rawjson"
	"redrive/internal/retry"
)

// letterShape is the block dead_letter as BabelQueue documents it.
type letterShape struct {
	Reason        string  `json:"reason"`
	Error         *string `json:"error"`
	Exception     *string `json:"exception"`
	FailedAt      int64   `json:"failed_at"` // Unix milliseconds
	OriginalQueue string  `json:"original_queue"`
	Attempts      int     `json:"attempts"`
	Lang          string  `json:"lang"`
}

// Annotate returns the envelope with the block dead_letter, new or in the place
// of an earlier one, and with the letter's attempts. Attempts that are no count
// stay as they came. ok is false for bytes that are not_json: those cannot be
// annotated.
func Annotate(raw []byte, letter job.DeadLetter) (annotated []byte, ok bool) {
	d, problem := open(raw)
	if problem != "" {
		return nil, false
	}
	block := encode(letter)
	m, there := d.find("dead_letter")
	at := edit{m.value, m.to, block}
	if !there {
		at = d.append(`"dead_letter":` + block)
	}
	return d.splice(append(d.attempts(letter.Attempts), at)), true
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
	edited = d.splice([]edit{{m.value, m.to, string(data)}})
	frame := inside(raw)
	if body, framed := frame.find("body"); framed && string(frame.value("__bq_frame")) == "1" {
		return frame.splice([]edit{{body.value, body.to, quote(string(edited))}}), true
	}
	return edited, true
}

// quote writes a string as JSON, with nothing escaped that need not be.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // unreachable: every string can be written
		panic(fmt.Sprintf("envelope.quote(%q): %v", s, err))
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

func encode(l job.DeadLetter) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(letterShape{
		Reason: reasonWord(l.Reason), Error: orNull(l.Error), Exception: orNull(l.Exception),
		FailedAt: l.FailedAt.UnixMilli(), OriginalQueue: l.Queue, Attempts: l.Attempts, Lang: "go",
	}); err != nil { // unreachable: the block holds texts and numbers
		panic(fmt.Sprintf("envelope.encode(%+v): %v", l, err))
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
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

// edit puts a text in the place of raw[from:to].
type edit struct {
	from, to int
	text     string
}

func (d document) splice(edits []edit) []byte {
	slices.SortFunc(edits, func(a, b edit) int { return cmp.Compare(a.from, b.from) })
	var out []byte
	done := 0
	for _, e := range edits {
		out = append(append(out, d.raw[done:e.from]...), e.text...)
		done = e.to
	}
	return append(out, d.raw[done:]...)
}

// attempts is the edit that sets the attempts, if they are a count.
func (d document) attempts(n int) []edit {
	m, there := d.find("attempts")
	if !there {
		return nil
	}
	if _, ok := count(d.raw[m.value:m.to]); !ok {
		return nil
	}
	return []edit{{m.value, m.to, strconv.Itoa(n)}}
}

// append is the edit that adds a member after the last one.
func (d document) append(text string) edit {
	if len(d.members) == 0 {
		at := rawjson.Space(d.raw, 0) + 1
		return edit{at, at, text}
	}
	at := d.members[len(d.members)-1].to
	return edit{at, at, "," + text}
}

// remove is the edit that takes a member away, and the comma that joined it to
// its neighbour: the one before it, or else the one after it.
func (d document) remove(name string) []edit {
	i := slices.IndexFunc(d.members, func(m member) bool { return m.name == name })
	if i < 0 {
		return nil
	}
	from, to := d.members[i].from, d.members[i].to
	if i > 0 {
		from = rawjson.Space(d.raw, d.members[i-1].to)
	} else if len(d.members) > 1 {
		to = rawjson.Space(d.raw, to) + 1
	}
	return []edit{{from, to, ""}}
}
