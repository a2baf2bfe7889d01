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

	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
)

const groupColumns = `g.id, g.fingerprint, g.type, g.class, g.message, g.frames, g.state, g.state_at, g.state_by,
	g.reopened_at, g.reopened_by, g.until, g.until_count, g.until_rate, g.note, g.first_seen, g.last_seen,
	g.failures, g.dead, g.retrying, g.replayed, g.recovered, g.relapsed`

// scanGroup reads groupColumns, whose further columns go to extra.
func scanGroup(rows *sql.Rows, extra ...any) (g failures.Group, err error) {
	var frames string
	var stateAt, reopened, until, first, last int64
	err = rows.Scan(append([]any{
		&g.Number, &g.Fingerprint, &g.Type, &g.Class, &g.Message, &frames, &g.State, &stateAt, &g.StateBy,
		&reopened, &g.ReopenedBy, &until, &g.Patience.Count, &g.Rate, &g.Note, &first, &last,
		&g.Failures, &g.Dead, &g.Retrying, &g.Replayed, &g.Recovered, &g.Relapsed,
	}, extra...)...)
	if frames != "" {
		g.Frames = strings.Split(frames, "\n")
	}
	g.StateAt, g.ReopenedAt, g.Until = fromMicros(stateAt), fromMicros(reopened), fromMicros(until)
	g.FirstSeen, g.LastSeen = fromMicros(first), fromMicros(last)
	return g, err
}

// Groups returns one page of the error groups that the filter selects, in its
// order.
func (s *Store) Groups(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var page failures.List
	err := s.consistently(ctx, func(src source) error {
		query, args := groupsQuery(f, after, limit)
		err := src.query(query, func(rows *sql.Rows) error {
			if len(page.Groups) > limit {
				return errEnough
			}
			g, err := scanGroup(rows)
			if f.Text == "" || f.Finds(s.redact.group(g)) {
				page.Groups = append(page.Groups, g)
			}
			return err
		}, args...)
		if err != nil && !errors.Is(err, errEnough) {
			return err
		}
		if len(page.Groups) > limit {
			page.Groups = page.Groups[:limit]
			last := page.Groups[limit-1]
			page.Next = failures.Cursor{Dead: last.Dead, Seen: last.LastSeen, Number: last.Number}
		}
		return addParts(src, now, page.Groups)
	})
	return page, timedOut(ctx, err)
}

// errEnough ends a query of which enough was read.
var errEnough = errors.New("enough was read")

// group is a group as it can be searched.
func (r redaction) group(g failures.Group) failures.Group {
	g.Class, g.Message, g.Note = r.text(g.Class), r.text(g.Message), r.text(g.Note)
	return g
}

// groupsQuery selects groups; of those that may hold a text, as far as that is not
// hidden, all.
func groupsQuery(f failures.Filter, after failures.Cursor, limit int) (string, []any) {
	const columns = `SELECT ` + groupColumns + ` FROM groups AS g`
	var where conditions
	if f.State != "" {
		where.add("g.state = %s", string(f.State))
	}
	if f.Queue != "" {
		where.add("EXISTS (SELECT 1 FROM group_queues WHERE group_id = g.id AND queue = %s)", f.Queue)
	}
	where.pattern("g.type", f.Type)
	if f.Text != "" {
		pattern := "%" + likely(f.Text) + "%"
		where.add(`(g.class LIKE %s ESCAPE '\' OR g.message LIKE %s ESCAPE '\' OR g.note LIKE %s ESCAPE '\')`, pattern, pattern, pattern)
	}
	order := "g.dead DESC, g.last_seen DESC, g.id DESC"
	next := after != failures.Cursor{}
	if f.Sort == failures.NewestSeen {
		order = "g.last_seen DESC, g.id DESC"
		if next {
			where.add("(g.last_seen, g.id) < (%s, %s)", micros(after.Seen), after.Number)
		}
	} else if next {
		where.add("(g.dead, g.last_seen, g.id) < (%s, %s, %s)", after.Dead, micros(after.Seen), after.Number)
	}
	if f.Text != "" {
		return columns + where.String() + " ORDER BY " + order, where.args
	}
	args := append(where.args, limit+1)
	return columns + where.String() + " ORDER BY " + order + fmt.Sprintf(" LIMIT $%d + 0", len(args)), args
}

// TopGroups returns the open error groups with the most failures in the last
// day, the most first.
func (s *Store) TopGroups(ctx context.Context, now time.Time, limit int) ([]failures.Group, error) {
	const query = `SELECT ` + groupColumns + ` FROM groups AS g WHERE g.id IN (SELECT value FROM json_each($1))`
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var all []failures.Group
	err := s.consistently(ctx, func(src source) error {
		numbers, err := topGroups(src, firstHour(now), limit)
		if err != nil {
			return err
		}
		all = make([]failures.Group, len(numbers))
		err = src.query(query, func(rows *sql.Rows) error {
			g, err := scanGroup(rows)
			all[slices.Index(numbers, g.Number)] = g
			return err
		}, array(numbers))
		if err != nil {
			return err
		}
		return addParts(src, now, all)
	})
	return all, timedOut(ctx, err)
}

