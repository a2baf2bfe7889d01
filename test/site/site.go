// Package site walks all pages of a running dashboard, as a user does who follows every
// link, and has a shop in which every text of every job is hostile.
package site

import (
	"io"
	"maps"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"redrive/internal/app"
	"redrive/internal/app/apptest"
	"redrive/internal/clip"
	"redrive/internal/config"
	"redrive/internal/demo"
	"redrive/internal/job"
	"redrive/test/rig"
)

// site is a running dashboard as a user sees it who opens every page and follows every
// link. Tests of what holds for every page walk it, so that a new page is tested
// automatically.
type site struct {
	t      *testing.T
	url    string
	routes []string // of all pages, as the server names them
	reach  Reach
	opened map[string]int // addresses by kind
	kinds  map[string]int // kinds by route
	next   []string
	visit  func(Page)
}

// Reach bounds a walk: so many addresses of a kind, and so many kinds of a route.
type Reach struct{ Addresses, Kinds int }

// Page is one page that was opened.
type Page struct {
	Path string // with its query
	Body string
	Root *html.Node
}

// PageRoutes are the routes of the server that a person may open.
func PageRoutes(t *testing.T) []string {
	t.Helper()
	return slices.DeleteFunc(Gets(t), func(path string) bool { return strings.HasPrefix(path, "/api/") || path == "/live" })
}

// Gets are the routes of the server that only read.
func Gets(t *testing.T) []string {
	t.Helper()
	settings, err := config.Parse("the demo's configuration", demo.Config(filepath.Join(t.TempDir(), "outlet.db")))
	if err != nil {
		t.Fatal(err)
	}
	w := app.NewWorld(1, settings)
	parts := apptest.Parts(t)
	parts.Config = settings
	parts.Handlers, parts.Sender, parts.Demo = w.Handler, w, w
	a, err := app.Start(t.Context(), parts)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(t.Context()); err != nil {
			t.Error(err)
		}
	}()
	return slices.DeleteFunc(a.Gets(), func(path string) bool { return strings.HasPrefix(path, "/static/") })
}

// Walk opens every page: those without parameters, the given ones, and what
// links lead to, as far as the reach goes. A kind of page is a route with the
// names of its parameters. A route that nothing leads to fails the test.
func Walk(t *testing.T, url string, reach Reach, more []string, visit func(Page)) {
	t.Helper()
	s := &site{t: t, url: url, routes: PageRoutes(t), reach: reach, opened: map[string]int{}, kinds: map[string]int{}, visit: visit}
	for _, route := range s.routes {
		if !strings.Contains(route, ":") {
			s.lead(route)
		}
	}
	for _, path := range more { // these whatever the reach
		s.lead(path)
		if !slices.Contains(s.next, path) {
			s.next = append(s.next, path)
		}
	}
	for len(s.next) > 0 {
		path := s.next[0]
		s.next = s.next[1:]
		if status := s.open(path); status != http.StatusOK && !slices.Contains(more, path) {
			t.Errorf("%s, to which a link leads, answers %d", path, status)
		}
	}
	for _, route := range s.routes {
		if s.kinds[route] == 0 {
			t.Errorf("no page leads to %s", route)
		}
	}
}

// lead notes an address, unless enough of its kind are known.
func (s *site) lead(address string) {
	u, err := url.Parse(address)
	if err != nil || u.Host != "" || u.Scheme != "" || !strings.HasPrefix(u.Path, "/") {
		return
	}
	u.Fragment = ""
	route, kind := s.kind(u)
	path := u.String()
	if route == "" || s.opened[kind] >= s.reach.Addresses || slices.Contains(s.next, path) {
		return
	}
	if s.opened[kind] == 0 {
		if s.kinds[route] >= s.reach.Kinds {
			return
		}
		s.kinds[route]++
	}
	s.opened[kind]++
	s.next = append(s.next, path)
}

// kind is the route of an address, and that with the names of its parameters.
func (s *site) kind(u *url.URL) (route, kind string) {
	parts := strings.Split(u.EscapedPath(), "/")
	at := slices.IndexFunc(s.routes, func(route string) bool {
		return slices.EqualFunc(parts, strings.Split(route, "/"), func(part, name string) bool {
			return part == name || strings.HasPrefix(name, ":") && part != ""
		})
	})
	if at < 0 {
		return "", ""
	}
	return s.routes[at], s.routes[at] + "?" + strings.Join(slices.Sorted(maps.Keys(u.Query())), "&")
}

// open reads one page and notes where it leads.
func (s *site) open(path string) (status int) {
	s.t.Helper()
	response, err := http.Get(s.url + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if response.StatusCode >= http.StatusInternalServerError {
		s.t.Errorf("%s answers %s: %s", path, response.Status, clip.Text(string(body), 200))
	}
	if !strings.HasPrefix(response.Header.Get("Content-Type"), "text/html") {
		return response.StatusCode
	}
	root, err := html.Parse(strings.NewReader(string(body)))
	if err != nil {
		s.t.Fatal(err)
	}
	s.visit(Page{path, string(body), root})
	for n := range root.Descendants() {
		for _, a := range n.Attr {
			if a.Key == "href" {
				s.lead(a.Val)
			}
		}
	}
	if response.Request.URL.RawQuery == "" && s.isJob(path) { // where a link leads to it, the job has many
		s.lead(path + "/attempts")
	}
	return response.StatusCode
}

// isJob reports whether an address is the page of a job.
func (s *site) isJob(path string) bool {
	u, err := url.Parse(path)
	if err != nil {
		s.t.Fatal(err)
	}
	route, _ := s.kind(u)
	return route == "/jobs/:id"
}

// EveryState is the page of a job in each of the states that the dashboard has.
func EveryState(t *testing.T, url string) []string {
	t.Helper()
	var paths []string
	states := []job.Status{job.StatusDeadLetter, job.StatusDLQFailed, job.StatusHeld, job.StatusTrashed}
	for _, state := range job.States() {
		states = append(states, job.Status(state))
	}
	for _, state := range states {
		list := rig.Get[struct{ Jobs []struct{ ID string } }](t, url+"/api/v1/jobs?limit=1&state="+string(state))
		for _, j := range list.Jobs {
			paths = append(paths, "/jobs/"+j.ID)
		}
	}
	return paths
}

// DeadLetter is the page of a job that can be replayed, which leads to more pages than
// those of other jobs do.
func DeadLetter(t *testing.T, url string) string {
	t.Helper()
	return EveryState(t, url)[0]
}
