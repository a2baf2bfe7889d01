package templates_test

import (
	"bytes"
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/html"

	"redrive/internal/job"
	"redrive/web/templates"
	"redrive/web/templates/listpage"
)

// tree is a page as a browser would read it.
type tree struct {
	t    *testing.T
	root *html.Node
}

func parse(t *testing.T, p page) tree {
	t.Helper()
	root, err := html.Parse(bytes.NewReader(render(t, p)))
	if err != nil {
		t.Fatalf("the page is not HTML: %v", err)
	}
	return tree{t, root}
}

// nodes returns the elements for which match is true, in document order. The
// parts that scripts copy, in <template>, are not among them.
func (d tree) nodes(match func(*html.Node) bool) []*html.Node {
	var found []*html.Node
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode && !inTemplate(n) && match(n) {
			found = append(found, n)
		}
	}
	return found
}

func inTemplate(n *html.Node) bool {
	for ; n != nil; n = n.Parent {
		if n.Type == html.ElementNode && n.Data == "template" {
			return true
		}
	}
	return false
}

// with returns the elements that have an attribute with this value; the value
// "*" matches any.
func (d tree) with(name, value string) []*html.Node {
	return d.nodes(func(n *html.Node) bool {
		got, ok := attr(n, name)
		return ok && (value == "*" || got == value)
	})
}

// one returns the only element with an attribute of this value.
func (d tree) one(name, value string) *html.Node {
	d.t.Helper()
	found := d.with(name, value)
	if len(found) != 1 {
		d.t.Fatalf("%d elements have %s=%q, want one", len(found), name, value)
	}
	return found[0]
}

func (d tree) elements(name string) []*html.Node {
	return d.nodes(func(n *html.Node) bool { return n.Data == name })
}

func attr(n *html.Node, name string) (string, bool) {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val, true
		}
	}
	return "", false
}

func value(n *html.Node, name string) string {
	v, _ := attr(n, name)
	return v
}

