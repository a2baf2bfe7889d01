package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// Search answers from an index of trigrams (FTS5): any three characters or more
// are found anywhere in what failed. Feeding it costs as much as recording the
// failure itself, so it is fed apart: the transaction that settles a failure
// leaves a row in search_backlog, and FillSearch turns those rows into documents
// in small transactions, between which claims and settlements pass. A document's
// rowid is the number of its job: the index gives the newest first without
// sorting, and a page goes on where the one before ended.

// The bounds of one transaction of FillSearch: they are what a claim may have
// to wait for.
const (
	fillRows  = 64
	fillBytes = 64 << 10
	joinPages = 64 // of the index, about
)

const (
	forgetBacklog = `DELETE FROM search_backlog WHERE job_seq IN (SELECT value FROM json_each($1))`
	forgetSearch  = `DELETE FROM search WHERE rowid IN (SELECT value FROM json_each($1))`
)

// queueing notes failures that cannot be searched yet.
func queueing() batch {
	return batch{head: `REPLACE INTO search_backlog (job_seq, execution) VALUES `, row: `(?, ?)`, columns: 2}
}

// unsearchable notes that a job failed anew.
func (t *tx) unsearchable(seq int64, a job.Attempt) error {
	if !a.Outcome.Counted() {
		return nil
	}
	return t.unsearched.add(t, seq, a.Execution)
}

// redaction takes out of texts what nobody may see.
type redaction struct {
	data        func(typ string, data []byte) []byte
	text        func(string) string
	fingerprint string
}

func newRedaction(o Options) redaction {
	r := redaction{o.Redact, o.RedactText, o.Fingerprint}
	if r.data == nil {
		r.data = func(_ string, data []byte) []byte { return data }
	}
	if r.text == nil {
		r.text = func(text string) string { return text }
	}
	return r
}

// document is what a search finds of a failure. Whatever it brought along that
// stops the redaction is its own fault, and no reason for everything to end.
func (r redaction) document(j job.Job) (d job.Document, fault error) {
	defer func() {
		if why := recover(); why != nil {
			d, fault = job.Document{ID: j.ID}, fmt.Errorf("hide the secrets of job %s: panic: %v", j.ID, why)
		}
	}()
	j.Payload, j.Meta = r.data(j.Type, j.Payload), r.data(j.Type, j.Meta)
	j.Error = job.ErrorInfo{Type: r.text(j.Error.Type), Message: r.text(j.Error.Message)}
	return j.Document(), nil
}

// unsearched is a failure that waits to become searchable.
type unsearched struct {
	seq, execution int64
	document       job.Document
	fault          error // why there is no document
}

func (u unsearched) size() int {
	d := u.document
	return len(d.ID) + len(d.Type) + len(d.Error) + len(d.Payload) + len(d.Meta)
}

// FillSearch makes every failure searchable that is not yet, the newest first,
// and returns how many it did. Then it puts the index in order, which makes
// searches several times quicker, until the next failure waits. Other writers come
// in between.
func (s *Store) FillSearch(ctx context.Context) (total int, err error) {
	if err := s.refresh(ctx); err != nil {
		return 0, fmt.Errorf("empty the search index: %w", err)
	}
	for {
		waiting, err := s.unsearched(ctx)
		more := false
		if err == nil && len(waiting) == 0 {
			more, err = s.again(ctx)
		} else if err == nil {
			err = s.index(ctx, waiting)
		}
		if err != nil {
			return total, fmt.Errorf("fill the search index: %w", err)
		}
		if len(waiting) == 0 && !more {
			return total, s.joinSegments(ctx)
		}
		total += len(waiting)
	}
}

// joinSegments joins the segments of the index, a little in each transaction,
// until there is nothing to join or the next failure waits to be filled in.
func (s *Store) joinSegments(ctx context.Context) error {
	const join = `INSERT INTO search (search, rank) VALUES ('merge', $1)`
	for {
		if lag, err := s.SearchLag(ctx); lag > 0 || err != nil {
			return err
		}
		joined, err := write(ctx, s.writer, fillRows, func(t *tx) (bool, error) {
			before, err := t.totalChanges()
			if err != nil {
				return false, err
			}
			if _, err := t.exec(join, joinPages); err != nil {
				return false, err
			}
			after, err := t.totalChanges()
			return after-before >= 2, err // one is the command itself
		})
		if err != nil {
			return fmt.Errorf("join the segments of the search index: %w", err)
		}
		if !joined {
			return nil
		}
	}
}

