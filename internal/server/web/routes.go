package web

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/filter"
	"redrive/internal/server/problem"
)

// Routes are the routes of the server, each with the permission that it needs and
// the parameters that its address may have. An unknown parameter is refused: it
// may be a misspelt one, and a filter without it would show, export or act on
// more than was asked for. So is one that is written twice, because it is not
// clear which of the two counts.
type Routes struct {
	echo  *echo.Echo
	needs map[route]access.Permission
	files map[string]bool // the paths of File
}

// route is a way into the server as echo matches it.
type route struct{ method, path string }

// AnyParameter stands for the parameters of a route that heeds none: probes and
// caches add what they like.
const AnyParameter = "*"

// FilterParameters are those of a filter of jobs.
func FilterParameters() []string {
	all := []string{"q"}
	for _, q := range filter.Qualifiers() {
		all = append(all, q.Name)
	}

	return all
}

// ListParameters are those of a page of a list of jobs.
func ListParameters() []string { return append(FilterParameters(), "after") }

// GroupParameters are those of a page of the list of error groups.
func GroupParameters() []string {
	return []string{"q", "state", "queue", "source", "type", "class", "sort", "after"}
}

// AuditParameters are those of a page of the audit log.
func AuditParameters() []string {
	return []string{"actor", "action", "subject", "from", "to", "after"}
}

// NewRoutes adds routes to e.
func NewRoutes(e *echo.Echo) *Routes {
	return &Routes{e, map[route]access.Permission{}, map[string]bool{}}
}

// Get adds a route that only reads.
func (r *Routes) Get(path string, need access.Permission, h echo.HandlerFunc, parameters ...string) {
	r.add(http.MethodGet, path, need, known(h, parameters, false))
	r.add(http.MethodHead, path, need, known(h, parameters, false))
}

// File adds a route that takes a list away as a file. It reads, but is written into
// the audit log, so a page of another site must not lead there.
func (r *Routes) File(path string, need access.Permission, h echo.HandlerFunc, parameters ...string) {
	r.files[path] = true
	r.Get(path, need, h, parameters...)
}

// IsFile reports whether a path is one of File.
func (r *Routes) IsFile(path string) bool { return r.files[path] }

// Page adds a page. Its address may also name the job that a form on it acted on,
// and may carry what other programs add to links.
func (r *Routes) Page(path string, need access.Permission, h echo.HandlerFunc, parameters ...string) {
	parameters = append(parameters, "acted")
	r.add(http.MethodGet, path, need, known(h, parameters, true))
	r.add(http.MethodHead, path, need, known(h, parameters, true))
}

// Post adds a route that changes something. What it is told is in its body.
func (r *Routes) Post(path string, need access.Permission, h echo.HandlerFunc) {
	r.add(http.MethodPost, path, need, known(h, nil, false))
}

// known is a handler of addresses whose parameters are known and written once.
func known(h echo.HandlerFunc, parameters []string, page bool) echo.HandlerFunc {
	if slices.Contains(parameters, AnyParameter) {
		return h
	}

	return func(c echo.Context) error {
		if err := checkQuery(c.Request().URL, parameters, page); err != nil {
			return err
		}
		return h(c)
	}
}

// checkQuery refuses what is wrong with the parameters of an address, whatever
// their values are.
func checkQuery(u *url.URL, parameters []string, page bool) error {
	values := u.Query() // what cannot be read was refused before the address was routed
	for _, name := range slices.Sorted(maps.Keys(values)) {
		switch {
		case page && added(name):
		case !slices.Contains(parameters, name):
			return problem.In(problem.BadParameter, clip.Text(name, 64), unknown(parameters))
		case len(values[name]) > 1:
			return problem.In(problem.BadParameter, name, "this parameter appears twice; send it once")
		}
	}

	return nil
}

// unknown says what an address may have instead of a parameter that it does not
// know.
func unknown(parameters []string) string {
	known := slices.DeleteFunc(slices.Clone(parameters), func(name string) bool { return name == "acted" })
	if len(known) == 0 {
		return "this address takes no parameters"
	}

	return fmt.Sprintf("this address has no such parameter; it takes %s", strings.Join(known, ", "))
}

// added reports whether mail programs and trackers add a parameter to links. Such a
// parameter narrows nothing, so leaving it out shows no caller more.
func added(name string) bool {
	return strings.HasPrefix(name, "utm_") || strings.HasSuffix(name, "clid")
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
