package store

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
)

// patience is how long a list may search. A filter that matches little among
// much would read the whole table otherwise.
const patience = 2 * time.Second

// conditions is the WHERE clause of a list, built from fixed texts only.
type conditions struct {
	terms []string
	args  []any
}

// add appends a condition; each %s in it becomes the placeholder of a value.
func (c *conditions) add(term string, values ...any) {
	marks := make([]any, len(values))
	for i, v := range values {
		c.args = append(c.args, v)
		marks[i] = fmt.Sprintf("$%d", len(c.args))
	}
	c.terms = append(c.terms, fmt.Sprintf(term, marks...))
}

func (c *conditions) String() string {
	if len(c.terms) == 0 {
		return ""
	}
	return " WHERE " + strings.Join(c.terms, " AND ")
}

// statusTerm is the condition for a status. It repeats the conditions of the
// partial indexes word for word, without which they could not be used.
func statusTerm(s job.Status) string {
	switch s {
	case job.StatusDeadLetter:
		return "j.letter = 'stored' AND j.letter <> ''"
	case job.StatusDLQFailed:
		return "j.letter = 'refused' AND j.letter <> ''"
	case job.StatusTrashed:
		return "j.letter = 'trashed' AND j.letter <> ''"
	case job.StatusHeld:
		return "j.held = 1"
	}
	switch state := job.State(s); {
	case !slices.Contains(job.States(), state):
		return "0 = 1"
	case shelf(state) == "":
		return "j.state = '" + string(s) + "'"
	case state == job.Discarded || state == job.Retryable:
		return "j.shelf = '" + string(s) + "' AND j.shelf <> '' AND j.shelf IN ('discarded', 'retryable')"
	}
	return "j.shelf = '" + string(s) + "' AND j.shelf <> ''"
}

// subject names the columns by which jobs and dead letters are filtered alike.
type subject struct {
	table   string // has the queue, the reason and the attempts
	class   string // the error's type
	changed string // when the job came where it is
}

// match adds what jobs and dead letters are filtered by alike.
func (c *conditions) match(f filter.Filter, in subject) {
	if f.Queue != "" {
		c.add(in.table+".queue = %s", f.Queue)
	}
	if f.Reason != "" {
		c.add(in.table+".reason = %s", string(f.Reason))
	}
	c.pattern("j.type", f.Type)
	c.pattern(in.class, f.Class)
	c.span(in.table+".attempts", f.Attempts)
	c.span(in.table+".run", f.Run)
	if !f.From.IsZero() {
		c.add(in.changed+" >= %s", micros(f.From))
	}
	if !f.To.IsZero() {
		c.add(in.changed+" < %s", micros(f.To))
	}
	if f.ID != "" {
		c.add("j.id >= %s AND j.id < %s", f.ID, f.ID+"~") // '~' follows everything in an id
	}
	if f.Group != "" {
		c.add("j.group_id <> 0 AND j.group_id = (SELECT id FROM groups WHERE fingerprint = %s)", f.Group)
	}
	if f.Operation != 0 {
		c.add("j.seq IN (SELECT job_seq FROM operation_items WHERE operation_id = %s AND state = 'done')", f.Operation)
	}
}

// pattern adds a condition on a dotted name: exact, or a prefix as "email.*".
func (c *conditions) pattern(column, pattern string) {
	if prefix, ok := strings.CutSuffix(pattern, ".*"); ok {
		c.add(column+" > %s AND "+column+" < %s", prefix+".", prefix+"/") // '/' follows '.'
	} else if pattern != "" {
		c.add(column+" = %s", pattern)
	}
}

func (c *conditions) span(column string, s filter.Span) {
	if s.Min > 0 {
		c.add(column+" >= %s", s.Min)
	}
	if s.Max > 0 {
		c.add(column+" <= %s", s.Max)
	}
}

