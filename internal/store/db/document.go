package db

import (
	"database/sql"
	"strings"

	"redrive/internal/clip"
	"redrive/internal/job"
)

// Document is what can be searched of a job that failed, as it was at its newest
// failure and after redaction.
type Document struct{ ID, Type, Error, Payload, Meta string }

// Entry is a document that is to be put into the index, for the job of a number.
// Before is the one that the index knows of the job; zero when there is none.
type Entry struct {
	Seq              int64
	Before, Document Document
}

// maxSearched is how many bytes of each text can be searched.
const maxSearched = 32 << 10

// DocumentOf is what can be searched of a job, whose error is its newest one.
func DocumentOf(j job.Job) Document {
	failure := (&job.Failure{ErrorInfo: j.Error}).Error()
	return Document{searchable(j.ID), searchable(j.Type), searchable(failure), searchable(string(j.Payload)), searchable(string(j.Meta))}
}

// searchable is the beginning of what a text says, which is the part that can be
// searched.
func searchable(s string) string {
	s = Unescape(s)
	return Clean(s[:min(len(s), maxSearched)])
}

// Folded is the document with its texts as they are searched.
func (d Document) Folded() Document {
	return Document{ID: Fold(d.ID), Type: Fold(d.Type), Error: Fold(d.Error), Payload: Fold(d.Payload), Meta: Fold(d.Meta)}
}

// Fold makes texts equal that differ in case and white space only: a message that was
// copied from a terminal or a page often has other line breaks than the error itself.
func Fold(s string) string { return strings.ToLower(clip.Line(s)) }

// InJSON writes a text as it stands in a string of JSON: the class App\Jobs\Charge of a
// page is App\\Jobs\\Charge in a payload.
func InJSON(s string) string { return inJSON.Replace(s) }

var inJSON = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// Documents reads the documents of jobs, as far as the index has any.
func Documents(src Source, seqs []int64) (map[int64]Document, error) {
	const query = `SELECT job_seq, ident, kind, failure, meta_text, content FROM search_texts
		WHERE job_seq IN (SELECT value FROM json_each($1))`

	all := make(map[int64]Document, len(seqs))
	err := src.Query(query, func(rows *sql.Rows) error {
		var seq int64
		var d Document
		err := rows.Scan(&seq, &d.ID, &d.Type, &d.Error, &d.Meta, &d.Payload)
		all[seq] = d

		return err
	}, Numbers(seqs))

	return all, err
}

// ReadIndexState reads the state that the index has noted.
func ReadIndexState(src Source) (s IndexState, err error) {
	const query = `SELECT mark, before, revision FROM search_state`
	_, err = Row(src, query, []any{&s.Version, &s.Before, &s.Revision})

	return s, err
}

// NoteIndexState is a step that notes a state of the index.
func NoteIndexState(to IndexState) func(*Tx) error {
	return Exactly(1, `UPDATE search_state SET mark = $1, before = $2, revision = $3`, to.Version, to.Before, to.Revision)
}
