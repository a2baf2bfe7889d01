package web

import (
	"net/http"
	"slices"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
)

// Routes are the ways into the server, and what somebody needs to be allowed to
// use them.
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

func (r *Routes) add(method, path string, need access.Permission, h echo.HandlerFunc) {
	r.needs[route{method, path}] = need
	r.echo.Add(method, path, h)
}

// Need is what somebody needs to be allowed to use a route; known is false where
// there is none.
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
