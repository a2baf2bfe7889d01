package sqlite

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"redrive/internal/filter"
	"redrive/internal/store/clause"
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
type index struct{ *indexFile }

func (index) Known(src db.Source, seqs []int64) (map[int64]db.Document, error) {
	return db.Documents(src, seqs)
}

func (ix index) Put(ctx context.Context, to db.IndexState, all []db.Entry, gone []int64) error {
	return ix.transact(ctx, func(t *db.Tx) error {
		return db.Steps(t, func(t *db.Tx) error { return forget(t, gone) }, func(t *db.Tx) error { return put(t, all) }, db.NoteIndexState(to))
	})
}

func put(t *db.Tx, all []db.Entry) error {
	// One statement: FTS5 writes a segment of its own for each that has several rows.
	const add = `INSERT INTO search (rowid, text) SELECT value ->> 0, value ->> 1 FROM json_each($1)` // beside what is there

	texts := db.NewBatch(6, `REPLACE INTO search_texts (job_seq, ident, kind, failure, meta_text, content) VALUES `, "")
	words := make([][2]any, 0, len(all))
	for _, e := range all {
		now := e.Document.Folded()
		if now == e.Before {
			continue
		}

		if err := texts.Add(t, e.Seq, now.ID, now.Type, now.Error, now.Meta, now.Payload); err != nil {
			return err
		}

		words = append(words, [2]any{e.Seq, strings.Join(added(e.Before, now), "\n")})
	}

	if err := texts.Flush(t); err != nil || len(words) == 0 {
		return err
	}

	return t.ExecExactly(len(words), add, db.Rows(words))
}

// added returns texts that hold every trigram that the document did not have before.
func added(before, now db.Document) (all []string) {
	for _, text := range [...]struct{ was, is string }{
		{before.ID, now.ID}, {before.Type, now.Type}, {before.Error, now.Error}, {before.Meta, now.Meta}, {before.Payload, now.Payload},
	} {
		if text.is != text.was {
			all = append(all, changed(text.was, text.is))
		}
	}

	return all
}

// changed is the part of a text that holds every trigram with a character which is
// not as it was. A job often fails again with other numbers in the same words, and
// each trigram has its price.
func changed(was, is string) string {
	const reach = 2 // characters beside a changed one in a trigram with it

	first, last := 0, 0
	for first < min(len(was), len(is)) && was[first] == is[first] {
		first++
	}

	for last < min(len(was), len(is))-first && was[len(was)-1-last] == is[len(is)-1-last] {
		last++
	}

	from, to := first, len(is)-last // either can be within a character
	for from > 0 && from < len(is) && !utf8.RuneStart(is[from]) {
		from--
	}

	for to < len(is) && !utf8.RuneStart(is[to]) {
		to++
	}

	for range reach {
		_, n := utf8.DecodeLastRuneInString(is[:from])
		_, m := utf8.DecodeRuneInString(is[to:])
		from, to = from-n, to+m
	}

	return is[from:to]
}

// forget removes documents.
func forget(t *db.Tx, gone []int64) error {
	const remove = `DELETE FROM search WHERE rowid IN (SELECT value FROM json_each($1))`
	const texts = `DELETE FROM search_texts WHERE job_seq IN (SELECT value FROM json_each($1))`

	if len(gone) == 0 {
		return nil
	}

	seqs := db.Numbers(gone)

	return db.Steps(t, db.Any(remove, seqs), db.Any(texts, seqs))
}

func (ix index) Clear(ctx context.Context, to db.IndexState) error {
	const remove = `INSERT INTO search (search) VALUES ('delete-all')`
	const texts = `DELETE FROM search_texts`
	return ix.transact(ctx, func(t *db.Tx) error { return db.Steps(t, db.Any(remove), db.Any(texts), db.NoteIndexState(to)) })
}

func (ix index) State(src db.Source) (s db.IndexState, err error) {
	if ix.fault != nil { // no connection has it attached
		return s, nil
	}

	return db.ReadIndexState(src)
}

// mergePages is how many pages of the index one call of Tidy merges, about: each
// takes a millisecond, for which new failures wait.
const mergePages = 16

// Tidy joins some of the segments of the index, of those most that are alike.
func (ix index) Tidy(ctx context.Context) (more bool, err error) {
	err = ix.transact(ctx, func(t *db.Tx) error {
		more, err = tidy(t)
		return err
	})

	return more, err
}

func tidy(t *db.Tx) (more bool, err error) {
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

func (index) From(bool) (from, order string) {
	return "search AS s CROSS JOIN search_texts AS x ON x.job_seq = s.rowid CROSS JOIN jobs AS j ON j.seq = s.rowid", "s.rowid"
}

// Many is not asked: lists are read as a whole.
func (index) Many(db.Source, filter.Filter) (bool, error) { return false, nil }

func (index) Match(where *clause.Where, f filter.Filter) {
	const either = "(instr(x.%[1]s, %%[1]s) > 0 OR instr(x.%[1]s, %%[2]s) > 0)"
	within := func(column string) string { return fmt.Sprintf(either, column) }

	anywhere := "(" + strings.Join([]string{
		within("failure"), within("content"), within("meta_text"), "instr(x.kind, %[1]s) > 0", "instr(x.ident, %[1]s) > 0",
	}, " OR ") + ")"
	trigrams := selective(typeText(f))
	for _, part := range []struct{ text, condition string }{
		{f.Error, within("failure")}, {f.Payload, within("content")}, {f.Meta, within("meta_text")}, {f.Text, anywhere},
	} {
		if text := db.Fold(db.Unescape(part.text)); text != "" {
			trigrams = append(trigrams, selective(text)...)
			where.Add(part.condition, text, db.InJSON(text))
		}
	}

	where.Add("s.search MATCH %s", strings.Join(trigrams, " AND "))
}

// mostTrigrams of a text are looked up. Each is read in every failure that has it,
// so common ones cost more than they spare.
const mostTrigrams = 4

// selective are those trigrams of a text that the fewest failures may have, as the
// index reads them. Those with a character that is written otherwise within a string of
// JSON are left out, as long as there are others.
func selective(text string) (all []string) {
	runes := []rune(text)
	for i := range max(0, len(runes)-2) {
		all = append(all, string(runes[i:i+3]))
	}

	plain := slices.DeleteFunc(slices.Clone(all), func(trigram string) bool { return strings.ContainsAny(trigram, `\"`) })
	if len(plain) > 0 {
		all = plain
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

	text := []rune(db.Fold(strings.TrimSuffix(f.Type, "*")))
	if len(text) < filter.MinSearch || slices.Contains(text, 0) {
		return ""
	}

	dot := max(0, strings.LastIndex(string(text), "."))
	dot = utf8.RuneCountInString(string(text)[:dot])
	first := max(0, min(dot-before, len(text)-before-after))

	return string(text[first:min(first+before+after, len(text))])
}
