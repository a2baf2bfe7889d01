package server

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"redrive/internal/apitype/work"
	"redrive/internal/bulk"
	"redrive/internal/job"
	"redrive/internal/operation"
)

// operated is a house in which operations are carried through.
func operated(t *testing.T, change ...func(*Options)) *house {
	t.Helper()
	var runner *bulk.Runner
	h := start(t, append(change, func(o *Options) { o.Engine.Notify = func() { runner.Notify() } })...)
	runner = bulk.Start(h.store.Operations, nil)
	t.Cleanup(runner.Close)
	return h
}

// reaches waits until an operation is in a state, and returns it.
func (h *house) reaches(id int64, state operation.State) operation.Operation {
	h.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		o, err := h.store.Operations.Get(h.t.Context(), id)
		if err != nil {
			h.t.Fatal(err)
		}
		if o.State == state {
			return o
		}
	}
	h.t.Fatalf("operation %d is never %s", id, state)
	return operation.Operation{}
}

func TestOperations_FormsLeadFromTicksToTheEnd(t *testing.T) {
	h := operated(t)
	a, b := h.dead(), h.dead()
	made := h.form("/operations", fmt.Sprintf("kind=replay&item=%s:1&item=%s:1&back=/dead-letters", a, b)).want(t, http.StatusSeeOther)
	if to := made.Header.Get("Location"); to != "/operations/1" {
		t.Errorf("it leads to %s", to)
	}
	preview := h.get("/operations/1").want(t, http.StatusOK).dom(t).text()
	for _, text := range []string{"2 jobs are eligible", "Replay 2 jobs", "selected jobs"} {
		if !strings.Contains(preview, text) {
			t.Errorf("the preview does not say %q", text)
		}
	}
	h.form("/operations/1/start", "rate=0&canary=0").want(t, http.StatusSeeOther)
	if o := h.reaches(1, operation.Finished); o.Done != 2 {
		t.Errorf("%d are done", o.Done)
	}
	h.form("/operations/1/start", "rate=0").want(t, http.StatusConflict)
	for _, path := range []string{"/operations", "/operations/1", "/operations/1?state=unsettled", "/operations/1?state=skipped"} {
		h.get(path).want(t, http.StatusOK)
	}
	h.get("/operations/7").want(t, http.StatusNotFound)
	h.get("/operations/x").want(t, http.StatusBadRequest)
	h.get("/operations/1?state=odd").want(t, http.StatusBadRequest)
}

func TestOperations_APIGoesTheSameWay(t *testing.T) {
	h := operated(t)
	for range 3 {
		h.dead()
	}
	body := `{"kind":"replay","filter":"type:order.ship","rate":1}`
	first := decode[work.OperationAnswer](t, h.post("/api/v1/operations", body, "Idempotency-Key", "once").want(t, http.StatusCreated)).Operation
	again := decode[work.OperationAnswer](t, h.post("/api/v1/operations", body, "Idempotency-Key", "once").want(t, http.StatusOK)).Operation
	if again.ID != first.ID || first.Filter != "state:dead_letter type:order.ship" {
		t.Errorf("made %+v, then %+v", first, again)
	}
	h.reaches(first.ID, operation.Preview)
	at := fmt.Sprintf("/api/v1/operations/%d", first.ID)
	h.post(at+"/start", `{"canary":100000000}`).want(t, http.StatusUnprocessableEntity)
	h.post(at+"/start", `{"rate":0.01,"canary":0}`).want(t, http.StatusOK)
	h.post(at+"/pause", "").want(t, http.StatusOK)
	h.post(at+"/pause", "").want(t, http.StatusConflict)
	for _, nothing := range []string{"", "{}"} { // never without a limit because a field is missing
		h.post(at+"/rate", nothing).want(t, http.StatusUnprocessableEntity)
	}
	h.form(fmt.Sprintf("/operations/%d/rate", first.ID), "rate=&spread=").want(t, http.StatusUnprocessableEntity)
	h.post(at+"/rate", `{"rate":0}`).want(t, http.StatusOK)
	h.post(at+"/resume", "").want(t, http.StatusOK)
	h.reaches(first.ID, operation.Finished)
	shown := decode[work.OperationAnswer](t, h.get(at).want(t, http.StatusOK)).Operation
	if shown.Done != 3 || shown.Total != 3 || shown.Unsettled != 3 {
		t.Errorf("at the end it is %+v", shown)
	}
	rate := decode[struct{ Done []int64 }](t, h.get(at+"/rate").want(t, http.StatusOK)).Done
	var sum int64
	for _, n := range rate {
		sum += n
	}
	if sum != 3 {
		t.Errorf("by its rate %v %d are done", rate, sum)
	}
	items := decode[struct{ Items []work.OperationItem }](t, h.get(at+"/items").want(t, http.StatusOK)).Items
	if len(items) != 3 || items[0].State != operation.ItemDone || items[0].Type != "order.ship" {
		t.Errorf("its items are %+v", items)
	}
	h.post(at+"/abort", "").want(t, http.StatusConflict)
}

