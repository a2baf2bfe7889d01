package sqlite

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"redrive/internal/filter"
	"redrive/internal/store/db"
)

// index is an index of trigrams (FTS5) on the texts in search_texts: any three
// characters or more are found anywhere. It says which jobs can have a text; the
// texts themselves say which of them do. So the index needs neither places nor
// columns, and may know what a job no longer has: when a job fails again, only the
// words that are new are added.
//
// A document's rowid is the number of its job: the index gives the newest first
// without sorting, and a page goes on where the one before ended.
type index struct{}

func (index) Put(t *db.Tx, seq int64, d db.Document) error {
	const query = `SELECT ident, kind, failure, meta_text, content FROM search_texts WHERE job_seq = $1`
	const keep = `REPLACE INTO search_texts (job_seq, ident, kind, failure, meta_text, content) VALUES ($1, $2, $3, $4, $5, $6)`
	const add = `INSERT INTO search (rowid, text) VALUES ($1, $2)` // beside what is there of the job
	d = db.Document{ID: fold(d.ID), Type: fold(d.Type), Error: fold(d.Error), Payload: fold(d.Payload), Meta: fold(d.Meta)}
	var before db.Document
	found, err := db.Row(t, query, []any{&before.ID, &before.Type, &before.Error, &before.Meta, &before.Payload}, seq)
	if err != nil || found && before == d {
		return err
	}
	was := []string{before.ID, before.Type, before.Error, before.Meta, before.Payload}
	var added []string
	for i, text := range []string{d.ID, d.Type, d.Error, d.Meta, d.Payload} {
		if text != was[i] {
			added = append(added, text)
		}
	}
	return db.Steps(t, db.Any(keep, seq, d.ID, d.Type, d.Error, d.Meta, d.Payload), db.Any(add, seq, strings.Join(added, "\n")))
}

// fold makes texts equal that differ in case only.
func fold(s string) string { return strings.ToLower(s) }

func (index) Forget(t *db.Tx, seqs string) error {
	const remove = `DELETE FROM search WHERE rowid IN (SELECT value FROM json_each($1))`
	const texts = `DELETE FROM search_texts WHERE job_seq IN (SELECT value FROM json_each($1))`
	return db.Steps(t, db.Any(remove, seqs), db.Any(texts, seqs))
}

func (index) Clear(t *db.Tx) error {
	const remove = `INSERT INTO search (search) VALUES ('delete-all')`
	const texts = `DELETE FROM search_texts`
	return db.Steps(t, db.Any(remove), db.Any(texts))
}

// mergePages is how many pages of the index one call of Tidy merges, about.
const mergePages = 64

// Tidy joins some of the segments of the index, of those most that are alike.
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

// Segments are found by their first pages: the number of a page begins with that
// of its segment. Pages behind the 65,535th segment are of another kind.
func (index) Segments(src db.Source) (int, error) {
	const query = `WITH RECURSIVE segment (n) AS (
			SELECT min(id) >> 37 FROM search_data WHERE id >= 1 << 37
			UNION ALL SELECT (SELECT min(id) >> 37 FROM search_data WHERE id >= (n + 1) << 37) FROM segment WHERE n IS NOT NULL)
		SELECT count(*) FROM segment WHERE n < 1 << 16`
	return db.Value[int](src, query)
}

func (index) From() (from, order string) {
	return "search AS s CROSS JOIN search_texts AS x ON x.job_seq = s.rowid CROSS JOIN jobs AS j ON j.seq = s.rowid", "s.rowid"
}

func (index) Match(where *db.Where, f filter.Filter) {
	const anywhere = "(instr(x.failure, %[1]s) > 0 OR instr(x.content, %[1]s) > 0 OR instr(x.kind, %[1]s) > 0" +
		" OR instr(x.ident, %[1]s) > 0 OR instr(x.meta_text, %[1]s) > 0)"
	trigrams := selective(typeText(f))
	for _, part := range []struct{ text, condition string }{
		{f.Error, "instr(x.failure, %s) > 0"}, {f.Payload, "instr(x.content, %s) > 0"}, {f.Meta, "instr(x.meta_text, %s) > 0"},
		{f.Text, anywhere},
	} {
		if text := fold(db.Unescape(part.text)); text != "" {
			trigrams = append(trigrams, selective(text)...)
			where.Add(part.condition, text)
		}
	}
	where.Add("s.search MATCH %s", strings.Join(trigrams, " AND "))
}

// mostTrigrams of a text are looked up. Each is read in every failure that has it,
// so common ones cost more than they spare.
const mostTrigrams = 4

// selective are those trigrams of a text that the fewest failures may have, as the
// index reads them.
func selective(text string) (all []string) {
	runes := []rune(text)
	for i := range max(0, len(runes)-2) {
		all = append(all, string(runes[i:i+3]))
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(rarity(b), rarity(a)) })
	all = all[:min(len(all), mostTrigrams)]
	for i, trigram := range all {
		all[i] = `"` + strings.ReplaceAll(trigram, `"`, `""`) + `"`
	}
	return all
}

// rarity guesses how rare a trigram is. Digits are what tells one failure from
// others; most are written in English beside that.
func rarity(trigram string) (n int) {
	for _, r := range trigram {
		switch {
		case unicode.IsDigit(r) || r > unicode.MaxASCII:
			n += 4
		case strings.ContainsRune("bfjkqvwxyz", r):
			n += 3
		case !unicode.IsLetter(r):
			n += 2
		case !strings.ContainsRune("aeinorst", r):
			n++
		}
	}
	return n
}

// typeText is what the index is asked about the type of a job, so that fewer of
// a common text's hits are read: the condition on the job itself decides. It is
// the middle of the type, where most types differ.
func typeText(f filter.Filter) string {
	const before, after = 2, 2 // of the last dot
	text := []rune(fold(strings.TrimSuffix(f.Type, "*")))
	if len(text) < filter.MinSearch || slices.Contains(text, 0) {
		return ""
	}
	dot := max(0, strings.LastIndex(string(text), "."))
	dot = utf8.RuneCountInString(string(text)[:dot])
	first := max(0, min(dot-before, len(text)-before-after))
	return string(text[first:min(first+before+after, len(text))])
}
