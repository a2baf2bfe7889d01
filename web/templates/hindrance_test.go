package templates_test

import (
	"strings"
	"testing"
	"time"

	"redrive/web/templates"
)

func hindrances() []templates.Hindrance {
	return []templates.Hindrance{
		{
			Name:  "Session 4711 (application nightly-report, user ana, from 10.0.3.17, idle in transaction)",
			Since: now.Add(-42 * time.Minute), Remedy: "If the session is not needed, end it:",
			Statements: []string{"SELECT pg_terminate_backend(4711)"},
		},
		{
			Name:  "The prepared transaction <b>order 7</b> of the user shop",
			Since: now.Add(-2 * time.Minute), Remedy: "The transaction waits for the program that prepared it. If that is gone, end it in this database, as this user:",
			Statements: []string{"COMMIT PREPARED '<b>order 7</b>'", "ROLLBACK PREPARED '<b>order 7</b>'"},
		},
	}
}

func hinderedStates(all map[string]page) {
	f := frame("overview", "Overview")
	f.Hindrances = hindrances()
	all["overview-hindered"] = overview(f)
}

func TestHindrance_IsSaidOnEveryPage(t *testing.T) {
	v := workersView(frame("workers", "Workers"))
	v.Hindrances = hindrances()

	d := parse(t, v)
	for _, want := range []string{
		"The database cannot clean up. Session 4711 (application nightly-report, user ana, from 10.0.3.17, idle in transaction) has kept",
		", and one other does so, too. Nothing is lost", "end it: SELECT pg_terminate_backend(4711)",
	} {
		d.says("class", "banner is-warn", want)
	}
}

func TestHindrance_SaysEachWayToEndIt(t *testing.T) {
	v := workersView(frame("workers", "Workers"))
	v.Hindrances = hindrances()[1:]

	d := parse(t, v)
	d.says("class", "banner is-warn", "COMMIT PREPARED '<b>order 7</b>' or ROLLBACK PREPARED '<b>order 7</b>'")

	if strings.Contains(text(d.root), "does so, too") {
		t.Error("it speaks of others")
	}
}