func TestOperations_BadRequestsNameTheField(t *testing.T) {
	h := operated(t)
	for body, field := range map[string]string{
		`{"kind":"explode","filter":"state:dead_letter"}`: "kind",
		`{"kind":"replay"}`: "filter",
		`{"kind":"replay","filter":"state:dead_letter","jobs":[]}`:                "jobs",
		`{"kind":"replay","filter":"color:red"}`:                                  "filter",
		`{"kind":"replay","filter":"state:active"}`:                               "filter",
		`{"kind":"replay","filter":"state:dead_letter","rate":-1}`:                "rate",
		`{"kind":"replay","filter":"state:dead_letter","rate":1,"spread":"PT1M"}`: "spread",
		`{"kind":"replay","filter":"state:dead_letter","canary":-1}`:              "canary",
		`{"kind":"replay","jobs":[{"id":"x","run":1}]}`:                           "jobs[0].id",
		`{"kind":"discard","relapsed_of":1}`:                                      "kind",
		`{"kind":"replay","relapsed_of":0}`:                                       "relapsed_of",
		`{"kind":"explode","relapsed_of":1}`:                                      "kind",
		`{"kind":"explode","jobs":[{"id":"` + unknownID + `","run":1}]}`:          "kind",
		`{"kind":"discard","filter":" "}`:                                         "filter",
		`{"kind":"replay","filter":"state:dead_letter","speed":1}`:                "speed",
	} {
		if a := h.post("/api/v1/operations", body).want(t, http.StatusUnprocessableEntity); !strings.Contains(a.body, `"`+field+`"`) {
			t.Errorf("%s: %s", body, a.body)
		}
	}
	h.form("/operations", "kind=replay&item=nonsense").want(t, http.StatusUnprocessableEntity)
}

// Nothing ticked is nothing to act on, never everything.
func TestOperations_WithoutATickNothingIsActedOn(t *testing.T) {
	h := operated(t)
	h.dead()
	for _, form := range []string{"kind=replay", "kind=discard&back=/dead-letters?queue=nosuch"} {
		if a := h.form("/operations", form).want(t, http.StatusUnprocessableEntity); !strings.Contains(a.body, "tick at least one row") {
			t.Errorf("%s: %s", form, a.body)
		}
	}
	if a := h.get("/api/v1/operations").want(t, http.StatusOK); strings.Contains(a.body, `"id"`) {
		t.Errorf("an operation was made: %s", a.body)
	}
}

func TestOperations_StartKeepsThePaceThatWasAgreed(t *testing.T) {
	for _, test := range []struct {
		made, rate, start string
		want              string // of the pace that runs
	}{
		{`"rate":0.01,"canary":1`, "", "", `"rate":0.01,"canary":1,"guard":true`},
		{`"rate":0.01,"guard":false`, "", `{"canary":2}`, `"rate":0.01,"canary":2,"guard":false`},
		{`"spread":"PT1H","canary":0`, "", `{"guard":false}`, `"spread":"PT1H","canary":0,"guard":false`},
		{`"spread":"PT1H","canary":0`, "", `{"rate":0.02}`, `"rate":0.02,"canary":0,"guard":true`},
		{`"rate":0.01`, `{"rate":0.03}`, "", `"rate":0.03,"canary":0,"guard":true`},
		{`"rate":0.01`, `{"spread":"PT3H"}`, `{"canary":1}`, `"spread":"PT3H","canary":1,"guard":true`},
		{`"rate":0.01`, "", `{"spread":"PT2H"}`, `"spread":"PT2H","canary":0,"guard":true`},
	} {
		h := operated(t)
		for range 3 {
			h.dead()
		}
		o := decode[work.OperationAnswer](t, h.post("/api/v1/operations", `{"kind":"replay","filter":"state:dead_letter",`+test.made+`}`).want(t, http.StatusCreated)).Operation
		h.reaches(o.ID, operation.Preview)
		at := fmt.Sprintf("/api/v1/operations/%d", o.ID)
		if test.rate != "" {
			h.post(at+"/rate", test.rate).want(t, http.StatusOK)
		}
		got := decode[struct{ Operation map[string]any }](t, h.post(at+"/start", test.start).want(t, http.StatusOK)).Operation
		var want map[string]any
		if err := json.Unmarshal([]byte("{"+test.want+"}"), &want); err != nil {
			t.Fatal(err)
		}
		for name, v := range want {
			if got[name] != v {
				t.Errorf("made with %s, rate %s, started with %s: %s is %v, want %v", test.made, test.rate, test.start, name, got[name], v)
			}
		}
	}
}

