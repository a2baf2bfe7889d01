package pages_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"redrive/test/rig"
	"redrive/test/site"
)

// A canary is a secret that says in its name where it was put in.
const canary = "canary7f3a91"

var canaries = regexp.MustCompile(canary + `-\w+`)

// The birds go in wherever a secret can: under names of keys that are hidden,
// at configured paths, in strings that hold JSON, and in texts of failures.
const canaryConfig = `
policy: {max_attempts: 1}
redaction:
  keys: [+pan]
  paths: ["$.customer.email"]
  types: {"exec.*": ["$.to[*]"]}
handlers:
  "http.*": {http: {url: %[1]q}}
  "urn:babel:http:sent": {http: {url: %[1]q}}
  "exec.*": {exec: {command: [%[2]q]}}
`

const (
	canaryPayload = `{"password": "canary7f3a91-key", "customer": {"email": "canary7f3a91-path", "name": "ana"}, "list": [{"Pan": 4711, "api-key": ["canary7f3a91-array"]}],
		"raw": "{\"token\": \"canary7f3a91-nested\"}", "log": "retry with password=canary7f3a91-text", "at": "https://ana:canary7f3a91-address@example.org/"}`
	canaryMeta    = `{"session_id": "canary7f3a91-meta", "note": "Authorization: Bearer canary7f3a91-bearer"}`
	canaryTo      = `{"to": ["canary7f3a91-to"], "secret": "canary7f3a91-exec"}`
	canaryRefusal = `{"error": {"type": "Denied", "message": "login failed: {\"user\": \"ana\", \"password\": \"canary7f3a91-message\"}",
		"details": {"access_token": "canary7f3a91-details", "request": "GET /?api_key=canary7f3a91-query HTTP/1.1"}}}`
	canaryAnswer  = `the server said: <password>canary7f3a91-xml</password> Cookie: sid=canary7f3a91-cookie`
	canaryScript  = "#!/bin/sh\necho 'token: canary7f3a91-stderr' >&2\necho 'at login(password=canary7f3a91-frame)' >&2\necho '--api-key canary7f3a91-stdout'\nexit 1\n"
	canaryURN     = `{"job": "urn:babel:http:sent", "trace_id": "7b3f9c2a-e41d-4f88-9b2a-1c0d5e6f7a8b", "data": ` + canaryPayload + `, "meta": {"id": "m-1", "schema_version": 1, "auth_token": "canary7f3a91-envelope"}, "attempts": 0}`
	canaryPoison  = `{"job": "http.unread", "trace_id": "", "data": ` + canaryPayload + `, "meta": {"schema_version": 1}, "attempts": "3"}`
	canaryLaravel = `{"displayName": "App\\Login", "maxTries": 1, "data": {"password": "canary7f3a91-laravel", "log": "password=canary7f3a91-logged"}}`
	canaryThrown  = "App\\Denied: login failed: password=canary7f3a91-thrown in /srv/login.php:7\nStack trace:\n#0 login(password=canary7f3a91-traced)"
	canaryHalf    = `{"job": "http.half", "trace_id": "t", "data": {"password": "canary7f3a91-half`
)

// aviary is a running dashboard into which all the canaries were put.
type aviary struct {
	*rig.Process
	t   *testing.T
	ids []string
}

func openAviary(t *testing.T) *aviary {
	t.Helper()
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusUnprocessableEntity)
		answer := canaryRefusal
		if r.Header.Get("Redrive-Job-Type") == "http.plain" {
			answer = canaryAnswer
		}
		io.WriteString(w, answer)
	}))
	t.Cleanup(web.Close)
	dir := t.TempDir()
	script := filepath.Join(dir, "work.sh")
	rig.Write(t, dir, "work.sh", canaryScript)
	if err := os.Chmod(script, 0o700); err != nil {
		t.Fatal(err)
	}
	section := rig.AttachedShop(t, dir, "orders", []rig.FailedJob{{UUID: "u-1", Connection: "database", Queue: "logins", Payload: canaryLaravel, Exception: canaryThrown}})
	rig.Write(t, dir, "redrive.yaml", fmt.Sprintf(canaryConfig, web.URL, script)+section)
	return &aviary{Process: rig.Start(t, dir, "--log-level", "debug"), t: t}
}

