package server

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/access"
	"redrive/internal/clip"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/wire"
)

// failing makes a group of two dead jobs and returns its fingerprint, and one of
// the jobs.
func (h *house) failing() (fingerprint, id string) {
	h.t.Helper()
	h.dead()
	id = h.dead()
	d, err := h.store.Job(h.t.Context(), id)
	if err != nil || d.Group.Failures != 2 {
		h.t.Fatalf("the group of two jobs has %d failures, %v", d.Group.Failures, err)
	}
	return d.Group.Fingerprint, id
}

func (h *house) group(fingerprint string) failures.Group {
	h.t.Helper()
	d, err := h.store.Groups.Get(h.t.Context(), time.Now(), fingerprint)
	if err != nil {
		h.t.Fatal(err)
	}
	return d.Group
}

// Every way from a failure to those like it leads to one page.
func TestFailures_AreLinkedFromWhereTheyShow(t *testing.T) {
	h := start(t)
	fingerprint, id := h.failing()
	link := `href="/failures/` + fingerprint + `"`
	for path, words := range map[string]string{
		"/": "1</span> open groups", "/jobs/" + id: "2 similar failures", "/dead-letters": "2 alike</a>", "/queues/orders": "Open causes", "/failures": "1 open group: 2 dead",
	} {
		if a := h.get(path).want(t, http.StatusOK); !strings.Contains(a.body, link) || !strings.Contains(a.body, words) {
			t.Errorf("%s has no %s, or does not say %q", path, link, words)
		}
	}
	a := h.get("/failures/"+fingerprint).want(t, http.StatusOK)
	for _, words := range []string{
		"Replay all 2 dead…", `href="/jobs/` + id + `"`, `value="` + id + `:1"`, "the warehouse is closed", "all 2 dead (as of", "Payload keys",
	} {
		if !strings.Contains(a.body, words) {
			t.Errorf("the page of the group does not say %q", words)
		}
	}
}

// What the button on the page sends is a preview of the group's dead jobs.
func TestFailures_ReplayOfAGroupIsPreviewed(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	page := h.get("/failures/" + fingerprint).body
	_, rest, _ := strings.Cut(page, `type="hidden" name="q" value="`)
	q, _, _ := strings.Cut(rest, `"`)
	f, err := filter.Parse(q, time.Now())
	if err != nil || f.Group != fingerprint || f.Status != job.StatusDeadLetter || f.To.IsZero() {
		t.Fatalf("the page sends the filter %q: %+v, %v", q, f, err)
	}
	a := h.form("/operations", url.Values{"kind": {"replay"}, "q": {q}, "back": {"/failures/" + fingerprint}}.Encode()).want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); !strings.HasPrefix(to, "/operations/") {
		t.Errorf("the form leads to %q, not to the preview", to)
	}
	if a := h.get("/failures/" + fingerprint); !strings.Contains(a.body, "Operations on this group") {
		t.Error("the group does not name the operation")
	}
}

