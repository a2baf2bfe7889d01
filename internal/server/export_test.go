package server

import (
	"context"
	"database/sql"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/clip"
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

func TestExport_StreamsEveryJobOfTheFilter(t *testing.T) { exportStreams(t, 600) }

func TestLong_ExportStreamsTwentyThousandJobs(t *testing.T) { exportStreams(t, 20_000) }

func exportStreams(t *testing.T, many int) {
	t.Helper()
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
			t.Errorf("%s shows the secret: %s", path, clip.Text(a.body, 500))
		}
	}
}

func TestExport_IsWrittenIntoTheAuditLog(t *testing.T) {
	h := start(t)
	h.failed(70, "orders", []byte(`{}`))
	h.get("/export.csv?q=queue:orders+state:dead_letter").want(t, http.StatusOK)
	db, err := sql.Open("sqlite", "file:"+h.file()+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var filter, actor, format string
	var count int
	err = db.QueryRow(`SELECT filter, actor, subject, count FROM audit WHERE action = 'export'`).Scan(&filter, &actor, &format, &count)
	if err != nil || filter != "state:dead_letter queue:orders" || actor == "" || format != "jobs.csv" || count != 70 {
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

func TestExport_OfTheAuditLogIsWrittenIntoTheAuditLog(t *testing.T) {
	h := start(t)
	h.dead()
	for range 2 {
		h.form("/queues/orders/pause", "").want(t, http.StatusSeeOther)
		h.form("/queues/orders/resume", "").want(t, http.StatusSeeOther)
	}
	a := h.get("/audit.csv?action=queue.pause").want(t, http.StatusOK)
	rows, err := csv.NewReader(strings.NewReader(a.body)).ReadAll()
	if err != nil || len(rows) != 3 || rows[0][4] != "action" || rows[1][4] != "queue.pause" || rows[1][5] != "orders" {
		t.Errorf("the file is %q, %v", rows, err)
	}
	page, err := h.store.Accounts.Audit(t.Context(), audit.Filter{Action: audit.Export}, 0, 10)
	if err != nil || len(page.Entries) != 1 {
		t.Fatalf("%d entries, %v; want one", len(page.Entries), err)
	}
	if e := page.Entries[0]; e.Subject != "audit.csv" || e.Filter != "action:queue.pause" || e.Count != 2 || e.Actor.Name == "" {
		t.Errorf("the entry is %+v", e)
	}
}

func TestExport_HeadReadsNothing(t *testing.T) {
	h := start(t)
	h.dead()
	h.form("/queues/orders/pause", "").want(t, http.StatusSeeOther)
	for _, path := range []string{"/export.csv", "/audit.csv", "/audit.ndjson"} {
		if w := h.serve(t.Context(), http.MethodHead, path, ""); w.Code != http.StatusOK || w.Body.Len() > 0 || w.Header().Get("Content-Disposition") == "" {
			t.Errorf("HEAD %s: %d %v %q", path, w.Code, w.Header(), w.Body)
		}
	}
	page, err := h.store.Accounts.Audit(t.Context(), audit.Filter{Action: audit.Export}, 0, 10)
	if err != nil || len(page.Entries) != 0 {
		t.Errorf("%d entries about files that nobody got, %v", len(page.Entries), err)
	}
}

func TestExport_ThatCannotBeginIsAnAnswer(t *testing.T) {
	h := start(t)
	h.dead()
	db, err := sql.Open("sqlite", "file:"+h.file())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, table := range []string{"bodies", "audit"} {
		if _, err := db.Exec("ALTER TABLE " + table + " RENAME TO gone_" + table); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"/export.csv", "/export.ndjson", "/audit.csv", "/audit.ndjson"} {
		a := h.get(path, "Accept", "application/json").want(t, http.StatusInternalServerError)
		if decode[problemAnswer](t, a).Error.Code != "internal" || a.Header.Get("Content-Disposition") != "" {
			t.Errorf("%s: %s", path, a.body)
		}
	}
}

// hasty is a client whose request has run out of time once its answer begins.
type hasty struct {
	*httptest.ResponseRecorder
	end func()
}

func (w hasty) SetWriteDeadline(time.Time) error { w.end(); return nil }

func TestExport_TakesLongerThanARequestMay(t *testing.T) {
	h := start(t)
	const many, jobs = 600, 60 // more than are read at once
	for range many {
		e := audit.Entry{At: time.Now(), Actor: audit.Actor{Name: "ana"}, Action: "queue.pause", Subject: "orders", Count: 1}
		if err := h.store.Accounts.Record(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	h.failed(jobs, "orders", []byte(`{}`))
	// The audit log comes first: each file is an entry of it.
	for _, file := range []struct {
		path string
		rows int
	}{{"/audit.ndjson", many}, {"/export.ndjson", jobs}} {
		ctx, cancel := context.WithCancel(t.Context())
		w := hasty{httptest.NewRecorder(), cancel}
		h.http.Config.Handler.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+file.path, nil))
		if got := strings.Count(w.Body.String(), "\n"); got != file.rows || strings.Contains(w.Body.String(), "incomplete") {
			t.Errorf("%s: %d lines, want %d", file.path, got, file.rows)
		}
	}
}

// No one takes a list away unseen: without its entry in the audit log there is no
// file.
func TestExport_ThatCannotBeAuditedIsAnError(t *testing.T) {
	h := start(t)
	h.failed(70, "orders", []byte(`{"n":"canary"}`))
	db, err := sql.Open("sqlite", "file:"+h.file())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(`CREATE TRIGGER no BEFORE INSERT ON audit BEGIN SELECT RAISE(FAIL, 'no more entries'); END`); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"/export.csv", "/export.ndjson?queue=none", "/audit.csv"} {
		a := h.get(path, "Accept", "application/json")
		if a.StatusCode < 500 || strings.Contains(a.body, "canary") || a.Header.Get("Content-Disposition") != "" {
			t.Errorf("%s: %d %s", path, a.StatusCode, clip.Text(a.body, 200))
		}
	}
}

// A long export is in the audit log before its first row is out, and once more when
// its rows are counted.
func TestExport_LongOnesHaveTwoEntries(t *testing.T) {
	h := start(t)
	h.failed(70, "orders", []byte(`{}`))
	h.get("/export.csv").want(t, http.StatusOK)
	page, err := h.store.Accounts.Audit(t.Context(), audit.Filter{Subject: "jobs.csv"}, 0, 10)
	if err != nil || len(page.Entries) != 2 {
		t.Fatalf("%d entries, %v; want two", len(page.Entries), err)
	}
	end, begin := page.Entries[0], page.Entries[1]
	if begin.Action != audit.ExportBegin || begin.Count != 0 || end.Action != audit.Export || end.Count != 70 {
		t.Errorf("the entries are %+v and %+v", begin, end)
	}
}

// A page of another site leads to no file, and no entry is written about one.
func TestExport_IsNotLedToByOtherSites(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	h.failed(1, "orders", []byte(`{}`))
	cookie, token := h.logIn("ana"), "Bearer "+h.token("t", access.Viewer, time.Hour)
	for _, test := range []struct {
		name    string
		headers []string
		status  int
	}{
		{"a page of another site", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site"}, 403},
		{"a page of another port", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, 403},
		{"another site, without Sec-Fetch-Site", []string{"Cookie", cookie, "Referer", "https://evil.example/"}, 403},
		{"a site that hides itself", []string{"Cookie", cookie}, 403},
		{"a page of the dashboard", []string{"Cookie", cookie, "Sec-Fetch-Site", "same-origin"}, 200},
		{"the address bar", []string{"Cookie", cookie, "Sec-Fetch-Site", "none"}, 200},
		{"a page of the dashboard, without Sec-Fetch-Site", []string{"Cookie", cookie, "Referer", h.http.URL + "/jobs"}, 200},
		{"a program", []string{"Authorization", token}, 200},
		{"a program on another site's page", []string{"Authorization", token, "Sec-Fetch-Site", "cross-site"}, 403},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, path := range []string{"/export.csv", "/audit.ndjson"} {
				entries := func() int {
					page, err := h.store.Accounts.Audit(t.Context(), audit.Filter{Action: audit.Export}, 0, 100)
					if err != nil {
						t.Fatal(err)
					}
					return len(page.Entries)
				}
				was := entries()
				a := h.get(path, test.headers...)
				if written := entries() - was; a.StatusCode != test.status || (written == 1) != (test.status == 200) {
					t.Errorf("%s: status %d and %d entries, want %d", path, a.StatusCode, written, test.status)
				}
			}
		})
	}
}
