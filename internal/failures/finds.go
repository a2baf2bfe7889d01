package failures

import "redrive/internal/filter"

// Finds reports whether the text of the filter stands in a group, as it is shown.
func (f Filter) Finds(g Group) bool { return filter.Contains(f.Text, g.Class, g.Message, g.Note) }