// topGroups returns the numbers of the groups that failed most since an hour. It
// goes by what they failed in the day before their newest failure, which is
// never less, and so needs no look at most of them.
func topGroups(src source, first int64, limit int) ([]int64, error) {
	const query = `SELECT id, last_seen, day, (SELECT coalesce(sum(failures), 0) FROM group_hours WHERE group_id = id AND hour >= $1)
		FROM groups WHERE state = 'open' ORDER BY day DESC`
	type top struct{ number, seen, failures int64 }
	var all []top
	err := src.query(query, func(rows *sql.Rows) error {
		var t top
		var most int64
		if err := rows.Scan(&t.number, &t.seen, &most, &t.failures); err != nil {
			return err
		}
		if most == 0 || len(all) == limit && most < all[limit-1].failures {
			return errEnough
		}
		if t.failures > 0 {
			all = append(all, t)
			slices.SortFunc(all, func(a, b top) int {
				return cmp.Or(cmp.Compare(b.failures, a.failures), cmp.Compare(b.seen, a.seen), cmp.Compare(b.number, a.number))
			})
			all = all[:min(len(all), limit)]
		}
		return nil
	}, first)
	if errors.Is(err, errEnough) {
		err = nil
	}
	numbers := make([]int64, len(all))
	for i, t := range all {
		numbers[i] = t.number
	}
	return numbers, err
}

// lastDay is how many hours a group shows.
const lastDay = 24

// addParts gives groups their queues and their last day.
func addParts(src source, now time.Time, groups []failures.Group) error {
	const (
		queues = `SELECT group_id, queue, failures FROM group_queues WHERE group_id IN (SELECT value FROM json_each($1))
			ORDER BY failures DESC, queue`
		hours = `SELECT group_id, hour, failures FROM group_hours WHERE group_id IN (SELECT value FROM json_each($1)) AND hour >= $2`
	)
	if len(groups) == 0 {
		return nil
	}
	byNumber, numbers := map[int64]*failures.Group{}, make([]int64, len(groups))
	for i := range groups {
		g := &groups[i]
		g.LastDay = make([]int64, lastDay)
		byNumber[g.Number], numbers[i] = g, g.Number
	}
	theirs, first := array(numbers), firstHour(now)
	var number int64
	err := src.query(queues, func(rows *sql.Rows) error {
		var share failures.Share
		err := rows.Scan(&number, &share.Name, &share.Count)
		byNumber[number].Queues = append(byNumber[number].Queues, share)
		return err
	}, theirs)
	if err != nil {
		return err
	}
	return src.query(hours, func(rows *sql.Rows) error {
		var hour, n int64
		err := rows.Scan(&number, &hour, &n)
		if i := hour - first; i < lastDay {
			byNumber[number].LastDay[i] = n
		}
		return err
	}, theirs, first)
}

// firstHour is the oldest of the hours that are shown.
func firstHour(now time.Time) int64 { return micros(now)/microsPerHour - lastDay + 1 }

// GroupTallies counts the groups by state, in the order of failures.States.
func (s *Store) GroupTallies(ctx context.Context) ([]failures.Tally, error) {
	const query = `SELECT state, count(*), sum(dead), sum(retrying) FROM groups GROUP BY state`
	var all []failures.Tally
	for _, state := range failures.States() {
		all = append(all, failures.Tally{State: state})
	}
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error {
		var t failures.Tally
		err := rows.Scan(&t.State, &t.Groups, &t.Dead, &t.Retrying)
		if i := slices.Index(failures.States(), t.State); i >= 0 {
			all[i] = t
		}
		return err
	})
	return all, err
}

// groupJobs is how many jobs the page of a group shows, and wholePayload how
// large a payload may be to be shown with it.
const (
	groupJobs    = 25
	wholePayload = 16 << 10
)

// Group returns everything that is known of an error group, as of one commit,
// or job.ErrNotFound.
func (s *Store) Group(ctx context.Context, now time.Time, fingerprint string) (d failures.Detail, err error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err = s.consistently(ctx, func(src source) error {
		var seq, execution int64
		if d.Group, err = oneGroup(src, `fingerprint = $1`, fingerprint, &seq, &execution); err != nil {
			return err
		}
		groups := []failures.Group{d.Group}
		if err := addParts(src, now, groups); err != nil {
			return err
		}
		d.Group = groups[0]
		if d.Hours, err = groupHours(src, d.Number, firstHour(now)); err != nil {
			return err
		}
		if d.Sample, err = s.sample(src, seq, execution); err != nil {
			return err
		}
		d.Jobs, err = s.groupJobs(src, d.Number)
		return err
	})
	return d, timedOut(ctx, err)
}