// text is what an element says, with its white space as a reader sees it.
func text(n *html.Node) string {
	var b strings.Builder
	for child := range n.Descendants() {
		if child.Type == html.TextNode {
			b.WriteString(child.Data)
			if p := child.Parent; p.Data != "bdi" || p.NextSibling == nil || p.NextSibling.Type != html.TextNode { // a name may stand in a sentence
				b.WriteString(" ")
			}
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// says fails the test unless an element with this attribute contains the words.
func (d tree) says(name, attribute, words string) {
	d.t.Helper()
	var all []string
	for _, n := range d.with(name, attribute) {
		if strings.Contains(text(n), words) {
			return
		}
		all = append(all, text(n))
	}
	d.t.Errorf("no element with %s=%q says %q; they say %q", name, attribute, words, all)
}

// everyPage is pages and the page of a job.
func everyPage() map[string]page {
	all := pages()
	for name, p := range jobPages() {
		all[name] = p
	}
	return all
}

func cell(row *html.Node, name string) *html.Node {
	for n := range row.Descendants() {
		if n.Type == html.ElementNode && value(n, "data-cell") == name {
			return n
		}
	}
	return nil
}

func TestOverview_SaysTheCounters(t *testing.T) {
	d := parse(t, pages()["overview"])
	for name, want := range map[string]string{
		"jobs_failed": "18,934", "jobs_requeued": "14,688", "jobs_failed_permanently": "4,246",
		"jobs_dlq_failed": "2", "jobs_succeeded": "1,261,402", "jobs_replayed": "1,873",
	} {
		n := d.one("data-counter", name)
		if got := text(n); !strings.Contains(got, want) {
			t.Errorf("%s says %q, want %s", name, got, want)
		}
	}
	if c := value(d.one("data-counter", "jobs_dlq_failed"), "class"); !strings.Contains(c, "is-alarm") {
		t.Errorf("two refused dead letters are no alarm: class %q", c)
	}
}

func TestOverview_PutsRefusedDeadLettersOnTop(t *testing.T) {
	d := parse(t, pages()["overview"])
	d.says("aria-label", "Refused dead letters", "2 dead letters were refused. https://dlq.ops.example answered 507 Insufficient Storage. Every job is kept.")
	if n := parse(t, pages()["overview-healthy"]).with("aria-label", "Refused dead letters"); len(n) != 0 {
		t.Error("a healthy overview has the banner of refused dead letters")
	}
}

func TestOverview_SaysWhatHasNoHandler(t *testing.T) {
	d := parse(t, pages()["overview"])
	d.says("aria-label", "No handler", "3 jobs have no handler: loyalty.points.expire (2 in default), and 1 job of other types. "+
		"Add a handler to the configuration file and reload it; the waiting jobs then run. See 3 jobs")
	if n := parse(t, pages()["overview-healthy"]).with("aria-label", "No handler"); len(n) != 0 {
		t.Error("a healthy overview has the banner of jobs without a handler")
	}
}

func TestRows_CarryWhatTheScriptsPatch(t *testing.T) {
	for _, name := range []string{"jobs", "overview", "dead-letters"} {
		rows := parse(t, pages()[name]).nodes(func(n *html.Node) bool {
			_, ok := attr(n, "data-job")
			return ok && n.Data == "tr"
		})
		if len(rows) == 0 {
			t.Fatalf("%s has no rows", name)
		}
		for _, row := range rows {
			if value(row, "data-run") == "" || cell(row, "acts") == nil {
				t.Errorf("%s: row %s lacks its run or its actions", name, value(row, "data-job"))
			}
		}
	}
}

// A rule can add attempts to those of the policy: the number of both is one everywhere.
func TestAttempts_AreNeverMoreThanAllowed(t *testing.T) {
	v := pages()["jobs"].(listpage.Jobs)
	v.List.Jobs = slices.Clone(v.List.Jobs[:1])
	v.List.Jobs[0].Policy.MaxAttempts, v.List.Jobs[0].Attempts = 3, 4
	if got := text(cell(parse(t, v).nodes(func(n *html.Node) bool { return value(n, "data-job") != "" })[0], "attempts")); got != "4/4" {
		t.Errorf("a row says %q", got)
	}
	if got := v.List.Jobs[0].Changed().MaxAttempts; got != 4 {
		t.Errorf("a live message says of %d", got)
	}
}

// The overview, a list and the job's own page count the attempt that a rule has just added.
func TestAttempts_IncludeTheOneThatARuleAdded(t *testing.T) {
	waiting := jobPages()["job-rule-retried"]
	waiting.Job.Policy.MaxAttempts = waiting.Job.Attempts
	list := pages()["jobs"].(listpage.Jobs)
	list.List.Jobs = []job.Job{waiting.Job}
	front := pages()["overview"].(templates.Overview)
	front.Failing = list.List.Jobs
	for name, want := range map[string]struct {
		page
		says []string
	}{
		"a list":         {list, []string{"2/3"}},
		"the overview":   {front, []string{"attempt 3 of 3"}},
		"the job's page": {waiting, []string{"Attempt 3 of 3 (added by the rule slow-mail)", "2 of 3 attempts"}},
	} {
		said := text(parse(t, want.page).root)
		for _, words := range want.says {
			if !strings.Contains(said, words) {
				t.Errorf("%s does not say %q:\n%s", name, words, said)
			}
		}
	}
}

// Each job is counted in one tab, but for those that are parts of another one and say so.
func TestJobs_TabsCountEachJobOnce(t *testing.T) {
	v := jobs(frame("jobs", "Jobs"))
	depths := maps.Clone(v.Snapshot.Depths)
	v.Snapshot.Depths = depths
	check := func(want string) {
		t.Helper()
		var sum int64
		var words []string
		for _, n := range parse(t, v).nodes(func(n *html.Node) bool { return n.Data == "a" && value(n.Parent, "class") == "tabs" }) {
			word := strings.TrimRight(text(n), " 0123456789,")
			words = append(words, word)
			if state := job.Status(value(n.LastChild, "data-state-count")); !strings.HasPrefix(word, "of these") {
				sum += depths[state]
			}
		}
		if got := strings.Join(words, ", "); got != want {
			t.Errorf("the tabs are %s, want %s", got, want)
		}
		if sum != depths.Jobs() {
			t.Errorf("the tabs count %d jobs, want %d", sum, depths.Jobs())
		}
	}

	const others = "All, scheduled, returning, returned, available, of these no handler, active, retryable, completed, cancelled, "
	depths["discarded"] = depths["dead_letter"] + depths["dlq_failed"] + depths["trashed"]
	check(others + "dead letter, refused, trashed")
	depths["discarded"]++ // by a policy that keeps no dead letters
	check(others + "given up, of these dead letter, of these refused, of these trashed")
}

func TestJobs_OffersWhatApplies(t *testing.T) {
	d := parse(t, pages()["jobs"])
	for _, row := range d.nodes(func(n *html.Node) bool { return n.Data == "tr" && value(n, "data-job") != "" }) {
		state := text(cell(row, "state"))
		for name, states := range map[string][]string{
			"replay":  {"dead letter", "refused", "discarded", "cancelled"},
			"discard": {"dead letter", "refused", "retryable", "scheduled", "available", "no handler"},
		} {
			if got, want := offers(row, name), slices.Contains(states, state); got != want {
				t.Errorf("a job that is %s: %s button shown %v, want %v", state, name, got, want)
			}
		}
	}
}

// offers reports whether a row shows the button of an act.
func offers(row *html.Node, name string) bool {
	for n := range cell(row, "acts").Descendants() {
		if _, hidden := attr(n, "hidden"); n.Data == "form" && value(n, "data-act") == name && !hidden {
			return true
		}
	}
	return false
}

func TestForms_NameTheRunTheyAreAbout(t *testing.T) {
	d := parse(t, pages()["jobs"])
	for _, row := range d.nodes(func(n *html.Node) bool { return n.Data == "tr" && value(n, "data-job") != "" }) {
		for n := range cell(row, "acts").Descendants() {
			if n.Type == html.ElementNode && value(n, "name") == "run" && value(n, "value") != value(row, "data-run") {
				t.Errorf("row %s shows run %s, its form sends %s", value(row, "data-job"), value(row, "data-run"), value(n, "value"))
			}
		}
	}
}

func TestJobs_EachFilterIsRemovedByOneLink(t *testing.T) {
	d := parse(t, pages()["jobs-no-match"])
	for filter, want := range map[string]string{
		"state": "/jobs?error=timeout&queue=payments", "queue": "/jobs?error=timeout&state=dead_letter", "error": "/jobs?queue=payments&state=dead_letter",
	} {
		links := d.with("aria-label", "Remove the filter "+filter)
		if len(links) == 0 || value(links[0], "href") != want {
			t.Errorf("the filter %s is removed by %v, want %s", filter, links, want)
		}
	}
	d.says("class", "empty", "No job matches all three filters")
}

func TestJobs_OlderKeepsTheFilter(t *testing.T) {
	v := pages()["jobs-slow"]
	older := parse(t, v).one("rel", "next")
	u, err := url.Parse(value(older, "href"))
	if err != nil || u.Path != "/jobs" || u.Query().Get("error") != "time_out" || u.Query().Get("after") == "" {
		t.Errorf("Older leads to %q, want the same filter and a cursor", value(older, "href"))
	}
}

func TestJobs_SaysWhatItDidNotDo(t *testing.T) {
	parse(t, pages()["jobs-slow"]).says("role", "status", "This took longer than 2 s.")
	parse(t, pages()["jobs-bad-filter"]).says("role", "alert", `Queue: "no queue" is not a queue name.`)
	parse(t, pages()["jobs-first-run"]).says("class", "empty firsts", "Nothing has been enqueued yet")
	parse(t, pages()["dead-letters-healthy"]).says("class", "empty is-completed", "No dead letters")
}

func TestNewer_IsCountedOnlyWhereMessagesCanTell(t *testing.T) {
	for name, want := range map[string]int{"jobs": 1, "jobs-slow": 0, "jobs-filtered": 0, "dead-letters": 1, "dead-letters-filtered": 0} {
		if got := len(parse(t, pages()[name]).with("data-newer", "*")); got != want {
			t.Errorf("%s has %d bars that count newer jobs, want %d", name, got, want)
		}
	}
}

func TestReadOnly_TurnsEveryActionOff(t *testing.T) {
	for _, name := range []string{"overview-read-only", "jobs-read-only", "queues-read-only"} {
		d := parse(t, pages()[name])
		d.says("role", "alert", "Nothing can be changed right now.")
		for _, form := range d.with("data-act", "*") {
			for n := range form.Descendants() {
				if _, off := attr(n, "disabled"); n.Data == "button" && !off {
					t.Errorf("%s: the button %q can be pressed", name, text(n))
				}
			}
		}
	}
}

func TestQueues_NameWhatNoWorkerTakes(t *testing.T) {
	d := parse(t, pages()["queues"])
	d.says("aria-label", "No worker", "search has no worker. 12 jobs wait there.")
	d.says("aria-label", "No handler", "3 jobs have no handler: loyalty.points.expire (2 in default)")
}

func TestQueues_SwitchBetweenPauseAndResume(t *testing.T) {
	d := parse(t, pages()["queues"])
	actions := map[string]bool{}
	for _, f := range d.with("data-act", "flip") {
		actions[value(f, "action")] = true
	}
	if !actions["/queues/reports/resume"] || !actions["/queues/email/pause"] || actions["/queues/reports/pause"] {
		t.Errorf("the forms lead to %v; reports is paused, email is not", actions)
	}
}

func TestConflict_SaysWhoWasFirst(t *testing.T) {
	d := parse(t, pages()["conflict"])
	d.says("class", "banner is-accent", "sam replayed this job before you.")
	d.says("class", "button", "Open run 2")
}

func TestProblem_SaysWhatAndWhichRequest(t *testing.T) {
	d := parse(t, pages()["error"])
	d.says("class", "empty is-dead", "The page could not be read")
	d.says("class", "empty is-dead", "Status 503 · request 01JP5X9C")
}

// One test asks both, since to draw and to read every page is most of its work.
func TestPages_AreInertAndMadeOfNamedParts(t *testing.T) {
	for name, p := range everyPage() {
		t.Run(name, func(t *testing.T) {
			d := parse(t, p)
			if n := len(d.elements("h1")); n != 1 {
				t.Errorf("%d headings of the first level, want one", n)
			}
			if n := len(d.with("aria-live", "polite")); n != 1 {
				t.Errorf("%d polite live regions, want one", n)
			}
			checkInert(t, d, name)
			checkTables(t, d)
			checkNames(t, d)
			checkIDs(t, d)
		})
	}
}

// checkTables: each has a caption, and each heading says what it heads.
func checkTables(t *testing.T, d tree) {
	if len(d.elements("table")) != len(d.elements("caption")) {
		t.Error("a table has no caption")
	}
	for _, th := range d.elements("th") {
		if value(th, "scope") == "" || text(th) == "" {
			t.Errorf("a heading of a table has no scope or says nothing: %q", text(th))
		}
	}
}

// checkNames: whatever can be used has a name.
func checkNames(t *testing.T, d tree) {
	for _, n := range d.nodes(func(n *html.Node) bool { return n.Data == "button" || n.Data == "a" }) {
		_, hidden := attr(n, "hidden")
		if !hidden && text(n) == "" && value(n, "aria-label") == "" {
			t.Errorf("a %s has no name: %v", n.Data, n.Attr)
		}
	}
	for _, n := range d.nodes(func(n *html.Node) bool { return n.Data == "select" || n.Data == "input" }) {
		if value(n, "type") != "hidden" && value(n, "aria-label") == "" && n.Parent.Data != "label" {
			t.Errorf("the field %s has no label", value(n, "name"))
		}
	}
}

// checkIDs: none twice, and none that is pointed to is missing; nor is a drawing.
func checkIDs(t *testing.T, d tree) {
	ids := map[string]bool{}
	for _, n := range d.with("id", "*") {
		if id := value(n, "id"); ids[id] {
			t.Errorf("the id %s is there twice", id)
		} else {
			ids[id] = true
		}
	}
	for _, name := range []string{"aria-labelledby", "aria-describedby"} {
		for _, n := range d.with(name, "*") {
			if !ids[value(n, name)] {
				t.Errorf("%s points to %s, which is not there", name, value(n, name))
			}
		}
	}
	for n := range d.root.Descendants() {
		if n.Type == html.ElementNode && n.Data == "svg" && strings.HasPrefix(value(n, "class"), "icon") && n.FirstChild == nil {
			t.Errorf("an icon in <%s class=%q> is empty", n.Parent.Data, value(n.Parent, "class"))
		}
	}
}
