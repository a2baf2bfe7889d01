package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"redrive/internal/filter"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// index is a table of texts with an index of their trigrams (pg_trgm). A document's key is
// the number of its job. The table is in the database of the jobs, and is written on a connection of its own.
type index struct {
	mu   sync.Mutex // of the connection
	conn *conn
}

// Known returns the documents of jobs.
func (*index) Known(src db.Source, seqs []int64) (map[int64]db.Document, error) {
	return db.Documents(src, seqs)
}

// Put adds or replaces documents, and removes those of other jobs.
func (i *index) Put(ctx context.Context, to db.IndexState, all []db.Entry, gone []int64) error {
	const remove = `DELETE FROM search_texts WHERE job_seq IN (SELECT value FROM json_each($1))`

	return i.transact(ctx, func(t *db.Tx) error {
		if len(gone) > 0 {
			if err := t.Run(remove, db.Numbers(gone)); err != nil {
				return err
			}
		}

		return db.Steps(t, func(t *db.Tx) error { return put(t, all) }, db.NoteIndexState(to))
	})
}

func put(t *db.Tx, all []db.Entry) error {
	texts := db.NewBatch(6, `INSERT INTO search_texts (job_seq, ident, kind, failure, meta_text, content) VALUES `,
		` ON CONFLICT (job_seq) DO UPDATE SET ident = excluded.ident, kind = excluded.kind, failure = excluded.failure,
			meta_text = excluded.meta_text, content = excluded.content`)

	for _, e := range all {
		now := e.Document.Folded()
		if now == e.Before {
			continue
		}

		if err := texts.Add(t, e.Seq, now.ID, now.Type, now.Error, now.Meta, now.Payload); err != nil {
			return err
		}
	}

	return texts.Flush(t)
}

// Clear removes every document.
func (i *index) Clear(ctx context.Context, to db.IndexState) error {
	return i.transact(ctx, func(t *db.Tx) error { return db.Steps(t, db.Any(`DELETE FROM search_texts`), db.NoteIndexState(to)) })
}

func (i *index) transact(ctx context.Context, do func(*db.Tx) error) error {
	i.mu.Lock()
	defer i.mu.Unlock()

	return db.Transact(ctx, i.conn, do)
}

// State says how far the index is.
func (*index) State(src db.Source) (db.IndexState, error) { return db.ReadIndexState(src) }

// Tidy has nothing to do: the server keeps its indexes in order.
func (*index) Tidy(context.Context) (more bool, err error) { return false, nil }

// Segments is one: a search goes through one index.
func (*index) Segments(db.Source) (int, error) { return 1, nil }

// From is the source of a query in which the texts come first, and its order. All jobs are looked at for a
// rare text: the index of texts finds it, and what it finds is sorted. The sum keeps the server from
// looking at the documents one by one, in their order, to spare the sort.
func (*index) From(window bool) (from, order string) {
	const documents = "search_texts AS x JOIN jobs AS j ON j.seq = x.job_seq"

	if window {
		return documents, "x.job_seq"
	}

	return documents, "x.job_seq + 0"
}

// Match adds the condition that a document has the texts of the filter. A text can stand in
// JSON with its marks escaped.
func (*index) Match(where *clause.Where, f filter.Filter) {
	const either = "(x.%[1]s LIKE %%[1]s ESCAPE '\\' OR x.%[1]s LIKE %%[2]s ESCAPE '\\')"
	within := func(column string) string { return fmt.Sprintf(either, column) }

	anywhere := "(" + strings.Join([]string{
		within("failure"), within("content"), within("meta_text"), `x.kind LIKE %[1]s ESCAPE '\'`, `x.ident LIKE %[1]s ESCAPE '\'`,
	}, " OR ") + ")"

	for _, part := range []struct{ text, condition string }{
		{f.Error, within("failure")}, {f.Payload, within("content")}, {f.Meta, within("meta_text")}, {f.Text, anywhere},
	} {
		if text := db.Fold(db.Unescape(part.text)); text != "" {
			where.Add(part.condition, pattern(text), pattern(db.InJSON(text)))
		}
	}
}

// Many asks the planner, which looks at a sample of the documents.
func (i *index) Many(src db.Source, f filter.Filter) (bool, error) {
	var where clause.Where
	i.Match(&where, f)

	var text string
	_, err := db.Row(src, `EXPLAIN (FORMAT JSON) SELECT 1 FROM search_texts AS x`+where.String(), []any{&text}, where.Args...)
	if err != nil {
		return false, err
	}

	var plans []struct {
		Plan struct {
			Rows float64 `json:"Plan Rows"`
		}
	}

	err = json.Unmarshal([]byte(text), &plans)
	if err != nil || len(plans) == 0 {
		return false, fmt.Errorf("read what the server expects to find: %w", err)
	}

	return plans[0].Plan.Rows > float64(db.Window), nil
}

// pattern matches what has the text anywhere.
func pattern(text string) string { return "%" + clause.Like(text) + "%" }

// Fault leaves errors as they are: the index is a part of the database.
func (*index) Fault(string, error) (fault error, ok bool) { return nil, false }
