package redact

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"redrive/internal/rawjson"
)

// Hidden is what stands for a secret in a text. In a document a number follows.
const Hidden = "••••••"

// lock is a hidden value of a document, and what is shown instead.
type lock struct {
	rawjson.Edit
	place int // where it stands, when the caller wants to know
}

// Payload hides the secrets of a document, also of the beginning of one. What is
// valid JSON stays valid.
func (r *Redactor) Payload(document []byte) []byte {
	if document == nil {
		return nil
	}
	return splice(document, (&masker{redactor: r}).document(document, make(path, 0, 8)))
}

// splice puts masks in the places of what they hide.
func splice(document []byte, locks []lock) []byte {
	if len(locks) == 0 {
		return document
	}

	return rawjson.Splice(document, func(yield func(rawjson.Edit) bool) {
		for _, l := range locks {
			if !yield(l.Edit) {
				return
			}
		}
	})
}

// masker finds the secrets of JSON.
type masker struct {
	redactor *Redactor
	walker   walker
	places   places // nil when the caller does not want to know
	locks    []lock
	pairs    []lock // of values that are hidden because of what stands beside them; others may be inside them
	nested   int    // strings of JSON around this document
	token    string // of the string around it
}

// maxNested is how many strings of JSON may be nested in one another. A deeper one
// is hidden.
const maxNested = 8

// document finds the secrets of a document that stands at a path. A document that is
// not JSON as a whole is a text too, from its beginning: it cannot be told which of
// its names and values belong together.
func (m *masker) document(data []byte, at path) []lock {
	valid := rawjson.Valid(data)
	switch {
	case valid:
		m.walk(data, data, at)
	case looksLikeJSON(data):
		m.walkBroken(data, at)
	}

	if !valid {
		for _, l := range m.redactor.find(string(data), Hidden, m.nested) {
			l.Text = l.all(m.next())
			m.locks = append(m.locks, l)
		}

		return joined(append(m.pairs, m.locks...), data, m.next())
	}

	// The secrets of pairs were gathered apart, so they have to be put in order among the
	// others.
	if len(m.pairs) > 0 {
		return joined(append(m.pairs, m.locks...), nil, "")
	}

	return m.locks
}

// walk goes through a document, whose tokens are where those of JSON are.
func (m *masker) walk(document, json []byte, at path) {
	m.walker.data, m.walker.src, m.walker.at = document, string(document), at
	m.walker.redactor, m.walker.visit, m.walker.named = m.redactor, m.visit, m.visitNamed
	m.walker.walk(json)
}

// walkBroken goes through a document as if it were the JSON that it was meant to
// be.
func (m *masker) walkBroken(document []byte, at path) {
	json, text, added := mended(document)
	m.walker.broken = true
	m.walk(text, json, at)

	for _, locks := range [][]lock{m.pairs, m.locks} {
		for i := range locks {
			l := &locks[i]
			from, _ := slices.BinarySearch(added, l.From)
			to, _ := slices.BinarySearch(added, l.To)
			l.From, l.To = l.From-from, l.To-to
		}
	}
}

// looksLikeJSON reports whether a text can be JSON, or the beginning of it: what
// begins with a bracket, or is all one string.
func looksLikeJSON(data []byte) bool {
	data = bytes.Trim(data, " \t\r\n")
	if len(data) > 0 && data[0] == '"' {
		return afterString(data, 0) == len(data)
	}

	return len(data) > 0 && (data[0] == '{' || data[0] == '[')
}

// opens reports whether a text begins as JSON in a string does.
func opens(s string) bool {
	s = strings.TrimLeft(s, " \t\r\n")
	return s != "" && (s[0] == '{' || s[0] == '[' || s[0] == '"')
}

// joined puts locks in order, and makes one of those that overlap: the first. If
// that shows what another one hides in a broken document, the token is all that is
// shown.
func joined(locks []lock, broken []byte, token string) (all []lock) {
	slices.SortStableFunc(locks, func(a, b lock) int { return cmp.Compare(a.From, b.From) })

	for _, l := range locks {
		if n := len(all); n == 0 || l.From >= all[n-1].To {
			all = append(all, l)
		} else if last := &all[n-1]; broken != nil && (l.To > last.To || last.shows(broken[l.From:l.To])) {
			last.To, last.Text = max(last.To, l.To), last.all(token)
		}
	}

	return all
}

// shows reports whether a part of a string of JSON can be read in what is shown.
func (l lock) shows(part []byte) bool {
	if string(part) == Hidden {
		return false
	}
	return strings.Contains(rawjson.Text(l.Text), rawjson.Text(slices.Concat([]byte(`"`), part, []byte(`"`))))
}

// all is what is shown when all of it is hidden.
func (l lock) all(token string) []byte {
	if l.Text[0] == '"' {
		return rawjson.Quote(token)
	}
	return []byte(token)
}

// next is the token of the next secret. Within a string of JSON all have the
// token of that string, which is put back as a whole.
func (m *masker) next() string {
	if m.token != "" {
		return m.token
	}
	return tokenOf(len(m.locks) + len(m.pairs) + 1)
}

// visit hides a value that the walker does not look into, because the value is a
// secret or nested too deep, and what is secret in a string.
func (m *masker) visit(from, to int, whole bool) {
	switch data := m.walker.data; {
	case whole && !harmless(data[from:to]):
		m.locks = append(m.locks, m.lock(from, to, m.next()))
	case data[from] == '"':
		m.search(from, to)
	}
}

// harmless reports whether a value can be no secret.
func harmless(raw []byte) bool {
	switch string(raw) {
	case "null", "true", "false", `""`:
		return true
	}

	return len(bytes.Trim(raw, "{}[], \t\r\n")) == 0
}

