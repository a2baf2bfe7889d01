package api

import (
	"context"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/server/problem"
	"redrive/internal/server/web"
	"redrive/internal/wire"
)

// groupOf is an error group as the API shows it.
func groupOf(g failures.Group) work.Group {
	return work.Group{
		Fingerprint:         g.Fingerprint,
		Type:                g.Type,
		Class:               g.Class,
		Message:             g.Message,
		Frames:              g.Frames,
		State:               g.State,
		StateAt:             apitype.At(g.StateAt),
		StateBy:             g.StateBy,
		ReopenedAt:          apitype.At(g.ReopenedAt),
		ReopenedBy:          g.ReopenedBy,
		Until:               apitype.At(g.Until),
		UntilFailures:       g.Patience.Count,
		UntilFailuresAnHour: g.Rate,
		Note:                g.Note,
		FirstSeen:           apitype.At(g.FirstSeen),
		LastSeen:            apitype.At(g.LastSeen),
		Failures:            g.Failures,
		Dead:                g.Dead,
		Refused:             g.Refused,
		Retrying:            g.Retrying,
		Replayed:            g.Replayed,
		Recovered:           g.Recovered,
		Relapsed:            g.Relapsed,
		Queues: mapped(g.Queues, func(q filter.NameCount) work.QueueFailures {
			return work.QueueFailures{Queue: q.Name, Failures: q.Count}
		}),
		LastDay: g.LastDay,
	}
}

// groups is GET /failures: groups in every state, unless a state is named.
func (a *API) groups(c echo.Context) (work.GroupList, error) {
	list := func(ctx context.Context, f failures.Filter, after failures.Cursor, limit int) (failures.List, error) {
		return a.View.Groups(ctx, time.Now(), f, after, limit)
	}
	_, found, slow, err := search(c, web.GroupQuery, list)

	return work.GroupList{
		Groups: mapped(found.Groups, groupOf),
		Page:   apitype.Page{Next: found.Next.String(), Incomplete: slow},
	}, err
}

// exportGroups is the list of error groups that the address selects, in every state
// unless one is named.
func (a *API) exportGroups(c echo.Context) (export, error) {
	f, after, wrong := web.GroupQuery(c.QueryParams())
	if len(wrong) > 0 {
		return export{}, problem.InAddress(wrong[0])
	}

	now := time.Now()
	next := func(ctx context.Context) (exportPage, error) {
		found, slow, err := web.InTime(a.View.Groups(ctx, now, f, after, groupsAtOnce))
		after = found.Next
		return pageOf(found.Groups, groupRow, after != failures.Cursor{}, slow), err
	}

	return export{"failures", f.String(), []string{
		"fingerprint", "type", "class", "message", "frames", "state", "state_at", "state_by", "note", "first_seen", "last_seen",
		"failures", "dead", "refused", "retrying", "replayed", "recovered", "relapsed", "queues",
	}, next}, nil
}

// groupRow is an error group in both formats.
func groupRow(g failures.Group) row {
	queues := make([]string, len(g.Queues))
	for i, q := range g.Queues {
		queues[i] = q.Name
	}

	n := func(n int64) string { return strconv.FormatInt(n, 10) }

	return row{apitype.Encode(groupOf(g)), []string{
		g.Fingerprint, g.Type, g.Class, g.Message, strings.Join(g.Frames, " < "), string(g.State), wire.FormatTime(g.StateAt), g.StateBy,
		g.Note, wire.FormatTime(g.FirstSeen), wire.FormatTime(g.LastSeen), n(g.Failures), n(g.Dead), n(g.Refused), n(g.Retrying), n(g.Replayed),
		n(g.Recovered), n(g.Relapsed), strings.Join(queues, " "),
	}}
}

// classes is GET /failures/classes: the groups by their error classes, the class with the most
// dead jobs first.
func (a *API) classes(c echo.Context) (work.GroupClasses, error) {
	f, _, wrong := web.GroupQuery(c.QueryParams())
	if len(wrong) > 0 {
		return work.GroupClasses{}, problem.InAddress(wrong[0])
	}

	all, err := a.View.RollUp(c.Request().Context(), time.Now(), f, web.PageLimit)

	return work.GroupClasses{Classes: mapped(all.Listed, classOf), Total: all.Total}, err
}

// classOf is a class of errors with its groups.
func classOf(c failures.Class) work.GroupClass {
	return work.GroupClass{
		Class:           c.Name,
		Groups:          c.Groups,
		Types:           c.Types,
		Queues:          c.Queues,
		Dead:            c.Dead,
		Refused:         c.Refused,
		Retrying:        c.Retrying,
		FailuresLastDay: c.Day,
		LastSeen:        apitype.At(c.LastSeen),
	}
}

// group is GET /failures/{fingerprint}. The jobs of the group are a list of
// their own: GET /jobs?group=FINGERPRINT.
func (a *API) group(c echo.Context) (work.GroupDetail, error) {
	d, err := a.View.Group(c.Request().Context(), time.Now(), c.Param("fingerprint"))

	return work.GroupDetail{
		Group: groupOf(d.Group),
		Hours: mapped(d.Hours, func(h failures.Hour) work.FailureHour {
			return work.FailureHour{At: apitype.At(h.At), Failures: h.Failures, Final: h.Final}
		}),
		Sample: d.Sample.Job.ID,
	}, err
}
