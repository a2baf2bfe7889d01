package groups

import (
	"cmp"
	"context"
	"database/sql"
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

// groupFields are where groupColumns go.
func groupFields(g *failures.Group) []any {
	return []any{
		&g.Number, &g.Fingerprint, &g.Type, &g.Class, &g.Message, (*frames)(&g.Frames), &g.State, db.Time(&g.StateAt), &g.StateBy,
		db.Time(&g.ReopenedAt), &g.ReopenedBy, db.Time(&g.Until), &g.Patience.Count, &g.Rate, &g.Note,
		db.Time(&g.FirstSeen), db.Time(&g.LastSeen),
		&g.Failures, &g.Dead, &g.Refused, &g.Retrying, &g.Replayed, &g.Recovered, &g.Relapsed,
	}
}

// frames are the top ones of a trace, which are kept a line each.
type frames []string

func (f *frames) Scan(value any) error {
	if text, _ := value.(string); text != "" {
		*f = strings.Split(text, "\n")
	}
	return nil
}

// List returns one page of the error groups that the filter selects, in its
// order.
func (p *Projection) List(ctx context.Context, now time.Time, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
	if p.hidden(f.Class) {
		return failures.List{}, nil
	}

	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var page failures.List
	err := p.reader.Consistently(ctx, func(src db.Source) error {
		query, args := groupsQuery(f, after, limit)

		err := src.Query(query, func(rows *sql.Rows) error {
			if len(page.Groups) > limit {
				return db.ErrEnough
			}

			// The query found the text in what is stored, also in a secret. Only a group that
			// has the text without its secrets is shown.
			var g failures.Group
			err := rows.Scan(groupFields(&g)...)
			if err == nil && (f.Text == "" || f.Finds(p.findable(g))) {
				page.Groups = append(page.Groups, g)
			}

			return err
		}, args...)
		if err != nil {
			return err
		}

		// The one group more than the limit shows that there is a next page, which it begins.
		if len(page.Groups) > limit {
			page.Groups = page.Groups[:limit]
			last := page.Groups[limit-1]
			page.Next = failures.Cursor{Dead: last.Dead, Seen: last.LastSeen, Number: last.Number}
		}

		return addParts(src, now, page.Groups)
	})

	return page, db.TimedOut(ctx, err)
}

// hidden reports whether a class holds a secret: a filter by it finds nothing, so that no
// user can find the secret out by guessing.
func (p *Projection) hidden(class string) bool { return p.redact(class) != class }

// findable is a group as it can be searched: without secrets, so that no user can
// find them out by searching.
func (p *Projection) findable(g failures.Group) failures.Group {
	g.Class, g.Message, g.Note = p.redact(g.Class), p.redact(g.Message), p.redact(g.Note)
	return g
}

// groupsQuery selects one page of groups in the order of the filter, and one group
// more. With a text it selects every group that has the text in what is stored;
// the page is then made of those that still have it once secrets are taken out.
func groupsQuery(f failures.Filter, after failures.Cursor, limit int) (string, []any) {
	const columns = `SELECT ` + groupColumns + ` FROM groups AS g`

	where := selected(f)
	if f.Text != "" {
		pattern := "%" + clause.Like(f.Text) + "%"
		where.Add(`(g.class LIKE %s ESCAPE '\' OR g.message LIKE %s ESCAPE '\' OR g.note LIKE %s ESCAPE '\')`, pattern, pattern, pattern)
	}

	// Dead jobs first, or the newest failure first: the next page begins behind the cursor in that
	// order.
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

	if f.Text != "" {
		return columns + where.String() + " ORDER BY " + order, where.Args
	}

	last, args := where.Limit(limit + 1)

	return columns + where.String() + " ORDER BY " + order + last, args
}

// selected are the conditions of a filter of groups, without its text.
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

// Top returns the open error groups with the most failures in the last
// day, the most first.
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

// topGroups returns the numbers of the groups that failed most since an hour. It
// reads the groups by what they failed in the day before their newest failure,
// the most first. That is never less than what they failed since the hour, so it
// can end with the first group that cannot be among those already found: most
// groups need no look.
func topGroups(src db.Source, first int64, limit int) ([]int64, error) {
	const query = `SELECT id, last_seen, day, (SELECT coalesce(sum(failures), 0) FROM group_hours WHERE group_id = id AND hour >= $1)
		FROM groups WHERE state = 'open' ORDER BY day DESC`
	type top struct{ number, seen, failures int64 }
	var all []top
	err := src.Query(query, func(rows *sql.Rows) error {
		var t top
		var most int64
		if err := rows.Scan(&t.number, &t.seen, &most, &t.failures); err != nil {
			return err
		}

		// This group failed at most that often since the hour, and so did all that follow: none
		// of them can be among the first any more.
		if most == 0 || len(all) == limit && most < all[limit-1].failures {
			return db.ErrEnough
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

	numbers := make([]int64, len(all))
	for i, t := range all {
		numbers[i] = t.number
	}

	return numbers, err
}

// lastDay is how many hours a group shows.
const lastDay = 24

// addParts gives groups their queues, those with the most failures first, and
// their last day hour by hour.
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

	// The largest share comes first, so the queues of each group are in the right order too.
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
		// An hour after the one of now, from a clock that was set back since, has no place.
		if i := h.at - first; i < lastDay {
			byNumber[h.group].LastDay[i] = h.failures
		}
	}

	return err
}

// firstHour is the oldest of the hours that are shown.
func firstHour(now time.Time) int64 { return db.Micros(now)/db.MicrosPerHour - lastDay + 1 }

// Tallies counts the groups by state, in the order of failures.States.
func (p *Projection) Tallies(ctx context.Context) ([]failures.Tally, error) {
	const query = `SELECT state, count(*), sum(dead), sum(refused), sum(retrying) FROM groups GROUP BY state`

	found, err := db.All(p.reader.In(ctx), query, func(t *failures.Tally) []any {
		return []any{&t.State, &t.Groups, &t.Dead, &t.Refused, &t.Retrying}
	})
	var all []failures.Tally
	for _, state := range failures.States() {
		// A state in which no group is has no row.
		t := failures.Tally{State: state}
		if i := slices.IndexFunc(found, func(t failures.Tally) bool { return t.State == state }); i >= 0 {
			t = found[i]
		}

		all = append(all, t)
	}

	return all, err
}
