// Package templates draws the pages. Each page is a templ component that takes
// one typed view; a view holds the nouns of the internal packages as they are,
// and the component does the wording. Nothing here reads a database or a clock:
// Frame carries the time at which the view was taken.
//
// This package has what pages share: the layout, buttons, badges, times, rows,
// charts and what is said of states and reasons. It also has the overview and
// the pages that say what went wrong. Every other page is in a package below,
// which imports this one and no other page. Package format writes numbers, times
// and texts, and package link makes every address.
//
// Data reaches a page as text only: addresses come from package link, geometry
// is computed in Go and lives in SVG attributes, and there is no style attribute,
// no inline script and no raw HTML.
//
// Addresses are written as from the root. Where the product lives below a path,
// the server puts that path before them after the page is drawn: in href, src,
// action and formaction, and in data-live and every data-… whose name ends in -url.
// This is safe because each quote that comes from data is escaped: no data can look
// like an attribute.
package templates

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"redrive/internal/access"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/shortage"
	"redrive/internal/source"
	"redrive/internal/stats"
	"redrive/web/templates/format"
	"redrive/web/templates/link"
)

// Frame is what surrounds every page.
type Frame struct {
	Title       string
	Section     string // which entry of the navigation is current: "overview", "jobs", "dead-letters", "queues"
	Now         time.Time
	Snapshot    stats.Snapshot
	Seq         int64           // of the totals when the reading of the page began: nothing on it is older
	QueueCount  int             // for the navigation
	UnderWay    []OpenOperation // operations that have not ended, without previews; the oldest first
	Search      SearchBox
	Demo        *Demo                 // nil outside demo mode
	Insecure    bool                  // reachable from the network without a login: said on every page
	Problem     string                // why the database cannot be written, or empty
	Acted       *job.Change           // where the job stands that a form without scripts just acted on, or nil
	Origin      string                // where the reader of the page reaches the dashboard: "http://127.0.0.1:8080", with its base path
	Here        string                // the address of this page, to which the undoing of Acted comes back
	Paused      *WorkerPause          // since when the worker claims nothing, or nil
	Breaker     *shortage.OpenBreaker // since when nothing is claimed for want of something, or nil
	Outdated    []source.Health       // sources of which nothing new is known, by their names
	Hindrances  []Hindrance           // what keeps the server of the database from cleaning up; the oldest first
	AboutSource string                // the source that the page is about, which says itself what is wrong with it
	User        string                // who is logged in, or empty
	Role        access.Role           // what they may do; empty where there is no login: everything
	LogOut      bool                  // they can log out here
	Stranger    bool                  // it is unknown who reads the page: nothing of the product is shown
	Pause       time.Duration         // between two times at which the page is redrawn, at least
	Still       bool                  // what the page shows is not redrawn while the user reads it
}

// Hindrance is what keeps the server of the database from removing old versions of rows.
type Hindrance struct {
	Name  string // as a sentence begins with it
	Since time.Time

	Remedy     string   // what to do, in words
	Statements []string // any of which does it
}

// othersHinder says in a sentence about one hindrance that there are others, if there are.
func othersHinder(n int) string {
	if n == 0 {
		return ""
	}

	return ", and " + format.InWords(n, "other does so, too", "others do so, too")
}

// SearchBox is the search field of a page: of all jobs, or of the list that the page
// shows.
type SearchBox struct {
	Text  string
	List  string // the section of the list: "jobs", "dead-letters" or "trash"; empty: no list
	Wrong bool   // Text cannot be used, as FilterErrors says
}

// about is the list that is searched, what the field is called and an example of what
// can be typed.
func (b SearchBox) about() (in templ.SafeURL, label, example string) {
	const filters = "queue:orders error:timeout, or any text"
	switch b.List {
	case "jobs":
		return link.Jobs(filter.Filter{}, ""), "Filter the jobs", filters
	case "dead-letters":
		return link.DeadLetters(filter.Filter{}, ""), "Filter the dead letters", filters
	case "trash":
		return link.Trash(filter.Filter{}, ""), "Filter the trash", filters
	}

	return link.Jobs(filter.Filter{}, ""), "Search jobs by id, type, error or payload", "Id, type, error or payload"
}

// Stays returns the frame of a page that is not redrawn while the user reads it: a
// form that is being filled in, a log, an error.
func (f Frame) Stays() Frame {
	f.Still = true
	return f
}

// still tells the script where a page that is not redrawn comes from: the answer to a
// form has no address.
func (f Frame) still() string {
	if f.Here == "" {
		return "answer"
	}
	return "page"
}

// Demo is the state of the demo's banner.
type Demo struct {
	Faults []Fault
	Used   bool   // a user has broken or fixed something, so it need not be shown how
	Until  string // what happens to the database at the end
}

// broken says how many of the faults are on.
func (d Demo) broken() string {
	n := 0
	for _, f := range d.Faults {
		if f.Broken {
			n++
		}
	}

	return strconv.Itoa(n) + " of " + strconv.Itoa(len(d.Faults)) + " broken"
}

// aboutJobs reports whether the page shows what the faults of the demo do.
func (f Frame) aboutJobs() bool {
	switch f.Section {
	case "policies", "retention", "audit", "access":
		return false
	}

	return true
}

// Fault is one named fault of the demo and its Break / Fix switch.
type Fault struct {
	Name, Title, About string
	Broken             bool
}

// WorkerPause is a time in which the worker claims nothing.
type WorkerPause = queues.Pause

// Denied says why the reader of the page cannot do something now, or nothing: the
// database cannot be written, or their role does not allow it. Every button asks here.
// what is a verb, such as "replay".
func (f Frame) Denied(need access.Permission, what string) string {
	if f.Problem != "" {
		return format.Visible(f.Problem)
	}

	if f.May(need) {
		return ""
	}

	return fmt.Sprintf("Your role %s may not %s; ask %s", RoleWord(f.Role), what, need.Asks())
}

// May reports whether the reader of the page may do what needs the permission.
func (f Frame) May(need access.Permission) bool {
	return !f.Stranger && (f.Role == "" || f.Role.May(need))
}

// readOnly reports whether the reader of the page may change nothing, whatever the state
// of the database: such a reader can select no row.
func (f Frame) readOnly() bool { return !f.Stranger && !f.May(access.Operate) }

// Curl is a command that posts JSON to an address of this dashboard, from a shell. It
// stands in single quotes, so that a shell expands nothing in it, and no character in
// it is hidden: what is pasted is what was seen.
func (f Frame) Curl(path, body string) string {
	token := ""
	if f.Role != "" { // users have to log in
		token = "  -H \"Authorization: Bearer $REDRIVE_TOKEN\" \\\n"
	}

	return "curl " + shellQuote(f.Origin+path) + " \\\n" + token + "  -H 'Content-Type: application/json' \\\n  -d " + shellQuote(body)
}

// shellQuote writes a text so that a shell takes it as it is.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(format.EscapeHidden(s), "'", `'\''`) + "'"
}

// userTitle says who is logged in, for the pointer and for readers.
func userTitle(f Frame) string {
	return "Logged in as " + format.Visible(f.User) + ", " + RoleWord(f.Role)
}

// RoleWord is a role as people read it.
func RoleWord(r access.Role) string {
	if r == "" {
		return "no role"
	}
	return format.Visible(string(r))
}
