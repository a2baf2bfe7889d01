package sqlite

import (
	"slices"
	"strings"
	"unicode/utf8"

	"redrive/internal/filter"
	"redrive/internal/store/db"
)

// index is an index of trigrams (FTS5): any three characters or more are found
// anywhere. A document's rowid is the number of its job: the index gives the
// newest first without sorting, and a page goes on where the one before ended.
type index struct{}

func (index) Put(t *db.Tx, seq int64, d db.Document) error {
	const replace = `REPLACE INTO search (rowid, ident, kind, failure, content, meta_text) VALUES ($1, $2, $3, $4, $5, $6)`
	return t.Run(replace, seq, d.ID, d.Type, d.Error, d.Payload, d.Meta)
}

func (index) Forget(t *db.Tx, seqs string) error {
	const remove = `DELETE FROM search WHERE rowid IN (SELECT value FROM json_each($1))`
	return t.Run(remove, seqs)
}

func (index) Clear(t *db.Tx) error {
	const remove = `INSERT INTO search (search) VALUES ('delete-all')`
	return t.Run(remove)
}

// mergePages is how many pages of the index one call of Tidy merges, about.
const mergePages = 64

// Tidy joins some of the segments of the index.
func (index) Tidy(t *db.Tx) (more bool, err error) {
	const merge = `INSERT INTO search (search, rank) VALUES ('merge', $1)`
	before, err := totalChanges(t)
	if err != nil {
		return false, err
	}
	if err := t.Run(merge, mergePages); err != nil {
		return false, err
	}
	after, err := totalChanges(t)
	return after-before >= 2, err // one is the command itself
}

// totalChanges counts the rows that this connection ever changed.
func totalChanges(t *db.Tx) (int64, error) { return db.Value[int64](t, `SELECT total_changes()`) }

func (index) From() (from, order string) {
	return "search AS s CROSS JOIN jobs AS j ON j.seq = s.rowid", "s.rowid"
}

func (index) Match(where *db.Where, f filter.Filter) {
	where.Add("s.search MATCH %s", matching(f))
}

// matching is the search of a filter as FTS5 reads it.
func matching(f filter.Filter) string {
	var all []string
	for _, part := range []struct{ column, text string }{
		{"failure : ", f.Error}, {"content : ", f.Payload}, {"meta_text : ", f.Meta}, {"", f.Text},
		{"kind : ", typeText(f)},
	} {
		if part.text != "" {
			all = append(all, part.column+`"`+strings.ReplaceAll(db.Unescape(part.text), `"`, `""`)+`"`)
		}
	}
	return strings.Join(all, " AND ")
}

// typeText is what the index is asked about the type of a job, so that fewer of
// a common text's hits are read: the condition on the job itself decides. It is
// the middle of the type, where most types differ, and short: each further
// trigram would be looked for in every failure.
func typeText(f filter.Filter) string {
	const before, after = 2, 2 // of the last dot
	text := []rune(strings.TrimSuffix(f.Type, "*"))
	if len(text) < filter.MinSearch || slices.Contains(text, 0) {
		return ""
	}
	dot := max(0, strings.LastIndex(string(text), "."))
	dot = utf8.RuneCountInString(string(text)[:dot])
	first := max(0, min(dot-before, len(text)-before-after))
	return string(text[first:min(first+before+after, len(text))])
}