// visitNamed hides the value of a pair.
func (m *masker) visitNamed(i, j int) {
	if !harmless(m.walker.data[i:j]) {
		m.pairs = append(m.pairs, m.lock(i, j, m.next()))
	}
}

// lock hides the value from i to j, with its place for the code that puts it back.
func (m *masker) lock(i, j int, shown string) lock {
	l := lock{Edit: rawjson.Edit{From: i, To: j, Text: rawjson.Quote(shown)}}
	if m.places != nil {
		l.place = m.places.of(&m.walker)
	}

	return l
}

// search looks for secrets within a string.
func (m *masker) search(i, j int) {
	inside := m.walker.stringAt(i, j)
	if m.walker.unclear(i, j) && strings.ContainsAny(inside, `=:{["`) { // it may hold a secret
		m.locks = append(m.locks, m.lock(i, j, m.next()))
		return
	}

	if !announces(inside) && !opens(inside) { // as nearly every string
		return
	}

	token := m.next()

	// JSON within a string of JSON: "{\"password\": \"S\"}"
	if document := []byte(inside); looksLikeJSON(document) {
		if m.nested == maxNested {
			m.locks = append(m.locks, m.lock(i, j, token))
			return
		}

		inner := masker{redactor: m.redactor, nested: m.nested + 1, token: token}

		locks := inner.document(document, m.walker.at)
		m.walker.at = inner.walker.at // as it was, with the room that it has got
		if len(locks) > 0 {
			m.locks = append(m.locks, m.lock(i, j, string(splice(document, locks))))
		}

		return
	}

	if locks := m.redactor.find(inside, token, m.nested); len(locks) > 0 {
		m.locks = append(m.locks, m.lock(i, j, string(splice([]byte(inside), locks))))
	}
}

// tokenOf is what stands for the secret n of a document.
func tokenOf(n int) string { return Hidden + "#" + strconv.Itoa(n) }

// numbered is the token of a secret.
var numbered = regexp.MustCompile(Hidden + `#[0-9]+`)

// A Moved error says that a token stands where its secret has never been.
type Moved struct{ At Path }

func (e *Moved) Error() string {
	return fmt.Sprintf("%s contains %s, which stands for a secret in another place; "+
		"write the value itself, or undo the change", e.At, Hidden)
}

// Merge returns the edited document with the secrets of the original in the
// places where their masks still stand. It returns a *Moved when a mask, or a
// part of one, stands anywhere else.
func (r *Redactor) Merge(edited, original []byte) ([]byte, error) {
	m := &masker{redactor: r, places: places{}}

	locks := m.document(original, nil)

	// The document came back as it was shown: nothing was edited.
	if bytes.Equal(edited, splice(original, locks)) {
		return original, nil
	}

	// Outside JSON a mask has no place by which its secret could be found.
	if !rawjson.Valid(edited) || !rawjson.Valid(original) {
		if bytes.Contains(edited, []byte(Hidden)) && !r.ownDots(edited, original, locks) {
			return nil, &Moved{"$"}
		}
		return edited, nil
	}

	// A mask is known by its place and by what it shows, for example "••••••#2" at $.user.
	type mask struct {
		place int
		shown string
	}
	secrets, known := map[mask][]byte{}, map[mask]bool{}
	for _, l := range locks {
		secrets[mask{l.place, rawjson.Text(l.Text)}] = original[l.From:l.To]
	}

	// The original itself may have text that looks like a mask. Such text may stay where it is.
	masks(original, func(w *walker, shown string, _ lock) { known[mask{m.places.of(w), shown}] = true })
	var back []lock
	var wrong error
	masks(edited, func(w *walker, shown string, l lock) {
		id := mask{m.places.of(w), shown}
		if secret, ok := secrets[id]; ok {
			l.Text = secret
			back = append(back, l)
		} else if !known[id] && wrong == nil {
			wrong = &Moved{Path(w.at.String())}
		}
	})

	if wrong != nil {
		return nil, wrong
	}

	return splice(edited, back), nil
}

// ownDots reports whether what looks like a mask in an edited text is what the original had
// itself, apart from its secrets: in the same words, and no more often.
func (r *Redactor) ownDots(edited, original []byte, secrets []lock) bool {
	for _, l := range secrets {
		for _, token := range numbered.FindAll(l.Text, -1) {
			if bytes.Contains(edited, token) {
				return false
			}
		}
	}

	// Dots where a secret belongs are what is left of a mask.
	hidden := (&masker{redactor: r}).document(edited, nil)
	if slices.ContainsFunc(hidden, func(l lock) bool { return bytes.Contains(edited[l.From:l.To], []byte(Hidden)) }) {
		return false
	}

	had := wordsWithDots(original, secrets)
	for word, n := range wordsWithDots(edited, hidden) {
		if n > had[word] {
			return false
		}
	}

	return true
}

// wordsWithDots counts the words of a text that look like masks, apart from its secrets.
func wordsWithDots(text []byte, secrets []lock) map[string]int {
	words := map[string]int{}

	blanked := bytes.Clone(text)
	for _, l := range secrets {
		for i := l.From; i < l.To; i++ {
			blanked[i] = ' '
		}
	}

	for word := range bytes.FieldsSeq(blanked) {
		if bytes.Contains(word, []byte(Hidden)) {
			words[string(word)]++
		}
	}

	return words
}

// masks finds the strings of a document that look like masks.
func masks(document []byte, found func(w *walker, shown string, l lock)) {
	w := &walker{data: document, src: string(document)}
	w.visit = func(from, to int, _ bool) {
		if document[from] == '"' {
			if shown := w.stringAt(from, to); strings.Contains(shown, Hidden) {
				found(w, shown, lock{Edit: rawjson.Edit{From: from, To: to}})
			}
		}
	}
	w.walk(document)
}
