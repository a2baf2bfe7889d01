package failurepage

import (
	"redrive/internal/failures"
	"redrive/web/templates/format"
)

// rolledUp reports whether the classes of the groups say more than their list does: some cause
// hits several types of jobs.
func rolledUp(v List) bool { return v.Classes.Total > 0 && v.Classes.Groups > v.Classes.Total }

// ofClass is the filter with nothing but the groups of a class.
func ofClass(f failures.Filter, class string) failures.Filter {
	f.Class = class
	return f
}

// spread says how far a class has spread: over how many types of jobs and queues.
func spread(c failures.Class) string {
	return format.Counted(c.Types, "type", "types") + ", " + format.Counted(c.Queues, "queue", "queues")
}

// moreClasses says how many classes the page does not list; empty for none.
func moreClasses(c failures.Classes) string {
	more := c.Total - int64(len(c.Listed))
	if more <= 0 {
		return ""
	}

	return format.Counted(more, "more class", "more classes") + " with fewer dead jobs, among the groups below"
}

// alikeWords says how many other groups have the class of this one; empty for none.
func alikeWords(v View) string {
	n := v.Alike.Groups
	if v.Detail.State == failures.Open {
		n--
	}

	if n <= 0 {
		return ""
	}

	return "same class in " + format.Counted(n, "other open group", "other open groups")
}
