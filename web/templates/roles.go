package templates

import (
	"fmt"

	"redrive/internal/access"
	"redrive/web/templates/format"
)

// off says why whoever looks cannot do something now, or nothing: the database
// cannot be written, or their role does not allow it. Every button asks here.
// what is a verb, as "replay".
func (f Frame) off(need access.Permission, what string) string {
	if f.Problem != "" {
		return format.Visible(f.Problem)
	}
	if f.May(need) {
		return ""
	}
	return fmt.Sprintf("Your role %s may not %s; ask %s", roleWords(f.Role), what, need.Asks())
}

// May reports whether whoever looks may do what needs the permission.
func (f Frame) May(need access.Permission) bool {
	return !f.Stranger && (f.Role == "" || f.Role.May(need))
}

// userTitle says who is logged in, for the pointer and for readers.
func userTitle(f Frame) string {
	return "Logged in as " + format.Visible(f.User) + ", " + roleWords(f.Role)
}

// roleWords is a role as people read it.
func roleWords(r access.Role) string {
	if r == "" {
		return "no role"
	}
	return format.Visible(string(r))
}