// totalChanges counts the rows that this connection ever changed.
func (t *tx) totalChanges() (n int64, err error) {
	err = t.query(`SELECT total_changes()`, func(rows *sql.Rows) error { return rows.Scan(&n) })
	return n, err
}

// index makes failures searchable. One that the index refuses for its own fault
// is left out, so that it keeps no others from being found.
func (s *Store) index(ctx context.Context, all []unsearched) error {
	_, err := write(ctx, s.writer, len(all)*8, func(t *tx) (struct{}, error) { return struct{}{}, t.index(all) })
	if err == nil || ctx.Err() != nil || common(err) || errors.Is(err, job.ErrStorageFull) || errors.Is(err, errClosed) {
		return err
	}
	if half := len(all) / 2; half > 0 {
		if err := s.index(ctx, all[:half]); err != nil {
			return err
		}
		return s.index(ctx, all[half:])
	}
	s.log.Error("A failure cannot be made searchable. No search finds it until it fails again.", "job", all[0].document.ID, "error", err)
	_, err = write(ctx, s.writer, 1, func(t *tx) (bool, error) { return t.waited(all[0]) })
	return err
}

// unsearched reads the failures of one transaction: as few as the bounds say,
// and one at least.
func (s *Store) unsearched(ctx context.Context) (all []unsearched, err error) {
	const query = `SELECT w.job_seq, w.execution, j.id, j.type, coalesce(a.error_type, l.exception, ''), coalesce(a.error_message, l.error, ''),
			b.payload, b.meta
		FROM search_backlog AS w CROSS JOIN jobs AS j ON j.seq = w.job_seq CROSS JOIN bodies AS b ON b.job_seq = w.job_seq
		LEFT JOIN attempts AS a ON a.job_seq = w.job_seq AND a.execution = w.execution
		LEFT JOIN dead_letters AS l ON l.job_seq = w.job_seq AND l.run = 1 AND w.execution = 0
		ORDER BY w.job_seq DESC LIMIT $1 + 0`
	size := 0
	err = s.reading(ctx).query(query, func(rows *sql.Rows) error {
		var u unsearched
		var j job.Job
		var meta []byte
		err := rows.Scan(&u.seq, &u.execution, &j.ID, &j.Type, &j.Error.Type, &j.Error.Message, &j.Payload, &meta)
		if err != nil {
			return err
		}
		j.Meta = meta
		u.document, u.fault = s.redact.document(j)
		all = append(all, u)
		if size += u.size(); size >= fillBytes {
			return errEnough
		}
		return nil
	}, fillRows)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return all, err
}

// index makes failures searchable, unless they failed again or are gone by now.
func (t *tx) index(all []unsearched) error {
	const replace = `REPLACE INTO search (rowid, ident, kind, failure, content, meta_text) VALUES ($1, $2, $3, $4, $5, $6)`
	for _, u := range slices.Backward(all) { // FTS5 begins a segment wherever a number is smaller than the one before
		waits, err := t.waited(u)
		if err != nil {
			return err
		}
		if !waits {
			continue
		}
		if u.fault != nil {
			return u.fault
		}
		d := u.document
		if _, err := t.exec(replace, u.seq, d.ID, d.Type, d.Error, d.Payload, d.Meta); err != nil {
			return fmt.Errorf("make job %s searchable: %w", d.ID, err)
		}
	}
	t.proven = true
	return nil
}

// waited takes a failure out of those that wait, and reports whether it was there.
func (t *tx) waited(u unsearched) (bool, error) {
	const remove = `DELETE FROM search_backlog WHERE job_seq = $1 AND execution = $2`
	n, err := t.exec(remove, u.seq, u.execution)
	return n > 0, err
}

// maxLag is how far SearchLag counts.
const maxLag = 100_000

// SearchLag is how many failures cannot be searched yet. It counts to a hundred
// thousand, and those that are made searchable anew as they come.
func (s *Store) SearchLag(ctx context.Context) (int, error) {
	const query = `SELECT count(*) + (SELECT again > 0 OR fingerprint <> $2 FROM redaction) FROM (SELECT 1 FROM search_backlog LIMIT $1 + 0)`
	var n int
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error { return rows.Scan(&n) }, maxLag, s.redact.fingerprint)
	return n, err
}

// matching is the search of a filter as FTS5 reads it.
func matching(f filter.Filter) string {
	var all []string
	for _, part := range []struct{ column, text string }{
		{"failure : ", f.Error}, {"content : ", f.Payload}, {"meta_text : ", f.Meta}, {"", f.Text},
		{"kind : ", typeText(f)},
	} {
		if part.text != "" {
			all = append(all, part.column+`"`+strings.ReplaceAll(part.text, `"`, `""`)+`"`)
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
