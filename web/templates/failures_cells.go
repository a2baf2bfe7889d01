package templates

import (
	"sync"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/failures"
)

// The parts of an error group's row, cut out of their components.
var (
	groupHeads          = sync.OnceValue(func() stencil { return cut(groupHeadOf(hole, hole, hole)) })
	groupWheres         = sync.OnceValue(func() stencil { return cut(groupWhereOf(hole, hole)) })
	groupCounted        = sync.OnceValue(func() stencil { return cut(groupCountsOf(hole, hole, hole, hole)) })
	groupReplayed       = sync.OnceValue(func() stencil { return cut(groupReplaysOf(hole, hole, hole)) })
	groupStands         = sync.OnceValue(func() stencil { return cut(groupStandOf(hole, hole, hole, hole, hole, "")) })
	deniedStands        = sync.OnceValue(func() stencil { return cut(groupStandOf(hole, hole, hole, hole, hole, hole)) })
	rowOperations       = sync.OnceValue(func() stencil { return cut(operationForm("replay", hole, hole, "button row", "Replay", hole, "")) })
	deniedRowOperations = sync.OnceValue(func() stencil { return cut(operationForm("replay", hole, hole, "button row", "Replay", hole, hole)) })
	daysBars            = sync.OnceValue(func() stencil { return cut(dayBarsOf(hole, hole)) })
)

// groupHead names the group of a row and leads to it.
func groupHead(g failures.Group) filled {
	return groupHeads().with(string(failureURL(g.Fingerprint)), visible(g.Class), visible(g.Message))
}

// groupWhere is where the group fails.
func groupWhere(g failures.Group) filled { return groupWheres().with(groupType(g), groupQueues(g)) }

// groupCounts is how many jobs of the group are dead, and retrying.
func groupCounts(g failures.Group) filled {
	return groupCounted().with(unless(g.Dead, "zero"), number(g.Dead), unless(g.Retrying, " zero"), number(g.Retrying))
}

// unless is a class for what is zero.
func unless(n int64, class string) string {
	if n != 0 {
		return ""
	}
	return class
}

// groupReplays is what became of replays, and what people noted.
func groupReplays(g failures.Group) filled {
	return groupReplayed().with(unless(g.Replayed, " dim"), replaysText(g), noteLine(g.Note))
}

// groupStand is the button in a row by which a person says where a group stands.
func groupStand(f Frame, g failures.Group, back templ.SafeURL) filled {
	action, symbol, word := standing(g)
	url, class := string(failureAction(g.Fingerprint, action)), visible(g.Class)
	if denied := f.off(access.Operate, action); denied != "" {
		return deniedStands().with(url, string(back), word+" "+class, denied, symbol)
	}
	return groupStands().with(url, string(back), word+" "+class, word, symbol)
}

// groupOperation is the button in a row that replays what is dead of a group.
func groupOperation(f Frame, g failures.Group) filled {
	scope, back, class := scopeOf(f, g), string(failureURL(g.Fingerprint)), visible(g.Class)
	if denied := groupReplay(f, g, "replay"); denied != "" {
		return deniedRowOperations().with(scope, back, denied, class)
	}
	return rowOperations().with(scope, back, class)
}

// operationOn is such a button on the page of the group.
func operationOn(f Frame, g failures.Group, kind, class, word string) templ.Component {
	return operationForm(kind, scopeOf(f, g), string(failureURL(g.Fingerprint)), class, word, visible(g.Class), groupReplay(f, g, kind))
}

// dayBars is the last day of a group by the hour.
func dayBars(hours []int64) filled { return daysBars().with(dayText(hours), barsPath(hours)) }
