package templates_test

import (
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"redrive/internal/history"
	"redrive/internal/job"
	"redrive/web/templates/jobpage"
)

// editing is the form of a dead payment, as it opens.
func editing() jobpage.Edit {
	j := failure(0, job.StatusDeadLetter)
	j.Payload = []byte(`{"order_id":88412,"amount":4990,"provider":"paylane","lines":[{"sku":"TR-204"},{"sku":"MK-011"}],"capture":true}`)
	text, _ := jobpage.EditorText(j.Payload)
	return jobpage.Edit{
		Frame: frame("jobs", "Replay payments.capture"), Job: j, Was: text, Will: text, Policy: j.Policy,
		Form:   map[string]string{"payload": text, "queue": j.Queue, "priority": "0"},
		Errors: map[string]string{}, Queues: []string{"payments", "payments-eu2"}, Uses: []string{"ojs", "daycry", "sidekiq"},
	}
}

func editStates(all map[string]page) {
	all["edit"] = editing()
	v := editing()
	v.Will = strings.Replace(strings.Replace(v.Was, "paylane", "paylane-eu2", 1), `"capture": true`, "\"capture\": true,\n  \"reason\": \"replayed on eu2\"", 1)
	v.Form["payload"], v.Form["queue"], v.Form["delay"] = v.Will, "payments-eu2", "5m"
	v.Paths, v.Checked, v.RunAt = []string{"$.provider", "$.reason"}, true, now.Add(5*time.Minute)
	v.Policy.MaxAttempts = 3
	v.Form["max_attempts"] = "3"
	all["edit-checked"] = v
	v = editing()
	v.Form = map[string]string{"payload": "{\"a\": <b>}", "queue": "payments", "priority": "high", "coefficient": "0.5", "delay": "soon"}
	v.Will = v.Form["payload"]
	v.Errors = map[string]string{
		"payload": "is not JSON: invalid character '<' looking for beginning of value, in line 1", "priority": `"high" is not a whole number, or is too large`,
		"coefficient": "0.5 is not a number of at least 1", "delay": `"soon" is not a duration of at most ten years, for example 5s, 2m, 7d or PT1H`,
	}
	all["edit-wrong"] = v
	v = editing()
	v.Conflict = "run 1 was replayed by sam at 2026-03-12 14:02:09 UTC; the job is available in run 2"
	all["edit-conflict"] = v
	v = editing()
	v.Job.Payload = []byte("\x00\xff")
	v.Was, v.Fixed = jobpage.EditorText(v.Job.Payload)
	v.Will = v.Was
	v.Job.Policy.MaxAttempts, v.Policy.MaxAttempts = 1, 1
	all["edit-fixed"] = v
	v = editing()
	v.Was = strings.Replace(v.Was, `"amount": 4990`, `"token": "••••••#1"`, 1)
	v.Will, v.Form["payload"], v.Locked, v.Token = v.Was, v.Was, 1, "••••••"
	all["edit-locked"] = v
	v = editing()
	v.Frame.Problem = "The disk is full."
	all["edit-read-only"] = v
}

func TestEdit_KeepsWhatWasTyped(t *testing.T) {
	d := parse(t, pages()["edit-wrong"])
	if got := d.one("name", "payload").FirstChild.Data; strings.TrimPrefix(got, "\n") != "{\"a\": <b>}" {
		t.Errorf("the editor holds %q", got)
	}
	for name, want := range map[string]string{"priority": "high", "coefficient": "0.5", "delay": "soon"} {
		n := d.one("name", name)
		if value(n, "value") != want || value(n, "aria-invalid") != "true" {
			t.Errorf("%s holds %q, invalid %s; want %q, invalid", name, value(n, "value"), value(n, "aria-invalid"), want)
		}
	}
	d.says("data-problem", "payload", "Is not JSON: invalid character '<'")
	d.says("role", "alert", "Nothing was replayed: 4 fields are not valid.")
}