func TestFailures_FormsDecide(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	here := "/failures/" + fingerprint
	begin := time.Now().Truncate(time.Microsecond)
	in := func(d time.Duration) func(failures.Group) bool {
		return func(g failures.Group) bool { return !g.Until.Before(begin.Add(d)) && !g.Until.After(time.Now().Add(d)) }
	}
	for _, test := range []struct {
		act, fields string
		state       failures.State
		is          func(failures.Group) bool
		says        string
	}{
		{"resolve", "", failures.Resolved, func(g failures.Group) bool { return g.StateBy != "" }, "The next failure reopens the group."},
		{"reopen", "", failures.Open, func(g failures.Group) bool { return g.Patience == failures.Patience{} }, "Opened by "},
		{"ignore", "how=for&for=P7D&count=no+number", failures.Ignored, in(7 * 24 * time.Hour), " until "},
		{"ignore", "how=count&count=100", failures.Ignored, func(g failures.Group) bool { return g.Patience.Count == 102 }, "until 102 failures in all."},
		{"ignore", "how=rate&rate=50", failures.Ignored, func(g failures.Group) bool { return g.Patience == failures.Patience{Rate: 50} }, "until 50 failures within an hour."},
		{"ignore", "how=always", failures.Ignored, func(g failures.Group) bool { return g.Patience == failures.Patience{} }, " until reopened."},
		{"note", "note=+they+know%0D%0Asince+noon+", failures.Ignored, func(g failures.Group) bool { return g.Note == "they know\nsince noon" }, "they know since noon"},
		{"note", "note=", failures.Ignored, func(g failures.Group) bool { return g.Note == "" }, "What others should know"},
	} {
		name := test.act + " " + test.fields
		a := h.form(here+"/"+test.act, test.fields).want(t, http.StatusSeeOther)
		if to := a.Header.Get("Location"); to != here {
			t.Errorf("%s leads to %q", name, to)
		}
		if g := h.group(fingerprint); g.State != test.state || !test.is(g) {
			t.Errorf("%s: the group is %+v", name, g)
		}
		if page := h.get(here); !strings.Contains(page.body, test.says) {
			t.Errorf("%s: the page does not say %q", name, test.says)
		}
	}
	if a := h.get("/audit"); strings.Count(a.body, fingerprint) < 8 {
		t.Error("the audit log does not have every decision")
	}
	a := h.form(here+"/reopen", "back=%2Ffailures%3Fstate%3Dignored").want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != "/failures?state=ignored" {
		t.Errorf("a row of the list leads to %q", to)
	}
}

func TestFailures_APIDecides(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	here := "/api/v1/failures/" + fingerprint
	until := wire.FormatTime(time.Now().Add(time.Hour))
	type reply struct{ Group map[string]any }
	for _, test := range []struct {
		act, body string
		want      map[string]any
	}{
		{"resolve", ``, map[string]any{"state": "resolved"}},
		{"reopen", ``, map[string]any{"state": "open"}},
		{"ignore", `{"until":"` + until + `"}`, map[string]any{"state": "ignored", "until": until}},
		{"ignore", `{"failures":7,"failures_an_hour":3}`, map[string]any{"until": nil, "until_failures": 9.0, "until_failures_an_hour": 3.0}},
		{"ignore", `{}`, map[string]any{"state": "ignored", "until_failures": nil}},
		{"note", `{"note":"they know"}`, map[string]any{"note": "they know"}},
	} {
		got := decode[reply](t, h.post(here+"/"+test.act, test.body).want(t, http.StatusOK)).Group
		shown := decode[reply](t, h.get(here).want(t, http.StatusOK)).Group
		for name, want := range test.want {
			if got[name] != want || shown[name] != want {
				t.Errorf("%s %s: %s is %v, and %v when it is asked for, want %v", test.act, test.body, name, got[name], shown[name], want)
			}
		}
	}
	if g := decode[reply](t, h.post(here+"/ignore", `{"for":"PT2H"}`).want(t, http.StatusOK)).Group; g["until"] == nil {
		t.Errorf("ignored for two hours: %v", g)
	}
}

// several makes n groups of a dead job each and returns their fingerprints.
func (h *house) several(n int) (fingerprints []string) {
	h.t.Helper()
	for i := range n {
		h.enqueue(`{"type":"order.ship","queue":"orders","payload":{"n":1}}`)
		h.fail("orders", "http.503", "the warehouse is closed "+strings.Repeat("so ", i), "")
	}
	page, err := h.store.Groups.List(h.t.Context(), time.Now(), failures.Filter{}, failures.Cursor{}, 100)
	if err != nil || len(page.Groups) != n {
		h.t.Fatalf("%d groups, %v, want %d", len(page.Groups), err, n)
	}
	for _, g := range page.Groups {
		fingerprints = append(fingerprints, g.Fingerprint)
	}
	return fingerprints
}

