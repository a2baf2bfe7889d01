package server

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"redrive/internal/apitype/work"
	"redrive/internal/audit"
	"redrive/internal/operation"
)

// The items of an operation are a file in either format, all of them or those
// that are shown: harmless, and in the audit log as every export.
func TestOperations_ItemsAreExported(t *testing.T) {
	const many = 450 // more than two pages
	h := operated(t)
	h.failed(many, "orders", []byte(`{}`))
	h.enqueue(`{"type":"=HYPERLINK(1)","queue":"orders","payload":{}}`)
	h.fail("orders", "x", "x", "")
	h.form("/operations", "kind=discard&q=state:dead_letter").want(t, http.StatusSeeOther)
	h.reaches(1, operation.Preview)

	a := h.get("/operations/1/items.csv").want(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != many+2 || strings.Join(rows[0][:6], " ") != "n job_id type queue run state" {
		t.Fatalf("%d rows, %v, the heading is %q", len(rows), err, rows[0])
	}
	formulas, seen := 0, map[string]bool{}
	for _, row := range rows[1:] {
		seen[row[1]] = true
		if row[2] == "'=HYPERLINK(1)" {
			formulas++
		}
	}
	if len(seen) != many+1 || formulas != 1 {
		t.Errorf("%d different jobs, %d formulas that are none", len(seen), formulas)
	}
	if got := a.Header.Get("Content-Disposition"); !strings.Contains(got, `"operation-1-items-`) {
		t.Errorf("the file is called %s", got)
	}

	lines := strings.Split(strings.TrimSpace(h.get("/operations/1/items.ndjson?state=pending").want(t, http.StatusOK).body), "\n")
	var first work.OperationItem
	if err := json.Unmarshal([]byte(lines[0]), &first); err != nil || len(lines) != many+1 || first.N != 1 || first.State != operation.ItemPending {
		t.Errorf("%d lines, the first is %s, %v", len(lines), lines[0], err)
	}
	page, err := h.store.Accounts.Audit(t.Context(), audit.Filter{Action: audit.Export}, 0, 10)
	if err != nil || len(page.Entries) != 2 {
		t.Fatalf("%+v, %v", page.Entries, err)
	}
	if e := page.Entries[0]; e.Subject != "operation-1-items.ndjson" || e.Filter != "state:pending" || e.Count != many+1 || e.Actor.Name == "" {
		t.Errorf("the log says %+v", e)
	}

	shown := h.get("/operations/1?state=pending").want(t, http.StatusOK).body
	for _, format := range []string{"csv", "ndjson"} {
		if link := fmt.Sprintf(`href="/operations/1/items.%s?state=pending"`, format); !strings.Contains(shown, link) {
			t.Errorf("the page has no %s", link)
		}
	}
	for path, status := range map[string]int{"/operations/2/items.csv": 404, "/operations/x/items.csv": 400, "/operations/1/items.csv?state=odd": 400, "/operations/1/items.csv?state=failed": 200} {
		h.get(path).want(t, status)
	}
}