func TestEdit_ShowsWhatChanges(t *testing.T) {
	d := parse(t, pages()["edit-checked"])
	var got []string
	for _, kind := range []string{"del", "add"} {
		for _, row := range d.with("class", kind) {
			got = append(got, text(row))
		}
	}
	want := `4 − removed "provider": "paylane ", 13 − removed "capture": true 4 + added "provider": "paylane -eu2 ", 13 + added "capture": true , 14 + added "reason": "replayed on eu2"`
	if strings.Join(got, " ") != want {
		t.Errorf("the difference is\n%s, want\n%s", strings.Join(got, " "), want)
	}
	d.says("role", "status", "Valid. Run 2 starts at 14:07:11 : same id, attempts from 0 again. Run 1 stays as it was.")
}

// A new secret is no line of the difference: the page shows dots before and after.
func TestEdit_SaysThatAHiddenValueChanges(t *testing.T) {
	v := pages()["edit-locked"].(jobpage.Edit)
	v.Paths, v.Checked = []string{"$.token"}, true
	parse(t, v).says("aria-labelledby", "h-diff", "Changes since run 1 at $.token A hidden value at $.token changes.")
	v.Paths = []string{"$.token", "$.pin"}
	parse(t, v).says("aria-labelledby", "h-diff", "Changes since run 1 at $.token, $.pin Hidden values at $.token, $.pin change.")
}

func TestEdit_CannotBeSentWhenNothingCanBeReplayed(t *testing.T) {
	v := editing()
	v.Job.State = job.Completed
	for name, p := range map[string]page{"read-only": pages()["edit-read-only"], "completed": v} {
		buttons := parse(t, p).nodes(func(n *html.Node) bool { return n.Data == "button" && value(n, "class") == "button primary" })
		if len(buttons) != 1 || value(buttons[0], "title") == "" {
			t.Errorf("%s: %d primary buttons, or it does not say why it is off", name, len(buttons))
		} else if _, off := attr(buttons[0], "disabled"); !off {
			t.Errorf("%s: it can be replayed", name)
		}
	}
}

func TestEditorText_ReadsBackAsTheSame(t *testing.T) {
	for payload, want := range map[string]string{
		`{"n":12345678901234567890,"f":1.0}`: "{\n  \"n\": 12345678901234567890,\n  \"f\": 1.0\n}",
		`"` + "\u202e" + `"`:                 `"\u202e"`,
		`null`:                               `null`,
		"two\nlines":                         "two\nlines",
	} {
		if got, why := jobpage.EditorText([]byte(payload)); got != want || why != "" {
			t.Errorf("%q is edited as %q (%s), want %q", payload, got, why, want)
		}
	}
	for _, payload := range []string{"\xff", "a\x00b", "a\u202eb", strings.Repeat("x", jobpage.MaxEditor+1)} {
		if _, why := jobpage.EditorText([]byte(payload)); why == "" {
			t.Errorf("%.9q can be edited; a browser would change it", payload)
		}
	}
}

// editedPage is a job whose second run had another payload, queue and policy.
func editedPage() jobpage.View {
	h := captured().replayed(now.Add(-2*time.Second), "sam")
	was := h.Job
	body := was.Body()
	body.Payload = []byte(`{"order_id":88412,"provider":"paylane"}`)
	h.Replays[len(h.Replays)-1].Earlier = &history.Earlier{
		Queue: "payments", Type: was.Type, Priority: 0, Policy: was.Policy, Origins: was.Origins, Timeout: was.Timeout, Body: &body,
	}
	h.Job.Payload = []byte(`{"order_id":88412,"provider":"paylane-eu2"}`)
	h.Job.Queue, h.Job.Priority, h.Job.Policy.MaxAttempts = "payments-eu2", 10, 3
	return h.page()
}

func TestJob_ShowsWhatAReplayChanged(t *testing.T) {
	d := parse(t, editedPage())
	run := "run-" + value(d.one("data-job", "*"), "data-run")
	says := text(d.one("id", run))
	for _, want := range []string{"Queue payments-eu2 was payments", "Priority 10 was 0", "Attempts 3 was 5", `"provider": "paylane -eu2 "`} {
		if !strings.Contains(says, want) {
			t.Errorf("the run does not say %q: %s", want, says)
		}
	}
	if says := text(d.one("id", "run-1")); strings.Contains(says, "Changed against") || !strings.Contains(says, "paylane") {
		t.Errorf("the first run does not show its own payload: %s", says)
	}
}
