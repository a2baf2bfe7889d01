package templates_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/listpage"
)

func TestJobs_KeepsTheFilterInTheForm(t *testing.T) {
	page := parse(t, listpage.Jobs{Frame: frame("jobs", "Jobs"), Filter: filter.Filter{
		Status: job.StatusDeadLetter, Queue: "payments", Error: "time out", From: now.Truncate(time.Second), To: now.Add(time.Microsecond), Sort: filter.Oldest,
	}})
	d := page
	for name, want := range map[string]string{
		"q":    `state:dead_letter queue:payments error:"time out" to:` + now.Add(time.Microsecond).Format(time.RFC3339Nano),
		"from": now.Format("2006-01-02T15:04:05"), "to": "",
	} {
		if got := value(d.one("name", name), "value"); got != want {
			t.Errorf("the field %s holds %q, want %q", name, got, want)
		}
	}
	if chosen := d.one("selected", "*"); value(chosen, "value") != "oldest" {
		t.Errorf("the form has chosen %q, want oldest", value(chosen, "value"))
	}
}

func TestJobs_KeepsWhatCannotBeRead(t *testing.T) {
	d := parse(t, pages()["jobs-bad-filter"])
	box := d.one("data-suggest", "*")
	if value(box, "value") != "queu:orders" || value(box, "aria-describedby") != "bad-filter" {
		t.Errorf("the box holds %q, described by %q", value(box, "value"), value(box, "aria-describedby"))
	}
	d.says("id", "bad-filter", "did you mean queue:")
}

func TestQuery_SuggestsWhatFits(t *testing.T) {
	for name, want := range map[string][]string{
		"jobs":         {"state:", "since:", "state:dead_letter", "queue:payments", "type:email.receipt", "reason:attempts_exhausted"},
		"dead-letters": {"queue:billing", "error:"},
	} {
		d := parse(t, pages()[name])
		for _, word := range want {
			if len(d.with("value", word)) == 0 {
				t.Errorf("%s does not suggest %s", name, word)
			}
		}
		if found := d.with("value", "state:"); name == "dead-letters" && len(found) > 0 {
			t.Error("a state is suggested where every row has the same")
		}
	}
}

func TestQuery_SaysWhatIsNotSearchableYet(t *testing.T) {
	d := parse(t, pages()["jobs-filtered"])
	d.says("data-note", "*", "12 newest failures are not searchable yet. Reload to find them.")
	v := jobs(frame("jobs", "Jobs"))
	v.Filter, v.Query.Lag, v.List = filter.Filter{Text: "timeout"}, 12, filter.List{}
	parse(t, v).says("role", "status", "12 newest failures are not searchable yet.")
}

func TestSearch_ShowsWhereEachJobHasTheText(t *testing.T) {
	d := parse(t, pages()["jobs-search"])
	rows := d.with("data-job", "*")
	for i, want := range []string{
		"upstream Timeout after 30 s payload …\"kind\":\" timeout \",\"id\":1…", "upstream Timeout after 30 s", "smtp.Error 451 4.7.1 greylisted payload …\"kind\":\" timeout \",\"id\":1…",
	} {
		row := tree{t, rows[i]}
		if got := text(row.one("class", "at-error")); got != want {
			t.Errorf("row %d says %q, want %q", i, got, want)
		}
	}
	var marked []string
	for _, n := range d.nodes(func(n *html.Node) bool { return n.Data == "mark" }) {
		marked = append(marked, text(n))
	}
	if got := strings.Join(marked, " "); got != "Timeout timeout Timeout timeout" {
		t.Errorf("marked are %s", got)
	}
}

func TestSearch_CountsWhatItFinds(t *testing.T) {
	d := parse(t, pages()["jobs-search"])
	d.says("class", "head", "3 jobs")
	d.says("aria-label", "States", "retryable 1")
	d.says("aria-label", "States", "cancelled 0")
	if n := len(d.with("data-state-count", "retryable")); n != 0 {
		t.Error("the scripts would put the total of a state into its tab")
	}
	d = parse(t, pages()["dead-letters-search"])
	d.says("class", "head", "more than 1,000 of 4,210 dead jobs")
	d.says("aria-label", "Facets", "Too many jobs match to count them here.")
}

// Numbers of other jobs than those of the list are not shown beside it.
func TestSearch_FacetsOfTooManyHaveNoNumbers(t *testing.T) {
	d := parse(t, pages()["dead-letters-search"])
	facets := tree{t, d.one("aria-label", "Facets")}
	if links := facets.nodes(func(n *html.Node) bool { return n.Data == "a" }); len(links) == 0 {
		t.Error("the list cannot be narrowed")
	}
	if said := text(facets.root); strings.ContainsAny(said, "0123456789") {
		t.Errorf("facets that were not counted say: %s", said)
	}
}

func TestJobs_MarkTheColumnByWhichTheyAreSorted(t *testing.T) {
	for _, c := range []struct {
		filter  filter.Filter
		column  string
		ordered string
	}{
		{filter.Filter{Status: "retryable"}, "Next", "ascending"},
		{filter.Filter{Status: "retryable", Sort: filter.Newest}, "", ""},
		{filter.Filter{Status: job.StatusDeadLetter}, "Failed", "descending"},
		{filter.Filter{Status: job.StatusDeadLetter, Sort: filter.Oldest}, "Failed", "ascending"},
		{filter.Filter{}, "", ""},
		{filter.Filter{Status: "retryable", Text: "timeout"}, "", ""},
	} {
		v := jobs(frame("jobs", "Jobs"))
		v.Filter = c.filter
		d := parse(t, v)
		var column, ordered string
		for _, n := range d.with("aria-sort", "*") {
			column, ordered = text(n), value(n, "aria-sort")
		}
		if column != c.column || ordered != c.ordered {
			t.Errorf("%v is sorted by %q, %s; want %q, %s", c.filter, column, ordered, c.column, c.ordered)
		}
	}
}

func TestQueues_CanBeFilteredByName(t *testing.T) {
	parse(t, pages()["queues-many"]).says("aria-label", "Queues", "Filter by name to see the others.")
	d := parse(t, pages()["queues-no-match"])
	d.says("class", "empty", "No queue name contains this")
	if got := value(d.one("name", "name"), "value"); got != "orders" {
		t.Errorf("the field holds %q", got)
	}
}

func TestFacets_ShowTheChosenQueueAmongMany(t *testing.T) {
	d := parse(t, pages()["jobs-many-queues"])
	nav := tree{t, d.one("aria-label", "Queues")}
	nav.says("aria-current", "true", "queue-400 200")
	nav.says("class", "more", "482 more")
	if links := nav.nodes(func(n *html.Node) bool { return n.Data == "a" }); len(links) != 221 {
		t.Errorf("%d queues can be chosen, want 221", len(links))
	}
	nav.says("class", "more", "282 more. Type a name in the search field.")
}

func TestFacets_KeepTheRestOfTheFilter(t *testing.T) {
	d := parse(t, pages()["dead-letters-filtered"])
	for _, want := range []string{
		"/dead-letters?queue=payments&reason=attempts_exhausted", "/dead-letters?queue=email&reason=attempts_exhausted&type=email.receipt",
		"/dead-letters?reason=attempts_exhausted", "/export.csv?queue=email&reason=attempts_exhausted&state=dead_letter",
	} {
		if len(d.with("href", want)) == 0 {
			t.Errorf("no link leads to %s", want)
		}
	}
}
