package server

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// failed stores n jobs of a queue that are dead letters from the beginning.
func (h *house) failed(n int, queue string, payload []byte) {
	h.t.Helper()
	for n > 0 {
		jobs := make([]job.Job, min(n, 5000))
		for i := range jobs {
			jobs[i] = job.Job{
				Type: "order.ship", Queue: queue, Payload: payload, Policy: retry.Default(), Timeout: time.Minute,
				State: job.Discarded, Reason: retry.MissingURN, Error: job.ErrorInfo{Type: "babel.missing_urn", Message: "no type"},
			}
		}
		n -= len(jobs)
		if _, err := h.store.Enqueue(context.Background(), time.Now(), jobs); err != nil {
			h.t.Fatal(err)
		}
	}
}

func TestExport_StreamsEveryJobOfTheFilter(t *testing.T) {
	const many = 20_000
	h := start(t)
	h.failed(many, "orders", []byte(`{"n":1}`))
	h.failed(3, "mail", []byte(`{"n":2}`))
	a := h.get("/export.csv?q=queue:orders+state:dead_letter").want(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != many+1 {
		t.Fatalf("%d rows, %v; want a heading and %d jobs", len(rows), err, many)
	}
	seen := map[string]bool{}
	for _, row := range rows[1:] {
		seen[row[0]] = true
	}
	if len(seen) != many || rows[0][0] != "id" || rows[1][3] != "dead_letter" || rows[1][14] != `{"n":1}` {
		t.Errorf("%d different jobs, the first rows are %q", len(seen), rows[:2])
	}
	a = h.get("/export.ndjson?queue=mail").want(t, http.StatusOK)
	lines := strings.Split(strings.TrimSpace(a.body), "\n")
	var line struct{ Queue, Status string }
	if err := json.Unmarshal([]byte(lines[0]), &line); err != nil || len(lines) != 3 || line.Queue != "mail" || line.Status != "dead_letter" {
		t.Errorf("%d lines, the first %s, %v", len(lines), lines[0], err)
	}
	want := []string{`attachment; filename="jobs-`, `.ndjson"`}
	if got := a.Header.Get("Content-Disposition"); !strings.HasPrefix(got, want[0]) || !strings.HasSuffix(got, want[1]) || a.Header.Get("Content-Type") != "application/x-ndjson" {
		t.Errorf("Content-Disposition %q, Content-Type %q", got, a.Header.Get("Content-Type"))
	}
}

func TestExport_KeepsSpreadsheetsFromRunningCells(t *testing.T) {
	h := start(t)
	for _, evil := range []string{"=HYPERLINK(1)", "+1", "-1", "@SUM(1)", "\tx", "\rx"} {
		text, err := json.Marshal(evil)
		if err != nil {
			t.Fatal(err)
		}
		h.enqueue(fmt.Sprintf(`{"type":%s,"queue":"orders","payload":%s}`, text, text))
		h.fail("orders", evil, evil, evil)
	}
	a := h.get("/export.csv").want(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 7 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	for _, row := range rows {
		for _, cell := range row {
			if cell != "" && strings.ContainsRune("=+-@\t\r", rune(cell[0])) {
				t.Errorf("a cell is a formula: %q", cell)
			}
		}
	}
	if row := rows[6]; row[1] != "'=HYPERLINK(1)" || row[5] != "'=HYPERLINK(1)" || row[6] != "'=HYPERLINK(1)" {
		t.Errorf("the row of a formula is %q", row)
	}
}

func TestExport_HidesWhatPagesHide(t *testing.T) {
	h := start(t)
	h.enqueue(`{"type":"order.ship","queue":"orders","payload":{"password":"hunter2-canary"},"meta":{"token":"hunter2-canary"}}`)
	h.fail("orders", "http.401", "password=hunter2-canary was refused", "")
	for _, path := range []string{"/export.csv", "/export.ndjson", "/api/v1/dead-letters", "/dead-letters"} {
		if a := h.get(path).want(t, http.StatusOK); strings.Contains(a.body, "hunter2-canary") {
			t.Errorf("%s shows the secret: %s", path, job.Clip(a.body, 500))
		}
	}
}

func TestExport_IsWrittenIntoTheAuditLog(t *testing.T) {
	h := start(t)
	h.failed(70, "orders", []byte(`{}`))
	h.get("/export.csv?q=queue:orders+state:dead_letter").want(t, http.StatusOK)
	db, err := sql.Open("sqlite", "file:"+h.path+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var filter, actor, format string
	var count int
	err = db.QueryRow(`SELECT filter, actor, subject, count FROM audit WHERE action = 'export'`).Scan(&filter, &actor, &format, &count)
	if err != nil || filter != "state:dead_letter queue:orders" || actor == "" || format != "csv" || count != 70 {
		t.Errorf("the entry says %q by %q as %q, %d jobs, %v", filter, actor, format, count, err)
	}
}

func TestExport_IsRefusedAndEmptyLikeAList(t *testing.T) {
	h := start(t)
	h.dead()
	h.get("/export.csv?q=queu:orders").want(t, http.StatusBadRequest)
	h.get("/export.ndjson?state=gone").want(t, http.StatusBadRequest)
	if a := h.get("/export.csv?queue=none").want(t, http.StatusOK); strings.Count(a.body, "\n") != 1 {
		t.Errorf("an export of nothing is %q, want the heading", a.body)
	}
	if a := h.do(http.MethodHead, "/export.ndjson", "").want(t, http.StatusOK); a.body != "" {
		t.Errorf("HEAD has a body: %q", a.body)
	}
}

func TestExport_SaysWhereItEndsTooEarly(t *testing.T) {
	var b strings.Builder
	for _, to := range []exporter{&csvExport{csv.NewWriter(&b)}, ndjsonExport{&b}} {
		if err := to.end("that is the limit"); err != nil {
			t.Fatal(err)
		}
	}
	if want := "incomplete: that is the limit\n{\"incomplete\":\"that is the limit\"}\n"; b.String() != want {
		t.Errorf("the end is %q, want %q", b.String(), want)
	}
}