// tell sends JSON, and fails unless the answer has the status and keeps silent
// about every canary.
func (a *aviary) tell(path, body string, status int) {
	a.t.Helper()
	response, err := http.Post(a.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	a.silent("POST "+path, a.read(response))
	if response.StatusCode != status {
		a.t.Fatalf("POST %s: %s, want %d", path, response.Status, status)
	}
}

func (a *aviary) read(response *http.Response) string {
	a.t.Helper()
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return string(data)
}

func (a *aviary) silent(where, said string) {
	a.t.Helper()
	if found := birds(said); len(found) > 0 {
		a.t.Errorf("%s tells %v", where, slices.Sorted(maps.Keys(found)))
	}
}

func (a *aviary) dead(n int) {
	a.Until(func(now rig.Totals) bool { return now.States["dead_letter"] == n })
}

// fill puts everything in and lets it fail, be edited, noted, discarded.
func (a *aviary) fill() {
	job := func(typ, payload string) string {
		return fmt.Sprintf(`{"type": %q, "queue": "orders", "payload": %s, "meta": %s}`, typ, payload, canaryMeta)
	}
	a.tell("/api/v1/jobs", job("http.sent", canaryPayload), http.StatusCreated)
	a.tell("/api/v1/jobs", job("http.text", `"not JSON inside: pwd=canary7f3a91-plain"`), http.StatusCreated)
	a.tell("/api/v1/jobs/batch", `{"jobs": [`+job("http.plain", canaryPayload)+`, `+job("exec.sent", canaryTo)+`]}`, http.StatusCreated)
	for _, envelope := range []string{canaryURN, canaryPoison, canaryHalf} {
		a.tell("/api/v1/queues/orders/envelopes", envelope, http.StatusCreated)
	}
	a.tell("/api/v1/jobs", canaryHalf, http.StatusBadRequest)
	a.dead(8) // one of them at the source
	for _, j := range rig.Get[struct{ Jobs []struct{ ID string } }](a.t, a.URL+"/api/v1/jobs").Jobs {
		a.ids = append(a.ids, j.ID)
	}
	edited := strings.Replace(canaryPayload, "-key", "-edited", 1)
	a.tell("/api/v1/jobs/"+a.of("http.sent")+"/replay", `{"run": 1, "payload": `+edited+`}`, http.StatusOK)
	a.Until(func(now rig.Totals) bool { return now.Failed >= 6 && now.States["dead_letter"] == 8 })
	a.edit(a.of("http.plain"))
	a.Until(func(now rig.Totals) bool { return now.Failed >= 7 && now.States["dead_letter"] == 8 })
	group := rig.Get[struct {
		Groups []struct{ Fingerprint string }
	}](a.t, a.URL+"/api/v1/failures").Groups[0].Fingerprint
	a.tell("/api/v1/failures/"+group+"/note", `{"note": "log in with password=canary7f3a91-note"}`, http.StatusOK)
	a.tell("/api/v1/failures/"+group+"/note", `{"note": "or with password=canary7f3a91-second"}`, http.StatusOK)
	a.tell("/api/v1/jobs/"+a.of("exec.sent")+"/discard", `{"run": 1}`, http.StatusOK)
	a.tell("/api/v1/operations", `{"kind": "replay", "filter": "id:`+a.of("urn:babel:http:sent")+`", "rate": 0, "canary": 0, "start": true}`, http.StatusCreated)
	a.Until(func(now rig.Totals) bool { return now.Failed >= 8 && now.States["dead_letter"] == 7 })
}

// edit replays a job from the page's form: one secret is new, the others stand
// there as their masks.
func (a *aviary) edit(id string) {
	form := url.Values{"run": {"1"}, "payload": {`{"password": "canary7f3a91-typed"}`}}
	for _, do := range []string{"check", "replay"} {
		form.Set("do", do)
		response, err := http.PostForm(a.URL+"/jobs/"+id+"/replay", form)
		if err != nil {
			a.t.Fatal(err)
		}
		if said := a.read(response); do != "check" { // what was just typed stands in the form
			a.silent("the answer to the form", said)
		}
	}
}

// of is the id of a job of a type.
func (a *aviary) of(typ string) string {
	a.t.Helper()
	jobs := rig.Get[struct{ Jobs []struct{ ID string } }](a.t, a.URL+"/api/v1/jobs?type="+typ).Jobs
	if len(jobs) == 0 {
		a.t.Fatalf("there is no job of type %s", typ)
	}
	return jobs[0].ID
}

// follow replays a job while it is followed, and returns all that the live
// connection said.
func (a *aviary) follow(id string) (said string) {
	a.t.Helper()
	conn, _, err := websocket.DefaultDialer.Dial("ws"+strings.TrimPrefix(a.URL, "http")+"/live", nil)
	if err != nil {
		a.t.Fatal(err)
	}
	defer conn.Close()
	err = conn.WriteJSON(map[string]any{"type": "subscribe", "ids": a.ids, "newer": true, "filter": map[string]string{"state": "dead_letter"}})
	if err != nil {
		a.t.Fatal(err)
	}
	a.tell("/api/v1/jobs/"+id+"/replay", `{"run": 1}`, http.StatusOK)
	for !strings.Contains(said, id) || !strings.Contains(said, `"run":2`) || !strings.Contains(said, "dead_letter") {
		_, frame, err := conn.ReadMessage()
		if err != nil {
			a.t.Fatalf("the live connection ended: %v after %s", err, said)
		}
		said += string(frame) + "\n"
	}
	return said
}

// look opens whatever can be read: every page that links lead to, as far as the reach
// goes, and every route with each id.
func (a *aviary) look(reach site.Reach) {
	a.t.Helper()
	var more []string
	for _, id := range a.ids {
		more = append(more, "/jobs/"+id, "/jobs/"+id+"/replay")
	}
	site.Walk(a.t, a.URL, reach, more, func(p site.Page) { a.silent(p.Path, p.Body) })
	groups := rig.Get[struct {
		Groups []struct{ Fingerprint string }
	}](a.t, a.URL+"/api/v1/failures").Groups
	for _, route := range site.Gets(a.t) {
		ids := a.ids
		if strings.Contains(route, "/operations/") {
			ids = []string{"1"}
		}
		if strings.Contains(route, ":fingerprint") {
			ids = nil
			for _, g := range groups {
				ids = append(ids, g.Fingerprint)
			}
		}
		if !strings.Contains(route, ":") {
			ids = []string{""}
		}
		for _, id := range ids {
			path := strings.NewReplacer(":id", id, ":fingerprint", id, ":name", "orders").Replace(route)
			response, err := http.Get(a.URL + path)
			if err != nil {
				a.t.Fatal(err)
			}
			a.silent(path, a.read(response))
			if response.StatusCode >= http.StatusInternalServerError {
				a.t.Errorf("%s answers %s", path, response.Status)
			}
		}
	}
}

// searchable waits until everything can be searched, and a query finds something.
func (a *aviary) searchable(query string) {
	a.t.Helper()
	late := time.Now().Add(3 * time.Minute)
	for {
		found := rig.Get[struct {
			Jobs []any
			Lag  int `json:"not_searchable_yet"`
		}](a.t, a.URL+"/api/v1/jobs?q="+query)
		if found.Lag == 0 && len(found.Jobs) > 0 {
			return
		}
		if time.Now().After(late) {
			a.t.Fatalf("%d jobs are found, %d not searchable", len(found.Jobs), found.Lag)
		}
	}
}

// Whatever way a secret takes into the dashboard, it is on no page, in no answer, export,
// live frame, log line or entry of the audit log, and no search finds it. A user who may
// reveal it sees it, after the audit log has recorded that.
func TestRedaction_NoCanarySings(t *testing.T) {
	t.Parallel()
	noCanarySings(t, site.Reach{Addresses: 1, Kinds: 2})
}

func TestLong_RedactionNoCanarySingsAnywhere(t *testing.T) {
	t.Parallel()
	noCanarySings(t, site.Reach{Addresses: 8, Kinds: 8})
}

func noCanarySings(t *testing.T, reach site.Reach) {
	t.Helper()
	a := openAviary(t)
	a.fill()
	a.look(reach)
	a.silent("the live connection", a.follow(a.of("http.text")))
	a.searchable("payload:customer")
	for name := range birds(canaryPayload + canaryMeta + canaryRefusal + canaryAnswer + canaryScript + canaryLaravel + canaryThrown) {
		for _, query := range []string{name, "payload:" + name, "error:" + name, "meta:" + name} {
			if found := rig.Get[struct{ Jobs []any }](t, a.URL+"/api/v1/jobs?q="+url.QueryEscape(query)).Jobs; len(found) > 0 {
				t.Errorf("%s is found by searching for it", query)
			}
		}
	}
	a.silent("the log", a.Stderr.String())
	response, err := http.Post(a.URL+"/api/v1/jobs/"+a.of("http.sent")+"/reveal", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	if shown, want := birds(a.read(response)), birds(strings.Replace(canaryPayload, "-key", "-edited", 1)); len(shown) < len(want) {
		t.Errorf("revealed are %v, want %v", shown, want)
	}
	a.look(reach)
	a.silent("the log", a.Stop(os.Interrupt).Stderr.String())
}

// birds are the canaries in a text.
func birds(text string) map[string]bool {
	all := map[string]bool{}
	for _, name := range canaries.FindAllString(text, -1) {
		all[name] = true
	}
	return all
}