// oneGroup returns the group that a fixed condition selects, or
// job.ErrNotFound; sample gets the failure that stands for all.
func oneGroup(src source, condition string, value any, sample ...any) (g failures.Group, err error) {
	query := `SELECT ` + groupColumns + `, g.sample_seq, g.sample_execution FROM groups AS g WHERE g.` + condition
	if len(sample) == 0 {
		sample = []any{new(int64), new(int64)}
	}
	found := false
	err = src.query(query, func(rows *sql.Rows) (err error) {
		found = true
		g, err = scanGroup(rows, sample...)
		return err
	}, value)
	if err == nil && !found {
		err = fmt.Errorf("error group %s: %w", clip.Text(fmt.Sprint(value), 64), job.ErrNotFound)
	}
	return g, err
}

// GroupsOf returns the error groups to which the jobs of dead letters belong, by
// their numbers, from memory: of each its fingerprint, and how many failures it
// has.
func (s *Store) GroupsOf(_ context.Context, letters []filter.LetterRow) (map[int64]failures.Group, error) {
	s.counts.RLock()
	defer s.counts.RUnlock()
	all := make(map[int64]failures.Group, len(letters))
	for _, l := range letters {
		fingerprint := s.rollup.fingerprints[l.Job.Group]
		if g := s.rollup.groups[fingerprint]; g != nil {
			known := failures.Group{Number: g.id, Failures: g.failures}
			known.Fingerprint = fingerprint
			all[g.id] = known
		}
	}
	return all, nil
}

func groupHours(src source, number, first int64) ([]failures.Hour, error) {
	const query = `SELECT hour, failures, final FROM group_hours WHERE group_id = $1 AND hour >= $2`
	hours := make([]failures.Hour, lastDay)
	for i := range hours {
		hours[i].At = fromMicros((first + int64(i)) * microsPerHour)
	}
	err := src.query(query, func(rows *sql.Rows) error {
		var hour, failures, final int64
		err := rows.Scan(&hour, &failures, &final)
		if i := hour - first; i < lastDay {
			hours[i].Failures, hours[i].Final = failures, final
		}
		return err
	}, number, first)
	return hours, err
}

// sample returns the failure that stands for all, the zero Sample when its job
// was removed.
func (s *Store) sample(src source, seq, execution int64) (failures.Sample, error) {
	const query = `SELECT ` + jobColumns + ` FROM jobs WHERE seq = $1`
	jobs, err := s.policies.jobs(src, query, seq)
	if err != nil || len(jobs) == 0 {
		return failures.Sample{}, err
	}
	all, err := attempts(src, seq)
	found := failures.Sample{Job: jobs[0]}
	for _, a := range all {
		if int64(a.Execution) == execution {
			found.Attempt = a
		}
	}
	return found, err
}

// groupJobs returns the newest jobs that are dead for a group, or wait to be
// tried again, with their payloads unless these are large: the beginning is
// enough to be shown then.
func (s *Store) groupJobs(src source, number int64) ([]job.Job, error) {
	const query = `SELECT ` + jobColumns + `, iif(length(payload) <= $3, payload, substr(payload, 1, 2048)) FROM jobs
		JOIN bodies ON job_seq = seq WHERE group_id = $1 AND group_id <> 0 AND shelf = $2
			AND letter <> 'trashed' ORDER BY changed_at DESC, seq DESC LIMIT $4 + 0`
	var found jobRows
	for _, state := range []job.State{job.Discarded, job.Retryable} {
		err := src.query(query, func(rows *sql.Rows) error {
			var payload []byte
			err := found.scan(rows, &payload)
			if err == nil {
				found.jobs[len(found.jobs)-1].Payload = payload
			}
			return err
		}, number, string(state), wholePayload, groupJobs)
		if err != nil {
			return nil, err
		}
	}
	jobs, err := s.policies.complete(src, found, nil)
	slices.SortStableFunc(jobs, func(a, b job.Job) int {
		return cmp.Or(b.ChangedAt.Compare(a.ChangedAt), cmp.Compare(b.Seq, a.Seq))
	})
	return jobs[:min(len(jobs), groupJobs)], err
}

// groupOperations is how many operations a group shows.
const groupOperations = 10

// GroupOperations returns the newest operations whose filter names the group.
func (s *Store) GroupOperations(ctx context.Context, fingerprint string) ([]operation.Operation, error) {
	const query = `SELECT ` + operationColumns + ` FROM operations WHERE (' ' || filter || ' ') LIKE $1 ESCAPE '\' ORDER BY id DESC LIMIT $2 + 0`
	return operations(s.reading(ctx), query, "% group:"+likely(fingerprint)+" %", groupOperations)
}

// likely is a text in a pattern of LIKE: % and _ mean themselves.
func likely(s string) string { return strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(s) }
