package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
)

// Jobs returns one page of the jobs that the filter selects, the newest first:
// by the order of enqueueing or by the time of their last change, as
// [filter.Filter.ByEnqueueing] says. When the search takes too long it returns what was
// found together with context.DeadlineExceeded; the next page then goes on
// where it was. So it does while the index of texts is filled anew.
func (s *Store) Jobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	if err := cmp.Or(f.Check(), s.Search.Current(f)); err != nil {
		return filter.List{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	query, args := rows.Select(s.Search, rows.Columns, "", f, after, limit)
	partly := s.Search.Complete(f)
	jobs, err := s.policies.Page(s.reader.In(ctx), limit, query, args...)
	return pageOf(ctx, f, limit, jobs, cmp.Or(err, partly))
}

// Count says how many jobs the filter selects. It counts no further than limit;
// more is true when there are others. When that takes too long, or the index of
// texts is filled anew, it returns context.DeadlineExceeded.
func (s *Store) Count(ctx context.Context, f filter.Filter, limit int) (n int, more bool, err error) {
	return s.count(ctx, f, filter.Cursor{}, limit)
}

// Newer is Count of the jobs that stand before a place in the list, the newest
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
	query, args := rows.Select(s.Search, "1", "", f, after, limit)
	err = s.reader.In(ctx).Query("SELECT count(*) FROM ("+query+") AS found", func(rows *sql.Rows) error { return rows.Scan(&n) }, args...)
	return min(n, limit), n > limit, db.TimedOut(ctx, err)
}

// wholeSize is how much the bodies of a page of WholeJobs hold when it ends.
const wholeSize = 2 << 20

// WholeJobs returns what Jobs does, each job with what it brings along. Jobs
// with large bodies make a shorter page. There is none while the index of texts is
// filled anew.
func (s *Store) WholeJobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	if err := cmp.Or(f.Check(), s.Search.Complete(f)); err != nil {
		return filter.List{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	query, args := rows.Select(s.Search, rows.Columns+", "+rows.BodyColumns, " JOIN bodies AS b ON b.job_seq = j.seq", f, after, limit)
	var found rows.Found
	size := 0
	src := s.reader.In(ctx)
	err := src.Query(query, func(row *sql.Rows) error {
		if size >= wholeSize {
			return db.ErrEnough
		}
		err := found.ScanWhole(row)
		if n := len(found.Jobs); n > 0 {
			j := found.Jobs[n-1]
			size += len(j.Payload) + len(j.Meta) + len(j.Envelope)
		}
		return err
	}, args...)
	more := errors.Is(err, db.ErrEnough)
	jobs, err := s.policies.Complete(src, found, db.Enough(err))
	page, err := pageOf(ctx, f, limit, jobs, err)
	if n := len(page.Jobs); more && n > 0 {
		page.Next = f.CursorOf(page.Jobs[n-1])
	}
	return page, err
}

// pageOf is what was found, and where the next page begins.
func pageOf(ctx context.Context, f filter.Filter, limit int, jobs []job.Job, err error) (filter.List, error) {
	page := filter.List{Jobs: jobs}
	if len(jobs) > limit || err != nil && len(jobs) > 0 {
		page.Jobs = jobs[:min(limit, len(jobs))]
		page.Next = f.CursorOf(page.Jobs[len(page.Jobs)-1])
	}
	return page, db.TimedOut(ctx, err)
}

// Letters returns one page of the open dead letters that the filter selects,
// the newest first. Like Jobs it returns what was found when it takes too long.
func (s *Store) Letters(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.LetterList, error) {
	if err := cmp.Or(f.Check(), s.Search.Current(f)); err != nil {
		return filter.LetterList{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var page filter.LetterList
	if f.Searches() && s.Counters.NoLetters(f) { // the text need not be looked for
		return page, s.Search.Complete(f)
	}
	query, args := rows.SelectLetters(s.Search, f, after, limit)
	found := rows.FoundFor(limit)
	page.Letters = make([]filter.LetterRow, 0, cap(found.Jobs))
	partly := s.Search.Complete(f)
	src := s.reader.In(ctx)
	var l openLetter
	err := src.Query(query, func(row *sql.Rows) error {
		err := found.Scan(row, &l.preview, &l.failedAt, &l.cause, &l.forwardedAt, &l.forwardedTo)
		if err == nil {
			j := &found.Jobs[len(found.Jobs)-1]
			j.Payload = l.preview
			page.Letters = append(page.Letters, filter.LetterRow{DeadLetter: l.of(*j)})
		}
		return err
	}, args...)
	jobs, err := s.policies.Complete(src, found, cmp.Or(err, partly))
	page.Letters = page.Letters[:min(limit, len(jobs))]
	for i := range page.Letters {
		page.Letters[i].Job = jobs[i]
	}
	if last := len(page.Letters) - 1; last >= 0 && (len(jobs) > limit || err != nil) {
		page.Next = filter.Cursor{At: page.Letters[last].FailedAt, Seq: jobs[last].Seq}
		if rows.ByJob(f) {
			page.Next.At = jobs[last].ChangedAt
		}
	}
	return page, db.TimedOut(ctx, err)
}

// openLetter is what a list reads of an open letter beside its job. All else that
// the letter says, the job says too: it died and has not moved since. Pages show
// less of the payload than is read: what must be hidden in that is told by what
// follows.
type openLetter struct {
	preview               []byte
	failedAt, forwardedAt int64
	cause, forwardedTo    string
}

// of is the letter of a job.
func (l openLetter) of(j job.Job) job.DeadLetter {
	return job.DeadLetter{
		JobID: j.ID, Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type,
		FailedAt: db.FromMicros(l.failedAt), Queue: j.Queue, Attempts: j.Attempts,
		Cause: job.Outcome(l.cause), ForwardedAt: db.FromMicros(l.forwardedAt), ForwardedTo: l.forwardedTo,
	}
}
