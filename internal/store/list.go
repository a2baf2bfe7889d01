package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

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

// match adds what jobs and dead letters are filtered by alike; table has the
// queue and the reason.
func (c *conditions) match(f job.Filter, table string) {
	if f.Queue != "" {
		c.add(table+".queue = %s", f.Queue)
	}
	if f.Reason != "" {
		c.add(table+".reason = %s", string(f.Reason))
	}
	if prefix, ok := strings.CutSuffix(f.Type, ".*"); ok {
		c.add("j.type >= %s AND j.type < %s", prefix+".", prefix+"/") // '/' follows '.'
	} else if f.Type != "" {
		c.add("j.type = %s", f.Type)
	}
}

// text adds a search in the error's type and message, in which % and _ mean
// themselves.
func (c *conditions) text(search, typ, message string) {
	if search != "" {
		pattern := "%" + strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(search) + "%"
		c.add("("+typ+` LIKE %s ESCAPE '\' OR `+message+` LIKE %s ESCAPE '\')`, pattern, pattern)
	}
}

// Jobs returns one page of the jobs that the filter selects, the newest first:
// by the order of enqueueing or by the time of their last change, as
// [job.Status.ByEnqueueing] says. When the search takes too long it returns what was
// found together with context.DeadlineExceeded; the next page then goes on
// where it was.
func (s *Store) Jobs(ctx context.Context, f job.Filter, after job.Cursor, limit int) (job.List, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query, args := jobsQuery(f, after, limit)
	jobs, err := s.policies.jobs(s.reading(ctx), query, args...)
	page := job.List{Jobs: jobs}
	if len(jobs) > limit || err != nil && len(jobs) > 0 {
		page.Jobs = jobs[:min(limit, len(jobs))]
		page.Next = cursorOf(page.Jobs[len(page.Jobs)-1], f.Status)
	}
	return page, timedOut(ctx, err)
}

func jobsQuery(f job.Filter, after job.Cursor, limit int) (string, []any) {
	const columns = `SELECT ` + jobColumns + ` FROM jobs AS j`
	var where conditions
	if f.Status != "" {
		where.add(statusTerm(f.Status))
	}
	changed := "j.changed_at"
	if f.Status == job.Status(job.Active) {
		changed = "j.started_at"
	}
	order := " ORDER BY j.seq DESC"
	if !f.Status.ByEnqueueing() {
		order = " ORDER BY " + changed + " DESC, j.seq DESC"
	}
	where.match(f, "j")
	where.text(f.Error, "j.error_type", "j.error_message")
	switch {
	case after == job.Cursor{}:
	case !f.Status.ByEnqueueing():
		where.add("("+changed+", j.seq) < (%s, %s)", micros(after.At), after.Seq)
	default:
		where.add("j.seq < %s", after.Seq)
	}
	args := append(where.args, limit+1)
	return columns + where.String() + order + fmt.Sprintf(" LIMIT $%d + 0", len(args)), args
}

// cursorOf is the place of a job in a list.
func cursorOf(j job.Job, status job.Status) job.Cursor {
	if status.ByEnqueueing() {
		return job.Cursor{At: j.EnqueuedAt, Seq: j.Seq}
	}
	return job.Cursor{At: j.ChangedAt, Seq: j.Seq}
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
func (s *Store) Letters(ctx context.Context, f job.Filter, after job.Cursor, limit int) (job.LetterList, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	query, args := lettersQuery(f, after, limit)
	var page job.LetterList
	var found jobRows
	src := s.reading(ctx)
	err := src.query(query, func(rows *sql.Rows) error {
		var l letterRow
		var preview []byte
		err := found.scan(rows, append([]any{&preview}, l.fields()...)...)
		if err == nil {
			found.jobs[len(found.jobs)-1].Payload = preview
			page.Letters = append(page.Letters, job.LetterRow{DeadLetter: l.letter(found.jobs[len(found.jobs)-1].ID)})
		}
		return err
	}, args...)
	jobs, err := s.policies.complete(src, found, err)
	page.Letters = page.Letters[:min(limit, len(jobs))]
	for i := range page.Letters {
		page.Letters[i].Job = jobs[i]
	}
	if last := len(page.Letters) - 1; last >= 0 && (len(jobs) > limit || err != nil) {
		page.Next = job.Cursor{At: page.Letters[last].FailedAt, Seq: jobs[last].Seq}
	}
	return page, timedOut(ctx, err)
}

func lettersQuery(f job.Filter, after job.Cursor, limit int) (string, []any) {
	const columns = `SELECT ` + letterRowColumns + ` FROM dead_letters AS l
		JOIN jobs AS j ON j.seq = l.job_seq JOIN bodies AS b ON b.job_seq = l.job_seq`
	var where conditions
	where.add("l.open = 1")
	where.match(f, "l")
	where.text(f.Error, "l.exception", "l.error")
	if (after != job.Cursor{}) {
		where.add("(l.failed_at, l.job_seq) < (%s, %s)", micros(after.At), after.Seq)
	}
	args := append(where.args, limit+1)
	return columns + where.String() + fmt.Sprintf(" ORDER BY l.failed_at DESC, l.job_seq DESC LIMIT $%d + 0", len(args)), args
}