// What is ticked on the list is decided at once, each group in the audit log.
func TestFailures_SeveralAreDecided(t *testing.T) {
	h := start(t)
	all := h.several(3)
	states := func() (states []failures.State) {
		for _, fingerprint := range all {
			states = append(states, h.group(fingerprint).State)
		}
		return states
	}
	ticked := url.Values{"group": all[:2], "kind": {"resolve"}, "back": {"/failures?type=order.*"}}.Encode()
	a := h.form("/failures/resolve", ticked).want(t, http.StatusSeeOther)
	if to := a.Header.Get("Location"); to != "/failures?type=order.*" {
		t.Errorf("the form leads to %q", to)
	}
	if got := states(); !slices.Equal(got, []failures.State{failures.Resolved, failures.Resolved, failures.Open}) {
		t.Errorf("the groups are %v", got)
	}
	a = h.form("/failures/reopen", ticked, "Accept", "application/json").want(t, http.StatusOK)
	if !strings.Contains(a.body, "2 groups reopened") || strings.Count(a.body, `"state":"open"`) != 2 {
		t.Errorf("a script is answered %s", a.body)
	}
	h.post("/api/v1/failures/ignore", `{"groups":["`+strings.Join(append(all, "gone"), `","`)+`"],"failures":5}`).want(t, http.StatusOK)
	if got := states(); !slices.Equal(got, []failures.State{failures.Ignored, failures.Ignored, failures.Ignored}) || h.group(all[2]).Patience.Count != 6 {
		t.Errorf("the groups are %v", got)
	}
	for body, status := range map[string]int{
		`{}`: http.StatusUnprocessableEntity, `{"groups":[]}`: http.StatusUnprocessableEntity, `{"groups":"a"}`: http.StatusUnprocessableEntity,
		`{"groups":["` + strings.Repeat(`a","`, 100) + `a"]}`: http.StatusUnprocessableEntity,
	} {
		h.post("/api/v1/failures/resolve", body).want(t, status)
	}
	if n := len(h.entries(all[0])); n != 3 {
		t.Errorf("the audit log has %d entries of the first group, want 3", n)
	}
}

// Several groups make one operation on what was dead when the list was drawn.
func TestFailures_SeveralAreReplayedByOneOperation(t *testing.T) {
	h := operated(t)
	all := h.several(3)
	page := h.get("/failures").want(t, http.StatusOK).body
	_, rest, _ := strings.Cut(page, `name="to" value="`)
	drawn, _, _ := strings.Cut(rest, `"`)
	form := url.Values{"group": all[:2], "kind": {"replay"}, "to": {drawn}}
	a := h.form("/operations", form.Encode(), "Accept", "application/json").want(t, http.StatusCreated)
	o := decode[struct {
		Operation struct {
			ID     int64
			Filter string
		}
	}](t, a).Operation
	if f, err := filter.Parse(o.Filter, time.Now()); err != nil || f.Group != strings.Join(all[:2], ",") || f.To.IsZero() {
		t.Errorf("the operation is on %q", o.Filter)
	}
	if got := h.reaches(o.ID, operation.Preview); got.Total != 2 {
		t.Errorf("the operation has %d jobs, want 2", got.Total)
	}
	for i, fingerprint := range all {
		if named := strings.Contains(h.get("/failures/"+fingerprint).body, "Operations on this group"); named != (i < 2) {
			t.Errorf("group %d names the operation: %t", i, named)
		}
	}
	form.Set("to", "soon")
	h.form("/operations", form.Encode()).want(t, http.StatusUnprocessableEntity)
	form.Del("group")
	h.form("/operations", form.Encode()).want(t, http.StatusUnprocessableEntity)
}

func TestFailures_AreExported(t *testing.T) {
	h := start(t)
	all := h.several(3)
	h.post("/api/v1/failures/"+all[0]+"/resolve", "{}").want(t, http.StatusOK)
	lines := strings.Split(strings.TrimSpace(h.get("/failures.csv?state=open").want(t, http.StatusOK).body), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "fingerprint,type,class,message,") || !strings.Contains(lines[1], "the warehouse is closed") {
		t.Errorf("the open groups are\n%s", strings.Join(lines, "\n"))
	}
	lines = strings.Split(strings.TrimSpace(h.get("/failures.ndjson").want(t, http.StatusOK).body), "\n")
	if len(lines) != 3 || !strings.Contains(strings.Join(lines, ""), `"state":"resolved"`) {
		t.Errorf("all groups are\n%s", strings.Join(lines, "\n"))
	}
	h.get("/failures.csv?state=lost").want(t, http.StatusBadRequest)
	if e := h.entries("failures.csv"); len(e) != 1 || e[0].Filter != "state:open" || e[0].Count != 2 {
		t.Errorf("the audit log says %+v", e)
	}
}

