package server

import (
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/access"
	"redrive/internal/audit"
	"redrive/internal/clip"
	"redrive/internal/server/web"
)

const hush = "hush-4711"

// entries are the newest entries of the log about a subject.
func (h *house) entries(subject string) []audit.Entry {
	h.t.Helper()
	page, err := h.store.Accounts.Audit(h.t.Context(), audit.Filter{Subject: subject}, 0, 10)
	if err != nil {
		h.t.Fatal(err)
	}
	return page.Entries
}

// What is hidden is shown to who may reveal it, by the page and by the API, and
// each time it is written down.
func TestReveal_ShowsAndIsAudited(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"order.ship","queue":"orders","payload":{"password":"` + hush + `"}}`)
	h.fail("orders", "http.401", "password="+hush+" was refused", "")
	for _, a := range []answer{h.form("/jobs/"+id+"/reveal", ""), h.post("/api/v1/jobs/"+id+"/reveal", "")} {
		if n := strings.Count(a.want(t, http.StatusOK).body, hush); n < 2 {
			t.Errorf("it is shown %d times, want in the payload and in the error", n)
		}
	}
	if log := h.entries(id); len(log) != 2 || log[0].Action != audit.Reveal || log[1].Action != audit.Reveal {
		t.Errorf("the log has %+v", log)
	}
	if a := h.get("/jobs/"+id).want(t, http.StatusOK); strings.Contains(a.body, hush) {
		t.Error("the page shows it afterwards, too")
	}
	h.post("/api/v1/jobs/"+unknownID+"/reveal", "").want(t, http.StatusNotFound)
}

// Where the log cannot be written, nothing is revealed.
func TestReveal_NothingWithoutItsEntry(t *testing.T) {
	h := start(t)
	id := h.enqueue(`{"type":"order.ship","queue":"orders","payload":{"password":"` + hush + `"}}`)
	db, err := sql.Open("sqlite", "file:"+h.file())
	if err == nil {
		_, err = db.ExecContext(t.Context(), `CREATE TRIGGER full BEFORE INSERT ON audit BEGIN SELECT RAISE(ABORT, 'no room'); END`)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, a := range []answer{h.form("/jobs/"+id+"/reveal", ""), h.post("/api/v1/jobs/"+id+"/reveal", "")} {
		if a.StatusCode < http.StatusInternalServerError || strings.Contains(a.body, hush) {
			t.Errorf("without its entry it answers %d %s", a.StatusCode, clip.Text(a.body, 200))
		}
	}
}

// The page, the API and the exports tell the same, as far as the caller may see
// it: callers who do not manage see only their own reveals.
func TestAudit_TellsWhatOneMaySee(t *testing.T) {
	h := start(t)
	id := h.dead()
	tokens := h.staff()
	as := func(role access.Role) []string { return []string{"Authorization", "Bearer " + tokens[role]} }
	h.post("/api/v1/jobs/"+id+"/reveal", "", as(access.Admin)...).want(t, http.StatusOK)
	h.post("/api/v1/jobs/"+id+"/discard", `{"run":1}`, as(access.Operator)...).want(t, http.StatusOK)
	for _, path := range []string{"/audit", "/audit.csv", "/audit.ndjson", "/api/v1/audit"} {
		for role, reveals := range map[access.Role]bool{access.Viewer: false, access.Operator: false, access.Admin: true} {
			body := h.get(path+"?subject="+id, as(role)...).want(t, http.StatusOK).body
			if !strings.Contains(body, "job.discard") || !strings.Contains(body, "token operator") {
				t.Errorf("%s for the %s has no discard: %s", path, role, clip.Text(body, 300))
			}
			if strings.Contains(body, "token admin") != reveals {
				t.Errorf("%s for the %s tells of the reveal: %v, want %v", path, role, !reveals, reveals)
			}
		}
	}

	// So do the page and the API of the job, beside what happened to it.
	for _, path := range []string{"/jobs/" + id, "/api/v1/jobs/" + id} {
		for role, reveals := range map[access.Role]bool{access.Viewer: false, access.Operator: false, access.Admin: true} {
			body := h.get(path, as(role)...).want(t, http.StatusOK).body
			if !strings.Contains(body, "token operator") {
				t.Errorf("%s for the %s has no discard", path, role)
			}
			if strings.Contains(body, "token admin") != reveals {
				t.Errorf("%s for the %s tells of the reveal: %v, want %v", path, role, !reveals, reveals)
			}
		}
	}
	for role, all := range map[access.Role]bool{access.Viewer: false, access.Operator: false, access.Admin: true} {
		body := h.get("/api/v1/jobs/"+id, as(role)...).want(t, http.StatusOK).body
		if strings.Contains(body, "127.0.0.1") != all {
			t.Errorf("the trail of a job tells the %s an address: %v, want %v: %s", role, !all, all, body)
		}
	}
}

// Addresses, and the logins of others that failed or not, are for those who manage.
func TestAudit_ShowsAddressesAndLoginsToAdminsOnly(t *testing.T) {
	h := start(t)
	h.form("/queues/orders/pause", "").want(t, http.StatusSeeOther) // before there was a login
	tokens := h.staff()
	h.logIn("admin")
	h.form("/login", "name=admin&password=a+wrong+password").want(t, http.StatusUnauthorized)
	h.post("/api/v1/queues/orders/resume", "", "Authorization", "Bearer "+tokens[access.Operator]).want(t, http.StatusOK)
	for _, path := range []string{"/audit", "/audit.csv", "/audit.ndjson", "/api/v1/audit"} {
		for role, all := range map[access.Role]bool{access.Viewer: false, access.Operator: false, access.Admin: true} {
			body := h.get(path, "Authorization", "Bearer "+tokens[role]).want(t, http.StatusOK).body
			if !strings.Contains(body, "token operator") || !strings.Contains(body, "local user") {
				t.Errorf("%s for the %s does not tell who paused and resumed: %s", path, role, clip.Text(body, 300))
			}
			if strings.Contains(body, `"hash":`) != all && (path == "/audit.ndjson" || path == "/api/v1/audit") {
				t.Errorf("%s for the %s has hashes, in which an address could be found: %v, want %v", path, role, !all, all)
			}
			for _, guarded := range []string{"127.0.0.1", "unknown user"} {
				if strings.Contains(body, guarded) != all {
					t.Errorf("%s for the %s has %q: %v, want %v", path, role, guarded, !all, all)
				}
			}
		}
	}
}

// What the audit log says about an operation obeys the same rule where the operation is shown.
func TestAudit_ShowsAddressesOfAnOperationToAdminsOnly(t *testing.T) {
	h := start(t)
	h.dead()
	tokens := h.staff()
	as := func(role access.Role) []string { return []string{"Authorization", "Bearer " + tokens[role]} }
	h.post("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter"}`, as(access.Operator)...).want(t, http.StatusCreated)

	for role, all := range map[access.Role]bool{access.Viewer: false, access.Operator: false, access.Admin: true} {
		told := h.get("/api/v1/operations/1", as(role)...).want(t, http.StatusOK).body
		if !strings.Contains(told, "operation.new") || strings.Contains(told, "127.0.0.1") != all {
			t.Errorf("the API tells the %s an address: %v, want %v: %s", role, !all, all, told)
		}
		shown := h.get("/operations/1", as(role)...).want(t, http.StatusOK).body
		if !strings.Contains(shown, "token operator") || !all && strings.Contains(shown, "127.0.0.1") {
			t.Errorf("the page shows the %s an address", role)
		}
	}
}

