package sources_test

import (
	"bufio"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/test/rig"
)

// failedOrders are two jobs of one type and one of another that failed in the shop.
var failedOrders = []rig.FailedJob{
	{UUID: "00000000-0000-4000-8000-000000000001", Connection: "database", Queue: "orders", Payload: `{"uuid":"00000000-0000-4000-8000-000000000001","displayName":"App\\Jobs\\Charge","maxTries":1,"attempts":1}`, Exception: "App\\Declined: card 51"},
	{UUID: "00000000-0000-4000-8000-000000000002", Connection: "database", Queue: "orders", Payload: `{"uuid":"00000000-0000-4000-8000-000000000002","displayName":"App\\Jobs\\Charge","maxTries":1,"attempts":1}`, Exception: "App\\Declined: card 52"},
	{UUID: "00000000-0000-4000-8000-000000000003", Connection: "database", Queue: "mail", Payload: `{"uuid":"00000000-0000-4000-8000-000000000003","displayName":"App\\Jobs\\Mail","maxTries":1,"attempts":1}`, Exception: "App\\NoRoute: example.org"},
}

// TestSource_IsAFilterWhereverJobsAreFiltered has dead letters of its own beside those of a
// source: lists, facets, groups, counts and exports tell them apart.
func TestSource_IsAFilterWhereverJobsAreFiltered(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	section := rig.AttachedShop(t, dir, "shop", failedOrders)
	rig.Write(t, dir, "redrive.yaml", section+"policy: {max_attempts: 1}\nhandlers: {own: {exec: {command: [/bin/false]}}}\n")
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 3 })
	own := p.Post(`{"type": "own", "queue": "orders"}`)
	p.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == 4 })

	ids := rig.DeadLettersOf(t, p.URL, "shop")
	slices.Sort(ids)
	if len(ids) != 3 || slices.Contains(ids, own) {
		t.Errorf("dead letters of the source: %v", ids)
	}
	if got := rig.DeadLettersOf(t, p.URL, "shop+type:own"); len(got) != 0 {
		t.Errorf("of a type that the source does not have: %v", got)
	}
	type values []struct {
		Value string
		Count int
	}
	facets := rig.Get[struct{ Queues, Types values }](t, p.URL+"/api/v1/facets?q=source:shop+state:dead_letter")
	if want := (values{{"orders@shop", 2}, {"mail@shop", 1}}); !slices.Equal(facets.Queues, want) {
		t.Errorf("queues: %v", facets.Queues)
	}
	if want := (values{{`App\Jobs\Charge`, 2}, {`App\Jobs\Mail`, 1}}); !slices.Equal(facets.Types, want) {
		t.Errorf("types: %v", facets.Types)
	}
	if got := jobsIn(t, p.URL+"/export.ndjson?q=source:shop"); !slices.Equal(got, ids) {
		t.Errorf("exported: %v, not %v", got, ids)
	}
	if n := rig.Get[struct{ Count int }](t, p.URL+"/api/v1/jobs/count?q=source:shop").Count; n != 3 {
		t.Errorf("counted: %d", n)
	}
	type group struct {
		Class string
		Dead  int
	}
	groups := rig.Get[struct{ Groups []group }](t, p.URL+"/api/v1/failures?source=shop").Groups
	if want := (group{`App\Declined`, 2}); len(groups) != 2 || groups[0] != want {
		t.Errorf("groups: %+v", groups)
	}
	if all := rig.Get[struct{ Groups []group }](t, p.URL+"/api/v1/failures").Groups; len(all) != 3 {
		t.Errorf("all groups: %+v", all)
	}
	if page := rig.Text(t, p.URL+"/failures?source=shop"); !strings.Contains(page, "card") || strings.Contains(page, "exec.") {
		t.Error("the page of failures does not have the groups of the source alone")
	}
}

// TestSource_ActsAreInTheAuditLogAndTheMetrics with the name of the source.
func TestSource_ActsAreInTheAuditLogAndTheMetrics(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", rig.AttachedShop(t, dir, "shop", failedOrders))
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 3 })
	ids := rig.DeadLettersOf(t, p.URL, "shop")
	rig.ActAtSource(t, p.URL, "shop", ids[0], "replay")
	rig.ActAtSource(t, p.URL, "shop", ids[1], "discard")

	log := rig.Get[struct {
		Entries []struct{ Action, Subject, After string }
	}](t, p.URL+"/api/v1/audit")
	for i, want := range []string{"trashed, run 1, source shop", "returning, run 2, source shop"} {
		if len(log.Entries) != 2 || log.Entries[i].After != want {
			t.Errorf("the audit log has %+v, not %q", log.Entries, want)
		}
	}
	metrics := rig.Text(t, p.URL+"/metrics")
	for late := time.Now().Add(time.Minute); !strings.Contains(metrics, `kind="discard"`) && time.Now().Before(late); {
		metrics = rig.Text(t, p.URL+"/metrics") // it is counted after the ledger has it
	}
	for _, want := range []string{
		`redrive_source_dead_letters{source="shop"} 1`, `redrive_source_up{source="shop"} 1`,
		`redrive_source_acts_total{kind="replay",source="shop",state="done"} 1`,
		`redrive_source_acts_total{kind="discard",source="shop",state="done"} 1`,
	} {
		if !strings.Contains(metrics, want+"\n") {
			t.Errorf("the metrics lack %s", want)
		}
	}
}

// jobsIn are the ids of the jobs in an export, in their order.
func jobsIn(t *testing.T, url string) (ids []string) {
	t.Helper()
	for lines := bufio.NewScanner(strings.NewReader(rig.Text(t, url))); lines.Scan(); {
		var line struct{ ID string }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatalf("%s: %v", lines.Text(), err)
		}
		ids = append(ids, line.ID)
	}
	slices.Sort(ids)
	return ids
}
