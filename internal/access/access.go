// Package access says who may do what.
//
// A role is a set of permissions, and every route of the server names the one
// permission that it needs: a route without one does not exist (see
// internal/server). Nothing is derived from a path.
package access

// Permission is what a route needs.
type Permission string

const (
	Public  Permission = "public"  // nobody has to be known: static files, the login, probes
	View    Permission = "view"    // read pages, lists and counters
	Enqueue Permission = "enqueue" // bring jobs
	Operate Permission = "operate" // replay, discard, cancel, pause, bulk operations, notes
	Reveal  Permission = "reveal"  // see what is redacted; audited each time
	Manage  Permission = "manage"  // users, tokens, the whole audit log
)

// Role is what a user or a token may do altogether.
type Role string

const (
	Viewer   Role = "viewer"
	Producer Role = "producer" // for tokens: enqueues and sees nothing
	Operator Role = "operator"
	Admin    Role = "admin"
)

// Roles lists all roles, the weakest first.
func Roles() []Role { return []Role{Producer, Viewer, Operator, Admin} }

// May reports whether the role includes the permission. An unknown role may do
// nothing.
func (r Role) May(p Permission) bool {
	switch p {
	case Public:
		return true
	case View:
		return r == Viewer || r == Operator || r == Admin
	case Enqueue:
		return r == Producer || r == Operator || r == Admin
	case Operate:
		return r == Operator || r == Admin
	case Reveal, Manage:
		return r == Admin
	}
	return false
}
