package rows

import (
	"fmt"
	"slices"
	"strings"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// ListState is the state of a job in the lists that the schema keeps apart: ”
// for the states that every job passes through.
func ListState(s job.State) string {
	switch s {
	case job.Available, job.Active, job.Completed:
		return ""
	}

	return string(s)
}

// statusTerm is the condition for a status. It repeats the conditions of the
// partial indexes word for word, without which they could not be used.
func statusTerm(f filter.Filter) string {
	const discarded = "j.list_state = 'discarded' AND j.list_state <> '' AND j.list_state IN ('discarded', 'retryable')"
	s := f.Status
	switch s {
	// Every dead letter is discarded, which only the indexes of groups and types have to be told.
	case job.StatusDeadLetter:
		if f.Group != "" || exact(f.Type) {
			return "j.letter = 'stored' AND j.letter <> '' AND " + discarded
		}
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
	case ListState(state) == "":
		return "j.state = '" + string(s) + "'"
	case state == job.Discarded:
		return discarded
	case state == job.Retryable:
		return "j.list_state = 'retryable' AND j.list_state <> '' AND j.list_state IN ('discarded', 'retryable')"
	}

	return "j.list_state = '" + string(s) + "' AND j.list_state <> ''"
}

// match adds the conditions by which jobs and dead letters are filtered alike.
// changed is when the job came where it is.
func match(where *clause.Where, f filter.Filter, changed string) {
	where.Equal("j.queue", f.Queue)

	if name := f.Foreign(); name != "" {
		where.Add("j.source <> '' AND j.source = %s", name)
	}

	where.Equal("j.reason", string(f.Reason))
	where.Pattern("j.type", f.Type)
	where.Pattern("j.error_type", f.Class)
	span(where, "j.attempts", f.Attempts)

	if f.Attempts.Max > 0 && f.Attempts.Min == 0 { // a number that a source does not say is not a small one
		where.Add("(j.attempts > 0 OR j.source = '')")
	}

	span(where, "j.run", f.Run)
	where.Between(changed, f.From, f.To)

	if f.ID != "" {
		where.Add("j.id >= %s AND j.id < %s", f.ID, f.ID+"~") // '~' follows everything in an id
	}

	switch groups := f.Groups(); len(groups) {
	case 0:
	case 1:
		where.Add("j.group_id <> 0 AND j.group_id = (SELECT id FROM groups WHERE fingerprint = %s)", f.Group)
	default:
		const any = "j.group_id <> 0 AND j.group_id IN (SELECT id FROM groups WHERE fingerprint IN (SELECT value FROM json_each(%s)))"
		where.Add(any, db.Texts(groups))
	}

	if f.Operation != 0 {
		where.Add("j.seq IN (SELECT job_seq FROM operation_items WHERE operation_id = %s AND state = 'done')", f.Operation)
	}
}

func span(where *clause.Where, column string, s filter.Span) {
	if s.Min > 0 {
		where.Add(column+" >= %s", s.Min)
	}

	if s.Max > 0 {
		where.Add(column+" <= %s", s.Max)
	}
}

// Part is a part of a list: what is behind one place, up to another one. Those that are zero are
// the beginning and the end.
type Part struct {
	After, Until filter.Cursor

	// Size is how many jobs of a wider filter are looked at, where it is not zero. The limit tells
	// PostgreSQL how few they are, which it does not know from the places.
	Size  int
	Among filter.Filter
}

// Select is the query of one page of the jobs that the filter selects, in its
// order, and of one job more. join adds tables to jobs AS j.
func Select(search db.Finder, columns, join string, f filter.Filter, of Part, limit int) (string, []any) {
	from, order := "jobs AS j"+indexFor(f), orderOf(f)
	var where clause.Where
	if of.Size > 0 {
		among, args := Select(search, "j.*", "", of.Among, Part{After: of.After}, of.Size-1)
		from, where.Args = "("+among+") AS j", args
	}

	if f.Searches() {
		from, order[0] = search.From(of.Until != filter.Cursor{})
		search.Match(&where, f)
	}

	if f.Status != "" {
		where.Add(statusTerm(f))
	}

	match(&where, f, changedAt(f.Status))

	if f.Order() == filter.Next {
		return selectNext(&where, columns, join, f, of.After, limit)
	}

	return page(&where, "SELECT "+columns+" FROM "+from+join, f, order, of, limit)
}

// orderOf are the columns by which a list is sorted, unless its jobs run next.
func orderOf(f filter.Filter) []string {
	switch {
	case f.ByEnqueueing():
		return []string{"j.seq"}
	case f.Status == "": // jobs of a source, of which none is active
		return []string{"j.changed_at", "j.seq"}
	}

	return []string{changedAt(f.Status), "j.seq"}
}

// selectNext is Select of jobs that wait, by the time at which they run next. Their
// index by that time is one for each queue: a list of all queues takes the soonest of
// each, and of those the soonest.
func selectNext(where *clause.Where, columns, join string, f filter.Filter, after filter.Cursor, limit int) (string, []any) {
	const queues = "(SELECT queue AS name FROM depths WHERE status = '%s' AND n > 0) AS q CROSS JOIN jobs AS j"
	from := "jobs AS j INDEXED BY jobs_due"

	where.Add("j.list_state IN ('scheduled', 'retryable')") // as the index says

	if after != (filter.Cursor{}) {
		where.Add("(j.run_at, j.seq) > (%s, %s)", db.Micros(after.At), after.Seq)
	}

	if f.Queue == "" {
		where.Add("j.queue = q.name")
	}

	last, args := where.Limit(limit + 1)
	soonest := where.String() + " ORDER BY j.run_at, j.seq" + last
	if f.Queue == "" {
		soonest = " WHERE j.seq IN (SELECT j.seq FROM " + from + soonest + ") ORDER BY j.run_at, j.seq" + last
		from = fmt.Sprintf(queues, f.Status)
	}

	return "SELECT " + columns + " FROM " + from + join + soonest, args
}

// indexFor names the index of a list of failures. Between two times SQLite takes
// the one for all queues and types otherwise, and reads past what the filter
// does not want.
func indexFor(f filter.Filter) string {
	failure := f.Status == job.Status(job.Discarded) || f.Status == job.Status(job.Retryable)
	deadLetters := f.Status == job.StatusDeadLetter
	switch {
	case !failure && !deadLetters || f.ID != "" || f.Operation != 0 || f.Searches():
		return ""
	case deadLetters && len(f.Groups()) == 1:
		return " INDEXED BY jobs_group"
	case !deadLetters && f.Group != "":
		return ""
	case deadLetters && exact(f.Type), failure && f.Queue == "" && exact(f.Type):
		return " INDEXED BY jobs_failed_type"
	case deadLetters && f.Queue != "":
		return " INDEXED BY jobs_letter_queue"
	case deadLetters && f.Source != "":
		return " INDEXED BY jobs_letter_source"
	case deadLetters && f.Reason != "":
		return " INDEXED BY jobs_letter_reason"
	case deadLetters:
		return " INDEXED BY jobs_letter"
	case failure && f.Queue != "":
		return " INDEXED BY jobs_failed_queue"
	}

	return ""
}

// exact reports whether a pattern names one type.
func exact(pattern string) bool { return pattern != "" && !strings.HasSuffix(pattern, ".*") }

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

// page completes a query: what is in the part, in order, the newest
// first unless the filter says otherwise, and one row more than the page has.
func page(where *clause.Where, columns string, f filter.Filter, order []string, of Part, limit int) (string, []any) {
	behind, upTo, direction := "<", ">=", " DESC"
	if f.Sort == filter.Oldest {
		behind, upTo, direction = ">", "<=", ""
	}

	bound(where, order, behind, of.After)
	bound(where, order, upTo, of.Until)

	last, args := where.Limit(limit + 1)

	return columns + where.String() + " ORDER BY " + strings.Join(order, direction+", ") + direction + last, args
}

// bound adds the condition that a job is on one side of a place, unless that is zero.
func bound(where *clause.Where, order []string, side string, place filter.Cursor) {
	switch {
	case place == filter.Cursor{}:
	case len(order) == 1:
		where.Add(order[0]+" "+side+" %s", place.Seq)
	default:
		where.Add("("+strings.Join(order, ", ")+") "+side+" (%s, %s)", db.Micros(place.At), place.Seq)
	}
}

const deadLetterColumns = `j.seq, j.id, j.queue, j.source, j.type, j.state, j.letter, j.held, j.unbegun, j.run, j.attempts, j.execution,
	j.priority, j.policy_id, j.ttr, j.run_at, j.enqueued_at, j.started_at, j.finished_at, j.changed_at, j.worker, j.lease_until,
	j.last_seen, j.reason, j.error_type, j.error_message, j.key, j.group_id,
	substr(b.payload, 1, 2048), l.cause, l.forwarded_at, l.forwarded_to`

// DeadLetters is a list of open dead letters: [Columns] of each job, the first 2048 bytes of its
// payload, and of the dead letter cause, forwarded_at and forwarded_to. All else that an open dead
// letter says, its job says too: it died and has not moved since.
func DeadLetters(f filter.Filter, after filter.Cursor, limit int) List {
	const join = ` CROSS JOIN dead_letters AS l ON l.job_seq = j.seq AND l.run = j.run CROSS JOIN bodies AS b ON b.job_seq = j.seq`
	f.Status = job.StatusDeadLetter

	return List{Filter: f, After: after, Limit: limit, Columns: deadLetterColumns, Join: join}
}