// A group that a person ignores is left out of the overview, and the overview says so.
func TestFailures_TheOverviewSaysWhatItLeavesOut(t *testing.T) {
	h := start(t)
	all := h.several(2)
	for _, words := range []string{"1 ignored group not shown", "2 ignored groups not shown"} {
		h.post("/api/v1/failures/"+all[0]+"/ignore", "{}").want(t, http.StatusOK)
		if page := h.get("/").body; !strings.Contains(page, words) || !strings.Contains(page, `href="/failures?state=ignored"`) {
			t.Errorf("the overview does not say %q", words)
		}
		all = all[1:]
	}
}

func TestFailures_APIListsAndShows(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	h.enqueue(`{"type":"order.ship","queue":"orders"}`)
	h.fail("orders", "sql.Deadlock", "deadlock", "")
	type page struct {
		Groups []struct {
			Fingerprint, Class, State string
			Dead, Failures            int64
			LastDay                   []int64 `json:"last_day"`
		}
		Next string
	}
	first := decode[page](t, h.get("/api/v1/failures?limit=1&state=open").want(t, http.StatusOK))
	if len(first.Groups) != 1 || first.Next == "" || first.Groups[0].Fingerprint != fingerprint || first.Groups[0].Dead != 2 || len(first.Groups[0].LastDay) != 24 {
		t.Errorf("the first page is %+v", first)
	}
	second := decode[page](t, h.get("/api/v1/failures?limit=1&state=open&after="+first.Next).want(t, http.StatusOK))
	if len(second.Groups) != 1 || second.Next != "" || second.Groups[0].Class != "sql.Deadlock" {
		t.Errorf("the second page is %+v", second)
	}
	for query, want := range map[string]int{"state=resolved": 0, "q=dead": 1, "queue=orders": 2, "queue=plain": 0, "type=order.*": 2, "sort=seen": 2} {
		if got := decode[page](t, h.get("/api/v1/failures?"+query).want(t, http.StatusOK)); len(got.Groups) != want || got.Groups == nil {
			t.Errorf("%s finds %+v, want %d", query, got, want)
		}
	}
	shown := decode[struct {
		Hours  []struct{ Failures, Final int64 }
		Sample string
	}](t, h.get("/api/v1/failures/"+fingerprint))
	if n := len(shown.Hours); n != 24 || shown.Sample == "" {
		t.Errorf("the group has %d hours, and the sample %q", n, shown.Sample)
	}
}

// Nothing is decided by what cannot be understood; the answer names the field.
func TestFailures_BadInputChangesNothing(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	before := h.group(fingerprint)
	long := strings.Repeat("x", job.MaxNote+1)
	for _, test := range []struct{ act, fields, field string }{
		{"ignore", "how=sometimes", "how"}, {"ignore", "how=for&for=soon", "for"}, {"ignore", "how=for&for=-PT1H", "for"},
		{"ignore", "how=count&count=many", "count"}, {"ignore", "how=count&count=0", "count"}, {"ignore", "how=count&count=1000000001", "count"},
		{"ignore", "how=rate&rate=-1", "rate"}, {"ignore", "how=rate", "rate"}, {"note", "note=" + long, "note"},
	} {
		a := h.form("/failures/"+fingerprint+"/"+test.act, test.fields, "Accept", "application/json")
		if f := decode[problemAnswer](t, a); a.StatusCode != http.StatusUnprocessableEntity || f.Error.Field != test.field {
			t.Errorf("%s %s: %d %s", test.act, clip.Text(test.fields, 60), a.StatusCode, a.body)
		}
		if a := h.form("/failures/"+fingerprint+"/"+test.act, test.fields, "Accept", "text/html"); a.StatusCode != http.StatusUnprocessableEntity || !strings.Contains(a.body, "</html>") {
			t.Errorf("%s %s: a browser gets %d", test.act, clip.Text(test.fields, 60), a.StatusCode)
		}
	}
	for _, test := range []struct{ act, body, field string }{
		{"ignore", `{"until":"2001-01-01T00:00:00Z"}`, "until"}, {"ignore", `{"until":"noon"}`, "until"}, {"ignore", `{"for":"soon"}`, "for"},
		{"ignore", `{"failures":-1}`, "failures"}, {"ignore", `{"failures_an_hour":"x"}`, "failures_an_hour"}, {"ignore", `{"who":1}`, "who"},
		{"note", `{"note":"` + long + `"}`, "note"}, {"note", `{"note":7}`, "note"},
	} {
		a := h.post("/api/v1/failures/"+fingerprint+"/"+test.act, test.body)
		if f := decode[problemAnswer](t, a); a.StatusCode != http.StatusUnprocessableEntity || f.Error.Field != test.field {
			t.Errorf("API %s %s: %d %s", test.act, clip.Text(test.body, 60), a.StatusCode, clip.Text(a.body, 200))
		}
	}
	for _, query := range []string{"state=closed", "sort=age", "queue=a+b", "after=x"} {
		if a := h.get("/failures?" + query); a.StatusCode != http.StatusBadRequest || !strings.Contains(a.body, "cannot be used") {
			t.Errorf("/failures?%s: %d", query, a.StatusCode)
		}
		h.get("/api/v1/failures?"+query).want(t, http.StatusBadRequest)
	}
	if after := h.group(fingerprint); after.State != before.State || after.Note != before.Note || after.Patience != before.Patience || !after.StateAt.IsZero() {
		t.Errorf("the group became %+v", after)
	}
}