// Jobs returns one page of the jobs that the filter selects, the newest first:
// by the order of enqueueing or by the time of their last change, as
// [filter.Filter.ByEnqueueing] says. When the search takes too long it returns what was
// found together with context.DeadlineExceeded; the next page then goes on
// where it was. So it does while the index of texts is filled anew.
func (s *Store) Jobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	if err := cmp.Or(f.Check(), s.current(f)); err != nil {
		return filter.List{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query, args := jobsQuery(f, after, limit)
	partly := s.filled(f)
	jobs, err := s.policies.page(s.reading(ctx), limit, query, args...)
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
	if err := cmp.Or(f.Check(), s.filled(f)); err != nil {
		return 0, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query, args := selectJobs("1", "", f, after, limit)
	err = s.reading(ctx).query("SELECT count(*) FROM ("+query+")", func(rows *sql.Rows) error { return rows.Scan(&n) }, args...)
	return min(n, limit), n > limit, timedOut(ctx, err)
}

// wholeSize is how much the bodies of a page of WholeJobs hold when it ends.
const wholeSize = 2 << 20

// WholeJobs returns what Jobs does, each job with what it brings along. Jobs
// with large bodies make a shorter page. There is none while the index of texts is
// filled anew.
func (s *Store) WholeJobs(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.List, error) {
	if err := cmp.Or(f.Check(), s.filled(f)); err != nil {
		return filter.List{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query, args := wholeJobsQuery(f, after, limit)
	var found jobRows
	size := 0
	src := s.reading(ctx)
	err := src.query(query, func(rows *sql.Rows) error {
		if size >= wholeSize {
			return errEnough
		}
		err := found.scanWhole(rows)
		if n := len(found.jobs); n > 0 {
			j := found.jobs[n-1]
			size += len(j.Payload) + len(j.Meta) + len(j.Envelope)
		}
		return err
	}, args...)
	more := errors.Is(err, errEnough)
	if more {
		err = nil
	}
	jobs, err := s.policies.complete(src, found, err)
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
	return page, timedOut(ctx, err)
}

func jobsQuery(f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	return selectJobs(jobColumns, "", f, after, limit)
}

// wholeJobsQuery selects them with their bodies.
func wholeJobsQuery(f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	return selectJobs(jobColumns+", "+bodyColumns, " JOIN bodies AS b ON b.job_seq = j.seq", f, after, limit)
}

func selectJobs(columns, join string, f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	from, order := "jobs AS j"+indexFor(f), []string{"j.seq"}
	var where conditions
	if f.Searches() {
		from, order = "search AS s CROSS JOIN jobs AS j ON j.seq = s.rowid", []string{"s.rowid"}
		where.add("s.search MATCH %s", matching(f))
	}
	if f.Status != "" {
		where.add(statusTerm(f.Status))
	}
	changed := changedAt(f.Status)
	where.match(f, subject{"j", "j.error_type", changed})
	if !f.ByEnqueueing() {
		order = []string{changed, "j.seq"}
	}
	return where.page("SELECT "+columns+" FROM "+from+join, f, order, after, limit)
}

// indexFor names the index of a list of failures. Between two times SQLite takes
// the one for all queues and types otherwise, and reads past what the filter
// does not want.
func indexFor(f filter.Filter) string {
	failure := f.Status == job.Status(job.Discarded) || f.Status == job.Status(job.Retryable)
	switch {
	case !failure || f.Group != "" || f.ID != "" || f.Operation != 0:
		return ""
	case f.Queue != "":
		return " INDEXED BY jobs_failed_queue"
	case f.Type != "" && !strings.HasSuffix(f.Type, ".*"):
		return " INDEXED BY jobs_failed_type"
	}
	return ""
}

// changedAt is when a job of this status came where it is.
func changedAt(s job.Status) string {
	switch s {
	case job.Status(job.Active):
		return "j.started_at"
	case job.Status(job.Completed):
		return "j.finished_at"
	case "":
		return "CASE j.state WHEN 'active' THEN j.started_at WHEN 'completed' THEN j.finished_at ELSE j.changed_at END"
	}
	return "j.changed_at"
}

// page completes a query: what lies behind the cursor, in order, the newest
// first unless the filter says otherwise, and one row more than the page has.
func (c *conditions) page(columns string, f filter.Filter, order []string, after filter.Cursor, limit int) (string, []any) {
	before, direction := "<", " DESC"
	if f.Sort == filter.Oldest {
		before, direction = ">", ""
	}
	switch {
	case after == filter.Cursor{}:
	case len(order) == 1:
		c.add(order[0]+" "+before+" %s", after.Seq)
	default:
		c.add("("+strings.Join(order, ", ")+") "+before+" (%s, %s)", micros(after.At), after.Seq)
	}
	args := append(c.args, limit+1)
	return columns + c.String() + " ORDER BY " + strings.Join(order, direction+", ") + direction +
		fmt.Sprintf(" LIMIT $%d + 0", len(args)), args
}

// timedOut tells the end of the deadline from other errors.
func timedOut(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return fmt.Errorf("search: %w", ctx.Err())
	}
	return err
}

// Letters returns one page of the open dead letters that the filter selects,
// the newest first. Like Jobs it returns what was found when it takes too long.
func (s *Store) Letters(ctx context.Context, f filter.Filter, after filter.Cursor, limit int) (filter.LetterList, error) {
	if err := cmp.Or(f.Check(), s.current(f)); err != nil {
		return filter.LetterList{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var page filter.LetterList
	if f.Searches() && s.noLetters(f) { // the text need not be looked for
		return page, s.filled(f)
	}
	query, args := lettersQuery(f, after, limit)
	found := jobRowsFor(limit)
	page.Letters = make([]filter.LetterRow, 0, cap(found.jobs))
	partly := s.filled(f)
	src := s.reading(ctx)
	var l openLetter
	err := src.query(query, func(rows *sql.Rows) error {
		err := found.scan(rows, &l.preview, &l.failedAt, &l.cause, &l.forwardedAt, &l.forwardedTo)
		if err == nil {
			j := &found.jobs[len(found.jobs)-1]
			j.Payload = l.preview
			page.Letters = append(page.Letters, filter.LetterRow{DeadLetter: l.of(*j)})
		}
		return err
	}, args...)
	jobs, err := s.policies.complete(src, found, cmp.Or(err, partly))
	page.Letters = page.Letters[:min(limit, len(jobs))]
	for i := range page.Letters {
		page.Letters[i].Job = jobs[i]
	}
	if last := len(page.Letters) - 1; last >= 0 && (len(jobs) > limit || err != nil) {
		page.Next = filter.Cursor{At: page.Letters[last].FailedAt, Seq: jobs[last].Seq}
		if byJob(f) {
			page.Next.At = jobs[last].ChangedAt
		}
	}
	return page, timedOut(ctx, err)
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

const openLetterColumns = `j.seq, j.id, j.queue, j.type, j.state, j.letter, j.held, j.run, j.attempts, j.execution, j.priority,
	j.policy_id, j.ttr, j.run_at, j.enqueued_at, j.started_at, j.finished_at, j.changed_at, j.worker, j.lease_until,
	j.last_seen, j.reason, j.error_type, j.error_message, j.key, j.group_id,
	substr(b.payload, 1, 2048), l.failed_at, l.cause, l.forwarded_at, l.forwarded_to`

// of is the letter of a job.
func (l openLetter) of(j job.Job) job.DeadLetter {
	return job.DeadLetter{
		JobID: j.ID, Run: j.Run, Reason: j.Reason, Error: j.Error.Message, Exception: j.Error.Type,
		FailedAt: fromMicros(l.failedAt), Queue: j.Queue, Attempts: j.Attempts,
		Cause: job.Outcome(l.cause), ForwardedAt: fromMicros(l.forwardedAt), ForwardedTo: l.forwardedTo,
	}
}

// byJob reports whether letters are found by what their jobs know: the group or
// the type. They come in the order in which these were discarded, which is when
// they failed.
func byJob(f filter.Filter) bool {
	return !f.Searches() && (f.Group != "" || f.Type != "" && !strings.HasSuffix(f.Type, ".*"))
}

func lettersQuery(f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	const columns = `SELECT ` + openLetterColumns + ` FROM `
	from, order := "dead_letters AS l JOIN jobs AS j ON j.seq = l.job_seq", []string{"l.failed_at", "l.job_seq"}
	facts := subject{"l", "l.exception", "l.failed_at"}
	var where conditions
	switch {
	case f.Searches(): // a job is found sooner than a letter, and says the same
		from = "search AS s CROSS JOIN jobs AS j ON j.seq = s.rowid CROSS JOIN dead_letters AS l ON l.job_seq = s.rowid"
		order = []string{"s.rowid"}
		facts = subject{"j", "j.error_type", "j.changed_at"}
		where.add("s.search MATCH %s", matching(f))
		where.add("j.letter = 'stored'")
	case byJob(f):
		index := "jobs_failed_type"
		if f.Group != "" {
			index = "jobs_group"
		}
		from = "jobs AS j INDEXED BY " + index + " CROSS JOIN dead_letters AS l ON l.job_seq = j.seq"
		order = []string{"j.changed_at", "j.seq"}
		where.add(statusTerm(job.Status(job.Discarded)))
	}
	where.add("l.open = 1")
	where.match(f, facts)
	return where.page(columns+from+" JOIN bodies AS b ON b.job_seq = l.job_seq", f, order, after, limit)
}
