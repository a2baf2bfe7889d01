package server

import (
	"net/http"
	"strings"
	"testing"

	"redrive/internal/access"
	"redrive/internal/apitype/admin"
	"redrive/internal/audit"
)

// The page does what the API does: users come, change and go, sessions end,
// tokens are made and revoked, and all of it is written down by name.
func TestAccessPage_ManagesWhoMayComeIn(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	ana := []string{"Cookie", h.session("ana"), "Sec-Fetch-Site", "same-origin"}
	act := func(path, form string, status int) answer {
		t.Helper()
		return h.form("/access"+path, form, ana...).want(t, status)
	}
	shown := func() string {
		t.Helper()
		return h.get("/access", ana...).want(t, http.StatusOK).dom(t).text()
	}
	act("/users", "name=bo&role=viewer&password=a+long+password", http.StatusSeeOther)
	again := act("/users", "name=bo&role=viewer&password=a+long+password", http.StatusConflict)
	if !strings.Contains(again.body, "The user bo exists already.") {
		t.Errorf("the page does not say why bo is not added again:\n%s", again.body)
	}
	act("/users", "name=cy&role=viewer&password=short", http.StatusUnprocessableEntity)
	act("/users/bo/role", "role=operator", http.StatusSeeOther)
	act("/users/bo/role", "role=king", http.StatusUnprocessableEntity)
	act("/users/bo/password", "password=another+long+password", http.StatusSeeOther)
	for _, form := range [][2]string{{"/users/ana/remove", ""}, {"/users/ana/role", "role=viewer"}} {
		if a := act(form[0], form[1], http.StatusConflict); !strings.Contains(a.body, "Ana is the last admin; make someone else an admin first.") {
			t.Errorf("%s does not say that ana is the last admin", form[0])
		}
	}
	h.session("bo")
	sessions := decode[struct{ Sessions []admin.Session }](t, h.get("/api/v1/sessions", ana...).want(t, http.StatusOK)).Sessions
	if len(sessions) != 2 || sessions[0].User != "bo" || sessions[0].Role != access.Operator {
		t.Fatalf("the sessions are %+v", sessions)
	}
	act("/sessions/"+sessions[0].ID+"/end", "", http.StatusSeeOther)
	act("/sessions/"+sessions[0].ID+"/end", "", http.StatusNotFound)
	act("/users/bo/remove", "", http.StatusSeeOther)
	act("/users/bo/remove", "", http.StatusNotFound)
	if text := shown(); strings.Contains(text, "operator") && strings.Contains(text, "bo you") {
		t.Errorf("bo is still shown:\n%s", text)
	}
	log := h.audited(t)
	for _, want := range []string{"user.add bo by ana", "user.role bo by ana", "user.password bo by ana", "session.end bo by ana", "user.remove bo by ana"} {
		if !strings.Contains(log, want) {
			t.Errorf("the audit log has no %q:\n%s", want, log)
		}
	}
}

// A token is shown once, where it was asked for, and nowhere again.
func TestAccessPage_ShowsATokenOnce(t *testing.T) {
	h := start(t)
	h.user("ana", access.Admin)
	ana := []string{"Cookie", h.session("ana"), "Sec-Fetch-Site", "same-origin"}
	made := h.form("/access/tokens", "name=ci&role=viewer&expires=P7D", ana...).want(t, http.StatusCreated)
	_, secret, _ := strings.Cut(made.body, "data-secret>")
	secret, _, _ = strings.Cut(secret, "<")
	h.get("/api/v1/jobs", "Authorization", "Bearer "+secret).want(t, http.StatusOK)
	page := h.get("/access", ana...).want(t, http.StatusOK)
	if strings.Contains(page.body, secret[len(secret)-43:]) || !strings.Contains(page.dom(t).text(), "in 7 d") {
		t.Errorf("the page shows the token again, or not when it ends:\n%s", page.body)
	}
	h.form("/access/tokens", "name=ci&role=viewer&expires=P7D", ana...).want(t, http.StatusConflict)
	tokens, err := h.store.Accounts.Tokens(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h.form("/access/tokens/"+tokens[0].ID+"/revoke", "", ana...).want(t, http.StatusSeeOther)
	h.get("/api/v1/jobs", "Authorization", "Bearer "+secret).want(t, http.StatusUnauthorized)
	if log := h.audited(t); !strings.Contains(log, "token.create "+tokens[0].ID+" by ana") || !strings.Contains(log, "token.revoke "+tokens[0].ID+" by ana") {
		t.Errorf("the audit log is\n%s", log)
	}
}

// audited is the newest of the audit log: what was done to what by whom.
func (h *house) audited(t *testing.T) string {
	t.Helper()
	list, err := h.store.Accounts.Audit(t.Context(), audit.Filter{}, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, e := range list.Entries {
		lines = append(lines, e.Action+" "+e.Subject+" by "+e.Actor.Name)
	}
	return strings.Join(lines, "\n")
}
