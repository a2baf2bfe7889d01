// Package search is the projection that makes failures searchable.
//
// Feeding the index of texts costs as much as recording the failure itself, so
// it is fed apart: the transaction that records a failure leaves a row in
// search_backlog, [Projection.Sweep] turns those rows into documents in transactions of the
// index, which has a writer of its own, and removes the rows afterwards. A job that
// failed again by then is made searchable once. The texts of a job that is removed
// leave the index the same way.
//
// What a crash leaves half done is done again: a document that is put twice is the
// same. An index that does not belong to the database, because one of them was
// restored or lost, is noticed by its state (db.IndexState) and rebuilt.
//
// The index holds texts from which secrets were taken out, as the configuration
// said when they came (see reindexStep for when that changes).
package search

import (
	"fmt"
	"log/slog"
	"sync/atomic"

	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Redaction takes out of texts what no user may find. Data takes it out of the
// payload or meta of a type of job, Text out of an error. Fingerprint changes
// with what they take out; everything is then made searchable again. The zero
// value takes nothing out.
type Redaction struct {
	Data        func(typ string, data []byte) []byte
	Text        func(string) string
	Fingerprint string
}

// Complete fills in what is not set.
func (r Redaction) Complete() Redaction {
	if r.Data == nil {
		r.Data = func(_ string, data []byte) []byte { return data }
	}

	if r.Text == nil {
		r.Text = func(text string) string { return text }
	}

	return r
}

// document is what a search finds of a failure. A failure that stops the
// redaction with a panic is left out of the index; nothing else ends for it.
func (r Redaction) document(j job.Job) (d db.Document, fault error) {
	defer func() {
		if why := recover(); why != nil {
			d, fault = db.Document{ID: j.ID}, fmt.Errorf("hide the secrets of job %s: panic: %v", j.ID, why)
		}
	}()

	j.Payload, j.Meta = r.Data(j.Type, j.Payload), r.Data(j.Type, j.Meta)
	j.Error = job.ErrorInfo{Type: r.Text(j.Error.Type), Message: r.Text(j.Error.Message)}

	return db.DocumentOf(j), nil
}

// Projection feeds the index.
type Projection struct {
	db.Search
	writer *db.Writer
	reader *db.Reader
	log    *slog.Logger
	redact Redaction
	failed *db.Slot[failures]

	// What searches have to know of the index.
	stale      atomic.Bool // it was made by another redaction, or for another database
	reindexing atomic.Bool // it is being rebuilt and does not hold every failure yet

	// Where Step goes on. One goroutine at a time calls it.
	state db.IndexState // of the index, as the database says
	read  int64         // the revision of the database after the newest failures were read
	swept int64         // how far the sweep has come: the number of a job
	until int64         // where it ends; 0: none is under way
	room  int           // for so many more segments in the index, at least
}

// failures are the newest failed executions of a transaction, by their jobs.
type failures map[int64]int64

// New returns a projection; Load reads whether the index has to be rebuilt.
func New(writer *db.Writer, reader *db.Reader, index db.Search, redact Redaction, log *slog.Logger) *Projection {
	return &Projection{
		Search: index, writer: writer, reader: reader, log: log, redact: redact,
		failed: db.NewSlot(func() *failures { return &failures{} }),
	}
}

// Failed notes that a job failed again.
func (p *Projection) Failed(t *db.Tx, f projection.Failure) error {
	failed := *p.failed.In(t)
	failed[f.Job.Seq] = max(failed[f.Job.Seq], int64(f.Execution))

	return nil
}

// Flush writes down which failures cannot be searched yet, each job once: the
// newest failure of a job is the one that is searched.
func (p *Projection) Flush(t *db.Tx) error {
	rows := db.NewBatch(2, `INSERT INTO search_backlog (job_seq, execution) VALUES `,
		` ON CONFLICT (job_seq) DO UPDATE SET execution = excluded.execution`)
	return db.AddSums(t, rows, *p.failed.In(t), func(seq, execution int64) []any { return []any{seq, execution} })
}

// Committed has nothing to make known.
func (p *Projection) Committed(*db.Tx) {}

// removed is the execution in search_backlog of a job that is gone.
const removed = -1

// Removed writes down that the texts of jobs have to leave the index. A job that
// succeeded at once never had any.
func (p *Projection) Removed(t *db.Tx, jobs []job.Job) error {
	const forget = `INSERT INTO search_backlog (job_seq, execution) SELECT value, $2 FROM json_each($1) WHERE true
		ON CONFLICT (job_seq) DO UPDATE SET execution = excluded.execution`

	seqs := make([]int64, 0, len(jobs))
	for i := range jobs {
		if j := &jobs[i]; j.State != job.Completed || j.Run > 1 || j.Attempts > 1 {
			seqs = append(seqs, j.Seq)
		}
	}

	if len(seqs) == 0 {
		return nil
	}

	return t.Run(forget, db.Numbers(seqs), removed)
}

// When the configuration hides something else than before, the texts in the
// index are no longer what they should be. Nothing of them is found any more (see
// Current), Update empties the index, and every failure is made searchable again:
// the database keeps how far that came. Until then lists are incomplete, and what
// needs every job waits (see Complete).
