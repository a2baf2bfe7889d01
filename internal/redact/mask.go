package redact

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"redrive/internal/rawjson"
)

// Hidden is what stands for a secret in a text. In a document a number follows.
const Hidden = "••••••"

// lock is a hidden value of a document, from to to in it.
type lock struct {
	at       Path
	from, to int
	mask     []byte // what is shown instead
}

// Mask hides the secrets of a document and says where they are. What is valid
// JSON stays valid.
func (r *Redactor) Mask(document []byte) (masked []byte, locked []Path) {
	locks := r.locks(document)
	for _, l := range locks {
		locked = append(locked, l.at)
	}
	return splice(document, locks), locked
}

// Payload hides the secrets of a document, also of the beginning of one.
func (r *Redactor) Payload(document []byte) []byte {
	if document == nil {
		return nil
	}
	return splice(document, r.locks(document))
}

// splice puts masks in the places of what they hide.
func splice(document []byte, locks []lock) []byte {
	if len(locks) == 0 {
		return document
	}
	var out []byte
	from := 0
	for _, l := range locks {
		out = append(append(out, document[from:l.from]...), l.mask...)
		from = l.to
	}
	return append(out, document[from:]...)
}

// locks finds the secrets of a document, in their order.
func (r *Redactor) locks(document []byte) []lock {
	start := rawjson.Space(document, 0)
	if !json.Valid(document) && (start == len(document) || document[start] != '{' && document[start] != '[') {
		return r.whole(document, 0, nil)
	}
	m := masker{redactor: r}
	end := m.run(document, nil, start)
	return r.whole(document, end, m.locks)
}

// whole adds what is hidden from an index on as text.
func (r *Redactor) whole(document []byte, from int, locks []lock) []lock {
	token := tokenOf(len(locks) + 1)
	if shown, n := r.hide(string(document[from:]), token); n > 0 {
		return append(locks, lock{"$", from, len(document), []byte(shown)})
	}
	return locks
}

// masker finds the secrets of JSON.
type masker struct {
	redactor *Redactor
	walker   walker
	locks    []lock
	nested   int    // strings of JSON around this document
	token    string // of the string around it
}

// maxNested is how many strings of JSON lie within one another at most. A
// deeper one is hidden.
const maxNested = 8

// run goes through the value at start, which stands at a path, and returns the
// index up to which it came.
func (m *masker) run(document []byte, at path, start int) int {
	m.walker = walker{data: document, at: at, visit: m.visit}
	end, _ := m.walker.value(start)
	return min(end, len(document))
}

func (m *masker) next() string {
	if m.token != "" {
		return m.token
	}
	return tokenOf(len(m.locks) + 1)
}

// visit hides the value at i, or lets the walker look into it.
func (m *masker) visit(i int) (deeper bool) {
	data := m.walker.data
	if m.isSecret() {
		if j := rawjson.AfterValue(data, i); j > i && !harmless(data[i:j]) {
			m.lock(i, j, m.next())
			return false
		}
	}
	if data[i] == '"' {
		m.search(i, rawjson.AfterString(data, i))
	}
	return true
}

func (m *masker) isSecret() bool {
	at := m.walker.at
	if n := len(at); n > 0 && !at[n-1].element && m.redactor.hides([]byte(at[n-1].name)) {
		return true
	}
	return slices.ContainsFunc(m.redactor.paths, func(p path) bool { return p.leads(at) })
}

// harmless reports whether a value can be no secret.
func harmless(raw []byte) bool {
	switch string(raw) {
	case "null", "true", "false", `""`, "{}", "[]":
		return true
	}
	return false
}

func (m *masker) lock(i, j int, shown string) {
	m.locks = append(m.locks, lock{Path(m.walker.at.String()), i, j, quote(shown)})
}

// search looks for secrets within a string.
func (m *masker) search(i, j int) {
	inside := text(m.walker.data[i:j])
	token := m.next()
	if start := rawjson.Space([]byte(inside), 0); start < len(inside) && strings.IndexByte("{[", inside[start]) >= 0 && json.Valid([]byte(inside)) {
		if m.nested == maxNested {
			m.lock(i, j, token)
			return
		}
		inner := masker{redactor: m.redactor, nested: m.nested + 1, token: token}
		inner.run([]byte(inside), slices.Clone(m.walker.at), start)
		if len(inner.locks) > 0 {
			m.lock(i, j, string(splice([]byte(inside), inner.locks)))
		}
		return
	}
	if shown, n := m.redactor.hide(inside, token); n > 0 {
		m.lock(i, j, shown)
	}
}

// tokenOf is what stands for the secret n of a document.
func tokenOf(n int) string { return Hidden + "#" + strconv.Itoa(n) }

// A Moved error says that a token stands where its secret has never been.
type Moved struct{ At Path }

func (e *Moved) Error() string {
	return fmt.Sprintf("%s holds %s, which stands for a secret at another place; write the value itself, or put things back as they were", e.At, Hidden)
}

// Merge returns the edited document with the secrets of the original in the
// places where their masks still stand. It returns a *Moved when a mask, or a
// part of one, stands anywhere else.
func (r *Redactor) Merge(edited, original []byte) ([]byte, error) {
	locks := r.locks(original)
	if bytes.Equal(edited, splice(original, locks)) {
		return original, nil
	}
	if !json.Valid(edited) || !json.Valid(original) {
		if bytes.Contains(edited, []byte(Hidden)) {
			return nil, &Moved{"$"}
		}
		return edited, nil
	}
	secrets, known := map[string][]byte{}, map[string]bool{}
	for _, l := range locks {
		secrets[string(l.at)+"\x00"+text(l.mask)] = original[l.from:l.to]
	}
	masks(original, func(at Path, shown string, _ lock) { known[string(at)+"\x00"+shown] = true })
	var back []lock
	var wrong error
	masks(edited, func(at Path, shown string, l lock) {
		id := string(at) + "\x00" + shown
		if secret, ok := secrets[id]; ok {
			l.mask = secret
			back = append(back, l)
		} else if !known[id] {
			wrong = &Moved{at}
		}
	})
	if wrong != nil {
		return nil, wrong
	}
	return splice(edited, back), nil
}

// masks finds the strings of a document that look like masks.
func masks(document []byte, found func(at Path, shown string, l lock)) {
	w := &walker{data: document}
	w.visit = func(i int) bool {
		if document[i] == '"' {
			j := rawjson.AfterString(document, i)
			if shown := text(document[i:j]); strings.Contains(shown, Hidden) {
				found(Path(w.at.String()), shown, lock{from: i, to: j})
			}
		}
		return true
	}
	w.value(rawjson.Space(document, 0))
}