// The log is filtered by who, what and when, and paged.
func TestAudit_FiltersAndPages(t *testing.T) {
	h := start(t)
	for range web.PageLimit + 1 {
		h.post("/api/v1/queues/orders/pause", "").want(t, http.StatusOK)
		h.post("/api/v1/queues/orders/resume", "").want(t, http.StatusOK)
	}
	type log struct {
		Entries []struct{ Action, Actor string }
		Next    int64
	}
	all := decode[log](t, h.get("/api/v1/audit?action=queue.pause").want(t, http.StatusOK))
	if len(all.Entries) != web.PageLimit || all.Next == 0 || all.Entries[0].Action != "queue.pause" || all.Entries[0].Actor != "API client (127.0.0.1)" {
		t.Errorf("the first page has %d entries, next %d: %+v", len(all.Entries), all.Next, all.Entries[0])
	}
	soon := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	if late := decode[log](t, h.get("/api/v1/audit?from="+soon).want(t, http.StatusOK)); len(late.Entries) != 0 {
		t.Errorf("%d entries are from the future", len(late.Entries))
	}
	if lines := strings.Count(h.get("/audit.csv?action=queue.*").want(t, http.StatusOK).body, "\n"); lines != 2*(web.PageLimit+1)+1 {
		t.Errorf("the export has %d lines, want all and a head", lines)
	}
	for _, query := range []string{"from=yesterday", "after=x"} {
		h.get("/api/v1/audit?"+query).want(t, http.StatusBadRequest)
		h.get("/audit?"+query).want(t, http.StatusBadRequest)
	}
}
