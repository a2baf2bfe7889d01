package templates_test

import (
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/web/templates/listpage"
)

func TestJobs_KeepsTheFilterInTheForm(t *testing.T) {
	page := parse(t, listpage.Jobs{Frame: frame("jobs", "Jobs"), Filter: filter.Filter{
		Status: job.StatusDeadLetter, Queue: "payments", Error: "time out", From: now.Truncate(time.Second), To: now.Add(time.Microsecond), Sort: filter.Oldest,
	}})
	d := tree{t, page.one("data-suggest", "*").Parent.Parent.Parent}
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
	d.says("role", "status", "12 newest failures are not searchable yet.")
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
