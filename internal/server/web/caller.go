package web

import (
	"net/http"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/audit"
)

// Means is how a caller is known.
type Means int

// The means, from none to the strongest that a browser has.
const (
	ByNothing Means = iota // a stranger
	ByOpenness
	ByToken
	ByProxy
	BySession
)

// Ambient reports whether a browser sends the proof along by itself, even when a
// page of another site makes it send the request.
func (m Means) Ambient() bool { return m == ByProxy || m == BySession }

// Caller is who sends a request. The zero Caller may do nothing.
type Caller struct {
	Means   Means
	Name    string // as histories show it
	Role    access.Role
	Session []byte    // the hash of the session's secret
	Token   string    // the id of the token
	Seen    time.Time // a session or a token: last; by the proxy: now
}

const callerKey = "redrive.caller"

// SetCaller says who sends a request.
func SetCaller(c echo.Context, who Caller) { c.Set(callerKey, who) }

// CallerOf is who sends a request, as far as it was found out.
func CallerOf(c echo.Context) Caller {
	who, _ := c.Get(callerKey).(Caller)
	return who
}

// Actor is the caller as the audit log names them. Without a login that is the
// way in and the address.
func Actor(c echo.Context) audit.Actor {
	who := CallerOf(c)
	by := audit.Actor{Name: who.Name, Address: c.RealIP(), Open: who.Means == ByOpenness}
	if by.Name == "" {
		through := "api"
		if IsForm(c) {
			through = "dashboard"
		}
		by.Name = through + " at " + by.Address
	}
	return by
}

// Routes are the routes of the server, with the permission that each needs.
type Routes struct {
	echo  *echo.Echo
	needs map[route]access.Permission
}

// route is a way into the server as echo matches it.
type route struct{ method, path string }

// NewRoutes adds routes to e.
func NewRoutes(e *echo.Echo) *Routes { return &Routes{e, map[route]access.Permission{}} }

// Get adds a route that only reads.
func (r *Routes) Get(path string, need access.Permission, h echo.HandlerFunc) {
	r.add(http.MethodGet, path, need, h)
	r.add(http.MethodHead, path, need, h)
}

// Post adds a route that changes something.
func (r *Routes) Post(path string, need access.Permission, h echo.HandlerFunc) {
	r.add(http.MethodPost, path, need, h)
}

// add registers a route together with its permission, so that there is none
// without.
func (r *Routes) add(method, path string, need access.Permission, h echo.HandlerFunc) {
	r.needs[route{method, path}] = need
	r.echo.Add(method, path, h)
}

// Need is the permission that a route needs; known is false where there is no
// route.
func (r *Routes) Need(method, path string) (need access.Permission, known bool) {
	need, known = r.needs[route{method, path}]
	return need, known
}

// Gets lists the paths that are answered by GET, as their routes name them:
// /jobs/:id.
func (r *Routes) Gets() []string {
	var all []string
	for way := range r.needs {
		if way.method == http.MethodGet {
			all = append(all, way.path)
		}
	}
	slices.Sort(all)
	return all
}
