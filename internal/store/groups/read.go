package groups

import (
	"cmp"
	"context"
	"math"
	"slices"
	"strings"
	"time"

	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// groupColumns are the columns of a group; the hours and queues that belong to it
// are in tables of their own (see addParts).
const groupColumns = `g.id, g.fingerprint, g.type, g.class, g.message, g.frames, g.state, g.state_at, g.state_by,
	g.reopened_at, g.reopened_by, g.until, g.until_count, g.until_rate, g.note, g.first_seen, g.last_seen,
	g.failures, g.dead, g.refused, g.retrying, g.replayed, g.recovered, g.relapsed`

// groupFields returns the fields of g into which groupColumns are scanned, in their order.
func groupFields(g *failures.Group) []any {
	return []any{
		&g.Number, &g.Fingerprint, &g.Type, &g.Class, &g.Message, (*frames)(&g.Frames), &g.State, db.Time(&g.StateAt), &g.StateBy,
		db.Time(&g.ReopenedAt), &g.ReopenedBy, db.Time(&g.Until), &g.Patience.Count, &g.Rate, &g.Note,
		db.Time(&g.FirstSeen), db.Time(&g.LastSeen),
		&g.Failures, &g.Dead, &g.Refused, &g.Retrying, &g.Replayed, &g.Recovered, &g.Relapsed,
	}
}

// frames are the top frames of a stack trace, which are stored as one text with a line for each.
type frames []string

// Scan splits the text into its lines.

func (f *frames) Scan(value any) error {
	if text, _ := value.(string); text != "" {
		*f = strings.Split(text, "\n")
	}
	return nil
}

// List returns at most limit of the error groups that the filter selects, in the order that it
// asks for, beginning after a cursor. It gives up with context.DeadlineExceeded after
// db.Patience. A filter by a class that contains a secret finds nothing.
func (p *Projection) List(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
	if p.hidden(f.Class) {
		return failures.List{}, nil
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var page failures.List
	err := p.reader.Consistently(ctx, func(src db.Source) error {
		// A query may have found the text of the filter within a secret. Only a group that has the
		// text outside its secrets is shown, so another query can be needed to fill the page.
		more := true
		for more && len(page.Groups) <= limit {
			query, args := groupsQuery(f, after, limit)

			found, err := db.All(src, query, groupFields, args...)
			if err != nil {
				return err
			}

			more = len(found) > limit
			for _, g := range found {
				after = cursorOf(g)
				if f.Text == "" || f.Finds(p.findable(g)) {
					page.Groups = append(page.Groups, g)
				}
			}
		}

		// A query asks for one group more than the limit. If it is there, there is a next page.
		if len(page.Groups) > limit {
			page.Groups = page.Groups[:limit]
			page.Next = cursorOf(page.Groups[limit-1])
		}

		return addParts(src, now, page.Groups)
	})

	return page, db.TimedOut(ctx, err)
}

// cursorOf is the place of a group in a list.
func cursorOf(g failures.Group) failures.Cursor {
	return failures.Cursor{Dead: g.Dead, Seen: g.LastSeen, Number: g.Number}
}

// hidden reports whether a class contains a secret. A filter by such a class finds nothing, so
// that no user can guess the secret by filtering.
func (p *Projection) hidden(class string) bool { return p.redact(class) != class }

// findable returns the group without its secrets, for a search by text: so no user can guess a
// secret by searching.
func (p *Projection) findable(g failures.Group) failures.Group {
	g.Class, g.Message, g.Note = p.redact(g.Class), p.redact(g.Message), p.redact(g.Note)
	return g
}

// groupsQuery returns the query for one page of groups in the order of the filter, and for one
// group more.
func groupsQuery(f failures.Filter, after failures.Cursor, limit int) (string, []any) {
	const columns = `SELECT ` + groupColumns + ` FROM groups AS g`

	where := selected(f)
	if f.Text != "" {
		pattern := "%" + clause.Like(f.Text) + "%"
		where.Add(`(g.class LIKE %s ESCAPE '\' OR g.message LIKE %s ESCAPE '\' OR g.note LIKE %s ESCAPE '\')`, pattern, pattern, pattern)
	}

	// The groups with the most dead jobs come first, or those with the newest failure. The page
	// begins after the cursor in that order.
	order := "g.dead DESC, g.last_seen DESC, g.id DESC"
	next := after != failures.Cursor{}
	if f.Sort == failures.NewestSeen {
		order = "g.last_seen DESC, g.id DESC"

		if next {
			where.Add("(g.last_seen, g.id) < (%s, %s)", db.Micros(after.Seen), after.Number)
		}
	} else if next {
		where.Add("(g.dead, g.last_seen, g.id) < (%s, %s, %s)", after.Dead, db.Micros(after.Seen), after.Number)
	}

	last, args := where.Limit(limit + 1)

	return columns + where.String() + " ORDER BY " + order + last, args
}

// selected returns the conditions of a filter of groups, except for the one of its text.
func selected(f failures.Filter) clause.Where {
	var where clause.Where
	where.Equal("g.state", string(f.State))
	where.Equal("g.class", f.Class)

	if f.Queue != "" {
		where.Add("EXISTS (SELECT 1 FROM group_queues WHERE group_id = g.id AND queue = %s)", f.Queue)
	}

	if f.Source != "" {
		where.Add("EXISTS (SELECT 1 FROM group_queues WHERE group_id = g.id AND source = %s)", f.Source)
	}

	where.Pattern("g.type", f.Type)

	return where
}

// Top returns at most limit open error groups, those with the most failures in the last day
// first. It gives up with context.DeadlineExceeded after db.Patience.
func (p *Projection) Top(ctx context.Context, now time.Time, limit int) ([]failures.Group, error) {
	const query = `SELECT ` + groupColumns + ` FROM groups AS g WHERE g.id IN (SELECT value FROM json_each($1))`

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var all []failures.Group
	err := p.reader.Consistently(ctx, func(src db.Source) error {
		numbers, err := topGroups(src, firstHour(now), limit)
		if err != nil {
			return err
		}

		all, err = db.All(src, query, groupFields, db.Numbers(numbers))
		if err != nil {
			return err
		}

		// The query returns the groups in any order; numbers has the right one.
		slices.SortFunc(all, func(a, b failures.Group) int {
			return cmp.Compare(slices.Index(numbers, a.Number), slices.Index(numbers, b.Number))
		})

		return addParts(src, now, all)
	})

	return all, db.TimedOut(ctx, err)
}

// topGroups returns the numbers of the open groups with the most failures since the hour first.
//
// Counting the failures of every group would take long. Each row has an upper bound of that
// count: the failures in the 24 hours that end with the newest failure of the group. topGroups
// reads the groups by this bound, the highest first, some at a time, and stops where the next ones
// cannot come before those that it has found.
func topGroups(src db.Source, first int64, limit int) ([]int64, error) {
	var all []topGroup
	last := topGroup{bound: math.MaxInt64}

	more := true
	for more {
		next, err := highest(src, first, last)
		if err != nil {
			return nil, err
		}

		all = append(all, next...)
		slices.SortFunc(all, func(a, b topGroup) int {
			return cmp.Or(cmp.Compare(b.failures, a.failures), cmp.Compare(b.seen, a.seen), cmp.Compare(b.number, a.number))
		})
		all = all[:min(len(all), limit)]

		more = len(next) == topChunk
		if more {
			last = next[topChunk-1]
			more = len(all) < limit || last.mayPrecede(all[limit-1])
		}
	}

	numbers := make([]int64, len(all))
	for i, g := range all {
		numbers[i] = g.number
	}

	return numbers, nil
}

// topGroup is a group that may have many failures in the last day: at most bound.
type topGroup struct{ number, seen, bound, failures int64 }

// mayPrecede reports whether the group can come before another one, as far as its bound says.
func (g topGroup) mayPrecede(other topGroup) bool {
	return g.bound > other.failures || g.bound == other.failures && g.seen >= other.seen
}

// topChunk is how many groups one query of topGroups looks at.
const topChunk = 100

// highest returns the next open groups behind one, by their bounds. A group without a failure since the hour
// first is not among them.
func highest(src db.Source, first int64, behind topGroup) ([]topGroup, error) {
	const groups = `SELECT id, last_seen, day FROM groups
		WHERE state = 'open' AND last_seen >= $1 AND day > 0 AND (day, last_seen, id) < ($2, $3, $4)
		ORDER BY day DESC, last_seen DESC, id DESC LIMIT $5 + 0`
	const failures = `SELECT group_id, sum(failures) FROM group_hours
		WHERE group_id IN (SELECT value FROM json_each($1)) AND hour >= $2 GROUP BY group_id`

	next, err := db.All(src, groups, func(g *topGroup) []any { return []any{&g.number, &g.seen, &g.bound} },
		first*db.MicrosPerHour, behind.bound, behind.seen, behind.number, topChunk)
	if err != nil || len(next) == 0 {
		return nil, err
	}

	numbers := make([]int64, len(next))
	for i, g := range next {
		numbers[i] = g.number
	}

	counts, err := db.Map[int64, int64](src, failures, db.Numbers(numbers), first)
	for i := range next {
		next[i].failures = counts[next[i].number]
	}

	return next, err
}

// lastDay is how many hours of a group are shown.
const lastDay = 24

// addParts fills in what is not in the rows of groups: their queues, those with the most
// failures first, and their failures in each hour of the last day.
func addParts(src db.Source, now time.Time, groups []failures.Group) error {
	const queues = `SELECT group_id, queue, failures FROM group_queues WHERE group_id IN (SELECT value FROM json_each($1))
		ORDER BY failures DESC, queue`
	const hours = `SELECT group_id, hour, failures FROM group_hours WHERE group_id IN (SELECT value FROM json_each($1)) AND hour >= $2`

	if len(groups) == 0 {
		return nil
	}

	byNumber, numbers := map[int64]*failures.Group{}, make([]int64, len(groups))
	for i := range groups {
		g := &groups[i]
		g.LastDay = make([]int64, lastDay)
		byNumber[g.Number], numbers[i] = g, g.Number
	}

	theirs, first := db.Numbers(numbers), firstHour(now)

	// The rows are in the order of their counts, and so are then the queues of each group.
	type share struct {
		group int64
		filter.NameCount
	}
	shares, err := db.All(src, queues, func(s *share) []any { return []any{&s.group, &s.Name, &s.Count} }, theirs)
	for _, s := range shares {
		g := byNumber[s.group]
		g.Queues = append(g.Queues, s.NameCount)
	}

	if err != nil {
		return err
	}

	type hour struct{ group, at, failures int64 }
	counts, err := db.All(src, hours, func(h *hour) []any { return []any{&h.group, &h.at, &h.failures} }, theirs, first)
	for _, h := range counts {
		// There can be failures of later hours, from before the clock was set back.
		if i := h.at - first; i < lastDay {
			byNumber[h.group].LastDay[i] = h.failures
		}
	}

	return err
}

// firstHour returns the oldest of the hours that are shown, in hours since 1970.
func firstHour(now time.Time) int64 { return db.Micros(now)/db.MicrosPerHour - lastDay + 1 }

// Tallies counts the groups, and their jobs, by the state of the group. It returns a tally for
// each state, in the order of failures.States.
func (p *Projection) Tallies(ctx context.Context) ([]failures.Tally, error) {
	const query = `SELECT state, count(*), sum(dead), sum(refused), sum(retrying) FROM groups GROUP BY state`

	found, err := db.All(p.reader.In(ctx), query, func(t *failures.Tally) []any {
		return []any{&t.State, &t.Groups, &t.Dead, &t.Refused, &t.Retrying}
	})
	var all []failures.Tally
	for _, state := range failures.States() {
		// The query returns no row for a state without groups.
		t := failures.Tally{State: state}
		if i := slices.IndexFunc(found, func(t failures.Tally) bool { return t.State == state }); i >= 0 {
			t = found[i]
		}

		all = append(all, t)
	}

	return all, err
}
