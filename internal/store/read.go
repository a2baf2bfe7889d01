package store

import (
	"cmp"
	"context"
	"database/sql"
	"slices"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Jobs returns one page of the jobs that the filter selects, in its order
// ([filter.Filter.Order]): the newest first, by enqueueing or by the time of their last
// change as [filter.Filter.ByEnqueueing] says, or those first that run next. When the search takes too long it returns what was
// found together with context.DeadlineExceeded; the next page then goes on
// where it was. The same happens while the index of texts is rebuilt.
func (s *Store) Jobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	if err := cmp.Or(f.Check(), s.Search.Current(f)); err != nil {
		return filter.List{}, err
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	list := rows.List{Filter: f, After: after, Limit: limit, Columns: rows.Columns}
	partly := s.Search.Complete(f)
	found := rows.FoundFor(limit)
	reached, err := list.ReadOn(ctx, s.reader, s.Search, func(row *sql.Rows) error { return found.Scan(row) })
	jobs, err := s.complete(ctx, found, err)

	return pageOf(ctx, f, limit, jobs, reached, cmp.Or(err, partly))
}

// Count says how many jobs the filter selects. It counts no further than limit;
// more is true when there are others. When that takes too long, or the index of
// texts is rebuilt, it returns context.DeadlineExceeded.
func (s *Store) Count(ctx context.Context, f filter.Filter, limit int) (n int, more bool, err error) {
	if err := cmp.Or(f.Check(), s.Search.Complete(f)); err != nil {
		return 0, false, err
	}

	known, complete, err := s.Counters.Known(ctx, f)
	if complete || err != nil {
		return int(min(known.Total, int64(limit))), known.Total > int64(limit), err
	}

	f.Sort = filter.Newest // the order that costs least

	return s.count(ctx, f, filter.Cursor{}, limit)
}

// Newer is Count of the jobs before a place in the list, the newest
// first.
func (s *Store) Newer(ctx context.Context, f filter.Filter, than filter.Cursor, limit int) (n int, more bool, err error) {
	f.Sort = filter.Oldest
	return s.count(ctx, f, than, limit)
}

func (s *Store) count(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (n int, more bool, err error) {
	if err := cmp.Or(f.Check(), s.Search.Complete(f)); err != nil {
		return 0, false, err
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	n, err = rows.List{Filter: f, After: after, Limit: limit}.Count(ctx, s.reader, s.Search)

	return min(n, limit), n > limit, db.TimedOut(ctx, err)
}

// wholeSize is how much the bodies of a page of WholeJobs hold when it ends.
const wholeSize = 2 << 20

// WholeJobs returns what Jobs does, each job with what it brings along. Jobs
// with large bodies make a shorter page. There is none while the index of texts is
// rebuilt.
func (s *Store) WholeJobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	if err := cmp.Or(f.Check(), s.Search.Complete(f)); err != nil {
		return filter.List{}, err
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	list := rows.List{
		Filter: f, After: after, Limit: limit,
		Columns: rows.Columns + ", " + rows.BodyColumns, Join: " JOIN bodies AS b ON b.job_seq = j.seq",
	}
	var found rows.Found
	size, more := 0, false
	reached, err := list.ReadOn(ctx, s.reader, s.Search, func(row *sql.Rows) error {
		// The page is full before this job, which begins the next one.
		more = size >= wholeSize
		if more {
			return db.ErrEnough
		}

		err := found.ScanWhole(row)
		if n := len(found.Jobs); n > 0 {
			j := found.Jobs[n-1]
			size += len(j.Payload) + len(j.Meta) + len(j.Envelope)
		}

		return err
	})
	jobs, err := s.complete(ctx, found, err)

	page, err := pageOf(ctx, f, limit, jobs, reached, err)

	// A page that ended early has fewer jobs than the limit, which pageOf takes for the last
	// one.
	if n := len(page.Jobs); more && n > 0 {
		page.Next = f.CursorOf(page.Jobs[n-1])
	}

	return page, err
}

// complete gives the jobs of a page their policies, also when the time of the page is over.
func (s *Store) complete(ctx context.Context, found rows.Found, err error) ([]job.Job, error) {
	if ctx.Err() == nil {
		return s.policies.Complete(s.reader.In(ctx), found, err)
	}

	within, cancel := db.Finishing(ctx)
	defer cancel()

	return s.policies.Complete(s.reader.In(within), found, err)
}

// pageOf is what was found, and where the next page begins: where nothing was found, behind what a
// search has looked at.
func pageOf(ctx context.Context, f filter.Filter, limit int, jobs []job.Job, reached filter.Cursor, err error) (filter.List, error) {
	page := filter.List{Jobs: jobs, Next: reached}

	// There are more jobs, or an error may have kept them from being found.
	if len(jobs) > limit || err != nil && len(jobs) > 0 {
		page.Jobs = jobs[:min(limit, len(jobs))]
		page.Next = f.CursorOf(page.Jobs[len(page.Jobs)-1])
	}

	return page, db.TimedOut(ctx, err)
}

// DeadLetters returns one page of the open dead letters that the filter selects,
// the newest first. Like Jobs it returns what was found when it takes too long.
func (s *Store) DeadLetters(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.DeadLetterList, error) {
	if err := cmp.Or(f.Check(), s.Search.Current(f)); err != nil {
		return filter.DeadLetterList{}, err
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	var page filter.DeadLetterList

	none, err := s.Counters.NoDeadLetters(ctx, f)
	if err != nil {
		return filter.DeadLetterList{}, err
	}

	if f.Searches() && none { // the text need not be looked for
		return page, s.Search.Complete(f)
	}

	list := rows.DeadLetters(f, after, limit)
	found := rows.FoundFor(limit)
	page.DeadLetters = make([]filter.DeadLetterRow, 0, cap(found.Jobs))
	partly := s.Search.Complete(f)
	var l openDeadLetter
	reached, err := list.ReadOn(ctx, s.reader, s.Search, func(row *sql.Rows) error {
		err := found.Scan(row, &l.preview, &l.cause, &l.forwardedAt, &l.forwardedTo)
		if err == nil {
			j := &found.Jobs[len(found.Jobs)-1]
			j.Payload = l.preview
			page.DeadLetters = append(page.DeadLetters, filter.DeadLetterRow{DeadLetter: l.of(*j)})
		}

		return err
	})

	// These are the same jobs, now with their policies: one more than the limit when there is a
	// next page, and fewer than were found when a policy cannot be read.
	jobs, err := s.complete(ctx, found, cmp.Or(err, partly))
	page.DeadLetters = page.DeadLetters[:min(limit, len(jobs))]
	for i := range page.DeadLetters {
		page.DeadLetters[i].Job = jobs[i]
	}

	page.Next = reached
	if last := len(page.DeadLetters) - 1; last >= 0 && (len(jobs) > limit || err != nil) {
		page.Next = filter.Cursor{At: jobs[last].ChangedAt, Seq: jobs[last].Seq}
	}

	return page, db.TimedOut(ctx, err)
}

// openDeadLetter is what a list reads of an open dead letter beside its job. All else that
// the dead letter says, the job says too: it died and has not moved since. Pages show
// less of the payload than is read: what must be hidden in that is told by what
// follows.
type openDeadLetter struct {
	preview            []byte
	forwardedAt        int64
	cause, forwardedTo string
}

// of is the dead letter of a job.
func (l openDeadLetter) of(j job.Job) job.DeadLetter {
	failed := j.ChangedAt
	if j.Source != "" { // which may not say it, and may have refused a replay since
		failed = j.FinishedAt
	}

	return job.DeadLetter{
		JobID: j.ID, Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type,
		FailedAt: failed, Queue: j.Queue, Attempts: j.Attempts,
		Cause: job.Outcome(l.cause), ForwardedAt: db.FromMicros(l.forwardedAt), ForwardedTo: l.forwardedTo,
	}
}

// Problems says why the dead letters of these jobs were refused, by the job's
// own number.
func (s *Store) Problems(ctx context.Context, jobs []job.Job) (map[int64]string, error) {
	const query = `SELECT l.job_seq, l.problem FROM dead_letters AS l JOIN jobs AS j ON j.seq = l.job_seq AND j.run = l.run
		WHERE l.job_seq IN (SELECT value FROM json_each($1)) AND l.refused = 1`
	return db.Map[int64, string](s.reader.In(ctx), query, rows.Seqs(jobs))
}

// Changes tells what state jobs are in, for a listener that missed announced changes.
// Unknown ids are left out.
func (s *Store) Changes(ctx context.Context, ids []string) ([]job.Change, error) {
	const query = `SELECT ` + rows.Columns + ` FROM jobs WHERE id IN (SELECT value FROM json_each($1)) ORDER BY seq`

	jobs, err := s.policies.Jobs(s.reader.In(ctx), query, db.Texts(ids))
	changes := make([]job.Change, len(jobs))
	for i, j := range jobs {
		changes[i] = j.Changed()
	}

	return changes, err
}

// recentAmong is among how many of the newest jobs those of a type are looked
// for: reading so many rows takes no time that a person notices.
const recentAmong = 10_000

// Recent returns the newest jobs of a type, the newest first: at most limit of
// those that are among the newest ten thousand of all. Of each it says how it
// is, since when, and when its newest execution was.
func (s *Store) Recent(ctx context.Context, typ string, limit int) ([]job.Job, error) {
	const query = `SELECT seq, id, state, letter, held, started_at, finished_at, changed_at FROM jobs
		WHERE seq > coalesce((SELECT max(seq) FROM jobs), 0) - $2 AND type = $1 ORDER BY seq DESC LIMIT $3 + 0`

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()

	all, err := db.All(s.reader.In(ctx), query, func(j *job.Job) []any {
		j.Type = typ
		return []any{&j.Seq, &j.ID, &j.State, &j.DeadLetter, &j.Held, db.Time(&j.StartedAt), db.Time(&j.FinishedAt), db.Time(&j.ChangedAt)}
	}, typ, recentAmong, limit)

	return all, db.TimedOut(ctx, err)
}

// The bytes of payloads of which searched jobs have the beginning: each, and all
// together. Text is found in the first 32 kB, and what must be hidden in them is told
// by what follows.
const (
	searchedPayload  = 48 << 10
	searchedPayloads = 1 << 20
)

// Searched returns the jobs of a list as a search looks at them: with the error of
// the newest failure, the beginning of the payload, and the meta. When the payloads
// are large, those of the last jobs are left out.
func (s *Store) Searched(ctx context.Context, jobs []job.Job) ([]job.Job, error) {
	// A job that came as a dead letter may have no attempt that counted: its first dead letter
	// has the error then.
	const query = `SELECT j.seq, coalesce(a.error_type, l.exception, ''), coalesce(a.error_message, l.error, ''),
			substr(b.payload, 1, CAST($2 AS INTEGER)), b.meta
		FROM jobs AS j JOIN bodies AS b ON b.job_seq = j.seq
		LEFT JOIN attempts AS a ON a.job_seq = j.seq AND a.execution = (SELECT max(execution) FROM attempts WHERE job_seq = j.seq AND number > 0)
		LEFT JOIN dead_letters AS l ON l.job_seq = j.seq AND l.run = 1 AND a.execution IS NULL
		WHERE j.seq IN (SELECT value FROM json_each($1))`
	type texts struct {
		seq           int64
		failure       job.ErrorInfo
		payload, meta []byte
	}

	read, err := db.All(s.reader.In(ctx), query, func(t *texts) []any {
		return []any{&t.seq, &t.failure.Type, &t.failure.Message, &t.payload, &t.meta}
	}, rows.Seqs(jobs), searchedPayload)
	bySeq := make(map[int64]texts, len(read))
	for _, t := range read {
		bySeq[t.seq] = t
	}

	// The first payload that exceeds what is left is left out, and so are all that follow.
	all, left := slices.Clone(jobs), searchedPayloads
	for i := range all {
		t := bySeq[all[i].Seq]
		left -= len(t.payload)
		if left < 0 {
			t.payload = nil
		}

		all[i].Error, all[i].Payload, all[i].Meta = t.failure, t.payload, t.meta
	}

	return all, err
}