func TestOperations_LargeOnesAreConfirmedByTheirNumber(t *testing.T) {
	h := operated(t)
	jobs := make([]job.Job, operation.ConfirmAbove+1)
	for i := range jobs {
		jobs[i] = job.Job{Queue: "orders", Type: "many", Payload: []byte("1"), Timeout: time.Minute,
			State: job.Discarded, DeadLetter: job.DeadLetterStored, Reason: "attempts_exhausted"}
	}
	if _, err := h.store.Enqueue(t.Context(), time.Now(), jobs); err != nil {
		t.Fatal(err)
	}
	h.form("/operations", "kind=replay&q=type:many").want(t, http.StatusSeeOther)
	h.reaches(1, operation.Preview)
	h.form("/operations/1/start", "rate=0&canary=0").want(t, http.StatusUnprocessableEntity)
	h.form("/operations/1/start", "rate=0&canary=0&confirm=1,001").want(t, http.StatusSeeOther)
	if o := h.reaches(1, operation.Finished); o.Done != operation.ConfirmAbove+1 {
		t.Errorf("%d are done", o.Done)
	}
}

// The history of a job names the operations that acted on it, and leads there.
func TestOperations_AreInTheHistoryOfTheirJobs(t *testing.T) {
	h := operated(t)
	id := h.dead()
	h.form("/operations", "kind=discard&item="+id+":1&back=/dead-letters").want(t, http.StatusSeeOther)
	h.form("/operations/1/start", "rate=0&canary=0").want(t, http.StatusSeeOther)
	h.reaches(1, operation.Finished)
	page := h.get("/jobs/"+id).want(t, http.StatusOK)
	_, history, _ := strings.Cut(strings.Join(strings.Fields(page.dom(t).text()), " "), "bytesRaw")
	if !strings.Contains(history, "moved the job to the trash with operation 1") || strings.Contains(history, "discarded the dead letter") {
		t.Errorf("the history does not say once what the operation did: %s", history)
	}
	if !strings.Contains(page.body, `href="/operations/1"`) {
		t.Error("the page does not lead to the operation")
	}
	acts := decode[struct{ Operations []work.OperationAct }](t, h.get("/api/v1/jobs/"+id).want(t, http.StatusOK)).Operations
	if len(acts) != 1 || acts[0].Operation != 1 || acts[0].Kind != operation.Discard || acts[0].Run != 1 {
		t.Errorf("the API says %+v", acts)
	}
}

// A preview says after how many it will pause, as the page does, and so does the
// operation once it runs.
func TestOperations_PreviewSaysItsCanary(t *testing.T) {
	h := operated(t)
	h.post("/api/v1/jobs/batch", `{"jobs":[`+strings.Repeat(`{"type":"a","queue":"orders"},`, 100)+`{"type":"a","queue":"orders"}]}`).want(t, http.StatusCreated)
	h.fail("orders", "http.503", "closed", "") // 100 at once
	h.fail("orders", "http.503", "closed", "")
	for i, c := range []struct{ asked, want string }{{"", `"canary":5`}, {`,"canary":7`, `"canary":7`}, {`,"canary":0`, `"canary":0`}} {
		h.post("/api/v1/operations", `{"kind":"replay","filter":"queue:orders","rate":0.01`+c.asked+`}`).want(t, http.StatusCreated)
		o := h.reaches(int64(i+1), operation.Preview)
		at := fmt.Sprintf("/api/v1/operations/%d", o.ID)
		if o.Pending != 101 {
			t.Fatalf("%d jobs are in the scope", o.Pending)
		}
		if a := h.get(at).want(t, http.StatusOK); !strings.Contains(a.body, c.want+",") {
			t.Errorf("asked for %q, the preview says %s", c.asked, a.body)
		}
		if page := h.get(fmt.Sprintf("/operations/%d", o.ID)).body; !strings.Contains(page, `name="canary" type="number" min="0" max="10000" value="`+c.want[9:]) {
			t.Errorf("the page says another canary than %s", c.want)
		}
	}
	if a := h.post("/api/v1/operations/1/start", `{}`).want(t, http.StatusOK); !strings.Contains(a.body, `"canary":5,`) {
		t.Errorf("started it says %s", a.body)
	}
	h.form("/operations/2/start", "rate=0.01&canary=").want(t, http.StatusSeeOther) // a user has cleared the field
	if a := h.get("/api/v1/operations/2").want(t, http.StatusOK); !strings.Contains(a.body, `"canary":0,`) {
		t.Errorf("started without a canary it says %s", a.body)
	}
}