// Who only looks sees the buttons, and why they are off; the server refuses what
// is sent anyway.
func TestFailures_ViewersDecideNothing(t *testing.T) {
	h := start(t)
	fingerprint, _ := h.failing()
	h.staff()
	cookie := h.session(string(access.Viewer))
	for _, act := range []string{"resolve", "reopen", "ignore", "note"} {
		h.form("/failures/"+fingerprint+"/"+act, "how=always&note=x", "Cookie", cookie, "Origin", h.http.URL).want(t, http.StatusForbidden)
		h.post("/api/v1/failures/"+fingerprint+"/"+act, `{}`, "Cookie", cookie, "Origin", h.http.URL).want(t, http.StatusForbidden)
	}
	if g := h.group(fingerprint); !g.StateAt.IsZero() || g.Note != "" {
		t.Errorf("a viewer changed the group: %+v", g)
	}
	page := h.get("/failures/"+fingerprint, "Cookie", cookie).want(t, http.StatusOK)
	for _, button := range strings.Split(page.body, "<button")[1:] {
		tag, rest, _ := strings.Cut(button, ">")
		words, _, _ := strings.Cut(rest, "</button>")
		if acts := strings.Contains(words, "Resolve") || strings.Contains(words, "Save note") || strings.Contains(words, "Replay"); acts && (!strings.Contains(tag, "disabled") || !strings.Contains(tag, `title="`)) {
			t.Errorf("a viewer may use <button%s>, or it does not say why not", tag)
		}
	}
}

func TestFailures_UnknownIsNotFound(t *testing.T) {
	h := start(t)
	h.failing()
	for _, fingerprint := range []string{"0123456789abcdef", "nobody", "%00", "..%2F..%2Fjobs", strings.Repeat("a", 2000)} {
		if a := h.get("/failures/" + fingerprint); a.StatusCode != http.StatusNotFound || !strings.Contains(a.body, "error group") {
			t.Errorf("/failures/%s: %d %s", clip.Text(fingerprint, 40), a.StatusCode, clip.Text(a.body, 200))
		}
		if a := h.get("/api/v1/failures/" + fingerprint); a.StatusCode != http.StatusNotFound || decode[problemAnswer](t, a).Error.Code != "not_found" {
			t.Errorf("API of %s: %d %s", clip.Text(fingerprint, 40), a.StatusCode, clip.Text(a.body, 200))
		}
		for act, body := range map[string]string{"resolve": `{}`, "reopen": `{}`, "ignore": `{}`, "note": `{"note":"x"}`} {
			h.form("/failures/"+fingerprint+"/"+act, "how=always&note=x").want(t, http.StatusNotFound)
			h.post("/api/v1/failures/"+fingerprint+"/"+act, body).want(t, http.StatusNotFound)
		}
	}
}
