package templates_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/net/html"

	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/web/templates/jobpage"
)

// doc is a page or a part of it, to be asked for what it says.
type doc struct{ *html.Node }

// all returns the elements that match one simple selector: "name", ".class",
// "[attribute]", "#id", or "name.class".
func (d doc) all(selector string) []doc {
	var found []doc
	for n := range d.Descendants() {
		if n.Type == html.ElementNode && matches(n, selector) {
			found = append(found, doc{n})
		}
	}
	return found
}

func matches(n *html.Node, selector string) bool {
	e := doc{n}
	switch selector[0] {
	case '#':
		return e.attr("id") == selector[1:]
	case '[':
		return slices.ContainsFunc(n.Attr, func(a html.Attribute) bool { return a.Key == strings.Trim(selector, "[]") })
	}
	name, class, _ := strings.Cut(selector, ".")
	return (name == "" || n.Data == name) && (class == "" || slices.Contains(strings.Fields(e.attr("class")), class))
}

func (d doc) one(t *testing.T, selector string) doc {
	t.Helper()
	found := d.all(selector)
	if len(found) == 0 {
		t.Fatalf("nothing matches %s", selector)
	}
	return found[0]
}

func (d doc) attr(name string) string {
	for _, a := range d.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// text is what a reader sees, with its spaces joined.
func (d doc) text() string {
	var b strings.Builder
	for n := range d.Descendants() {
		if n.Type == html.TextNode {
			b.WriteString(n.Data)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

func jobDoc(t *testing.T, name string) doc {
	t.Helper()
	v, ok := jobPages()[name]
	if !ok {
		t.Fatalf("no page %s", name)
	}
	return doc{parse(t, v).root}
}

// The first sentence answers when the job runs again and why then, or what
// became of it, for every state.
func TestJob_SaysWhatComesNext(t *testing.T) {
	for name, want := range map[string]string{
		"job-retryable":       "Attempt 4 of 5 starts in 16 s, at 14:02:27. Attempt 3 failed; the policy waits 22.6 s. If attempts 4 and 5 also fail, the job becomes a dead letter at about 14:03:10.",
		"job-first-retry":     "Attempt 2 of 5 starts in 3 s, at 14:02:14. Attempt 1 failed; the policy waits 5 s. If attempts 2 to 5 also fail, the dead letter will be refused (the queue has no dead-letter queue) at about 14:03:28.",
		"job-retry-paused":    "Attempt 2 of 5 starts in 3 s, at 14:02:14. Attempt 1 failed; the policy waits 5 s. If attempts 2 to 5 also fail, the job becomes a dead letter at about 14:03:28. Currently blocked: no handler is configured for payments.capture; add one under handlers in the configuration file and reload it.",
		"job-overdue":         "Attempt 2 of 5 is due since 14:00:17 and starts as soon as a worker is free. Attempt 1 failed; the policy waits 5 s. If attempts 2 to 5 also fail, the job becomes a dead letter at about 14:03:25.",
		"job-scheduled":       "Attempt 1 of 5 starts in 2 h, at 16:02:11. This time was set when the job was enqueued. If all 5 attempts fail, the job becomes a dead letter at about 16:03:26.",
		"job-available":       "Attempt 1 of 5 starts as soon as a worker is free, waiting since 14:02:05.",
		"job-held":            "Attempt 1 of 5 does not start: no handler is configured for payments.capture; add one under handlers in the configuration file and reload it. The job has waited since 14:01:11; nothing is lost.",
		"job-paused":          "Attempt 1 of 5 does not start: queue payments was paused by ana at 13:50:00. The job has waited since 14:02:05; nothing is lost.",
		"job-shortage":        "Attempt 1 of 5 starts as soon as a worker is free, waiting since 14:00:15. The last execution does not count as an attempt: this process or machine had run out of something.",
		"job-interrupted":     "Attempt 1 of 5 starts as soon as a worker is free, waiting since 14:00:15. A graceful stop released the job; that does not count as an attempt.",
		"job-replayed":        "Attempt 1 of 5 starts as soon as a worker is free, waiting since 14:02:09. sam replayed the job at 14:02:09.",
		"job-active":          "Attempt 2 of 5 has run for 4 s, since 14:02:07, on w-eu-2. Time limit: 30 s, until 14:02:37. The lease lasts until 14:02:47; the worker's last sign of life was at 14:02:07. If this attempt fails, attempt 3 follows after 8.5 to 11.5 s.",
		"job-active-last":     "Attempt 2 of 2 has run for 14 s, since 14:01:57, on w-eu-2. Time limit: 30 s, until 14:02:27. The lease lasts until 14:02:37; the worker's last sign of life was at 14:01:57. This is the last attempt: if it fails, the job becomes a dead letter.",
		"job-active-quiet":    "Attempt 1 of 5 has run for 10 min, since 13:52:11, on w-eu-4. Time limit: 30 s, until 13:52:41. The lease ran out at 13:52:51 and the worker has given no sign of life since 13:52:11: the attempt will be settled as lost.",
		"job-completed":       "The job succeeded at 14:01:19, 52 s ago, in attempt 2 of run 1. Nothing more will run.",
		"job-replay-worked":   "The job succeeded at 14:01:51, 19 s ago, in attempt 1 of run 2. The replay worked. Nothing more will run.",
		"job-dead-letter":     "The job was dead-lettered at 13:42:18, 20 min ago: both attempts failed. It will not run again unless you replay it.",
		"job-dlq-failed":      "The dead letter was refused: the queue payments has no dead-letter queue. The job is kept; nothing is lost. It failed permanently at 13:42:18, 20 min ago: both attempts failed. It will not run again unless you replay it.",
		"job-non-retryable":   "The job was dead-lettered at 13:02:12, 60 min ago: errors of the type auth.expired are never retried. It will not run again unless you replay it.",
		"job-handler-letter":  "The job was dead-lettered at 13:02:12, 60 min ago: the handler marked the error as not retryable. It will not run again unless you replay it.",
		"job-handler-discard": "The handler discarded the job at 13:02:12, 60 min ago, after attempt 1, without a dead letter. It will not run again unless you replay it.",
		"job-policy-discard":  "The policy discarded the job at 13:42:18, 20 min ago, without a dead letter: both attempts failed. It will not run again unless you replay it.",
		"job-manual-discard":  "The job was discarded manually at 14:01:11, 60 s ago. It will not run again unless you replay it.",
		"job-resolved":        "sam discarded the dead letter at 14:01:11, 60 s ago. The job had failed permanently at 13:42:18. It will not run again unless you replay it.",
		"job-unknown-type":    "The job was discarded at 13:02:12: no handler is configured for the type. The configuration discards jobs of unknown types. It will not run again unless you replay it.",
		"job-cancelled":       "The job was cancelled manually at 13:02:15, while running; what the worker still did cannot change the job. It will not run again unless you replay it.",
		"job-unknown-state":   "The job is quarantined, since 13:02:12.",
	} {
		if got := jobDoc(t, name).one(t, ".next").text(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
	}
}

func TestJob_OffersWhatItsStateAllows(t *testing.T) {
	for name, v := range jobPages() {
		if v.Problem != "" {
			continue
		}
		d := doc{parse(t, v).root}
		var open []string
		for _, f := range d.all("[data-act]") {
			open = append(open, f.attr("data-act"))
		}
		for kind, allowed := range map[string]bool{
			"replay": v.Job.Replayable(), "discard": v.Job.Discardable(), "cancel": v.Job.Cancellable(),
		} {
			if slices.Contains(open, kind) != allowed {
				t.Errorf("%s: a form for %s: %v, allowed: %v", name, kind, !allowed, allowed)
			}
		}
	}
}

func TestJob_ReplayFormNamesTheRunThatThePageShows(t *testing.T) {
	d := jobDoc(t, "job-retryable")
	for _, f := range d.all("[data-act]") {
		if f.attr("data-act") != "replay" {
			continue
		}
		fields := map[string]string{}
		for _, in := range f.all("input") {
			fields[in.attr("name")] = in.attr("value")
		}
		path := "/jobs/019ce2f4-7a1e-7c30-9d2b-4f6a1e8b5c07"
		if f.attr("method") != "post" || f.attr("action") != path+"/replay" || fields["run"] != "2" || fields["back"] != path {
			t.Errorf("replay form %v with fields %v", f.Attr, fields)
		}
		if f.one(t, "button").text() != "Replay, run 3" {
			t.Errorf("the button says %q", f.one(t, "button").text())
		}
		return
	}
	t.Error("no form to replay")
}

func TestJob_ChangesNothingWhileTheDatabaseIsReadOnly(t *testing.T) {
	d := jobDoc(t, "job-read-only")
	if forms := d.one(t, ".actions").all("form"); len(forms) > 0 {
		t.Errorf("%d forms that act", len(forms))
	}
	if note := d.one(t, "[data-note]").text(); note != "" {
		t.Errorf("what the banner says is said again: %q", note)
	}
	if banner := d.one(t, "#notices").text(); !strings.Contains(banner, "The disk is full.") {
		t.Errorf("the banner says %q", banner)
	}
}

func TestJob_CarriesWhatTheScriptsPatch(t *testing.T) {
	d := jobDoc(t, "job-retryable")
	head := d.one(t, "[data-changed]")
	if head.attr("data-job") != "019ce2f4-7a1e-7c30-9d2b-4f6a1e8b5c07" || head.attr("data-run") != "2" || head.attr("data-changed") != "2026-03-12T14:02:05.25Z" {
		t.Errorf("head %v", head.Attr)
	}
	if cell := head.one(t, "[data-cell]"); cell.attr("data-cell") != "state" || cell.text() != "retryable" {
		t.Errorf("the first cell is %v, %q", cell.Attr, cell.text())
	}
	if in := d.one(t, "[data-countdown]"); !strings.HasPrefix(in.attr("datetime"), "2026-03-12T14:02:27.8") {
		t.Errorf("countdown to %s", in.attr("datetime"))
	}
}

func TestJob_AnswerOfAnActionStandsOnThePage(t *testing.T) {
	if got := jobDoc(t, "job-replayed").one(t, "[data-answer]").text(); got != "Done. payments.capture 8b5c07 is in run 3: available." {
		t.Errorf("answer %q", got)
	}
}

func TestJob_AttemptsStandNewestFirstAndEveryBarLeadsToOne(t *testing.T) {
	d := jobDoc(t, "job-retryable")
	var ids []string
	for _, li := range d.all("li.attempt") {
		ids = append(ids, li.attr("id"))
	}
	want := "run-2-attempt-3 run-2-attempt-2 run-2-attempt-1 run-1-attempt-5 run-1-attempt-4 run-1-attempt-3 run-1-attempt-2 run-1-attempt-1"
	if got := strings.Join(ids, " "); got != want {
		t.Errorf("attempts %s\nwant %s", got, want)
	}
	for _, name := range []string{"job-retryable", "job-active", "job-interrupted", "job-many-runs"} {
		d := jobDoc(t, name)
		for _, svg := range d.all(".lane") {
			for _, a := range svg.all("a") {
				if len(d.all(a.attr("href"))) != 1 {
					t.Errorf("%s: %s leads to %d elements", name, a.attr("href"), len(d.all(a.attr("href"))))
				}
			}
		}
	}
}

func TestJob_TimelineIsSaidInWords(t *testing.T) {
	var said []string
	for _, l := range jobDoc(t, "job-retryable").all("svg.lane") {
		said = append(said, l.attr("aria-label"))
	}
	want := []string{
		"Run 1: five attempts in 1 min 56 s, then dead letter",
		"Run 2: three attempts in 46.2 s so far; attempt 4 after 22.6 s; attempt 5 after 34 to 46 s",
	}
	if !slices.Equal(said, want) {
		t.Errorf("lanes say %q\nwant %q", said, want)
	}
}

func TestJob_SaysWhatHappenedAfterEachAttempt(t *testing.T) {
	for name, want := range map[string]string{
		"job-dead-letter":     "stored in the dead-letter queue at 13:42:18",
		"job-dlq-failed":      "the dead letter was refused: the queue payments has no dead-letter queue; the job was kept",
		"job-resolved":        "stored in the dead-letter queue at 13:42:18; sam discarded the dead letter at 14:01:11",
		"job-retryable":       "retries at 14:02:27",
		"job-replayed":        "sam replayed the job at 14:02:09, before this retry",
		"job-handler-discard": "discarded, without a dead letter",
		"job-shortage":        "put back at once, because this process or machine had run out of something; not counted",
		"job-interrupted":     "released by a graceful stop and put back at once; not counted",
		"job-cancelled":       "cancelled manually while running; not counted",
	} {
		d := jobDoc(t, name)
		all := d.one(t, "li.attempt").one(t, ".why").all("dd")
		if got := all[len(all)-1].text(); got != want {
			t.Errorf("%s: then %q, want %q", name, got, want)
		}
	}
}

func TestJob_LongLifeStaysBounded(t *testing.T) {
	v := manyRuns(120).page()
	for i := range v.Attempts {
		v.Attempts[i].Trace = strings.Repeat("at a.go:1\n", 20_000)
		v.Attempts[i].Error.Message = strings.Repeat("x", job.MaxErrorMessage)
	}
	page := render(t, v)
	if limit := 4 << 20; len(page) > limit {
		t.Errorf("the page has %d bytes, more than %d", len(page), limit)
	}
	text := doc{parse(t, v).root}.text()
	for _, want := range []string{"70 older runs and 140 older attempts are not on this page. Earlier attempts", "The first 8 KiB of 195.3 KiB.", "The first 2 KiB of 64 KiB. Full text, as JSON"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
}

// A page of the attempts of a job says how many are older, and leads to them.
func TestJob_LeadsToEarlierAttempts(t *testing.T) {
	v := manyRuns(1).page(func(v *jobpage.View) {
		v.Attempts[0].Number, v.Attempts[0].Execution = 4199, 4199
		v.Attempts[1].Number, v.Attempts[1].Execution = 4200, 4200
		v.Earlier, v.Total, v.Job.Attempts = 4198, 4200, 4200
	})
	d := doc{parse(t, v).root}
	for _, want := range []string{"One run, 4,200 attempts", "4,198 earlier attempts", "the newest 2", "4,198 older attempts are not on this page. Earlier attempts"} {
		if !strings.Contains(d.text(), want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if n := strings.Count(string(render(t, v)), `href="/jobs/`+v.Job.ID+`/attempts?after=4199"`); n != 2 {
		t.Errorf("%d links to the earlier attempts, want one at the timeline and one below the attempts", n)
	}
}

func TestJob_PayloadIsShownAsItWasReceived(t *testing.T) {
	var members []string
	for _, li := range jobDoc(t, "job-payload-duplicate").one(t, ".tree").all("li") {
		members = append(members, li.text())
	}
	if want := []string{"a: 1.10", "a: 1E+02", `s: "<b>\u202e"`}; !slices.Equal(members, want) {
		t.Errorf("members %q, want %q", members, want)
	}
	d := jobDoc(t, "job-payload-text")
	if got := d.one(t, "section.panel").Parent; got == nil {
		t.Error("no panel")
	}
	var shown []string
	for _, pre := range d.all("pre") {
		shown = append(shown, pre.text())
	}
	if !slices.Contains(shown, `=cmd()|'/C calc'!␀\xff`) {
		t.Errorf("texts %q, want the payload among them", shown)
	}
}

// Whatever a job holds stands on its page as text: no element, no attribute
// and no address comes of it. Here with every sixth hostile text.
func TestJob_DataNeverBecomesMarkup(t *testing.T) { neverBecomesMarkupOfAJob(t, some(hostile(), 6)) }

func TestLong_JobDataNeverBecomesMarkup(t *testing.T) { neverBecomesMarkupOfAJob(t, hostile()) }

func neverBecomesMarkupOfAJob(t *testing.T, texts []string) {
	t.Helper()
	for _, codes := range []bool{false, true} {
		for _, s := range texts {
			d := parse(t, poisonedJob(s, codes))
			if got, want := shape(d), shape(parse(t, poisonedJob(harmless(s), codes))); got != want {
				t.Errorf("%q changes the elements of the page: %s", s, firstDifference(got, want))
			}
			checkJobInert(t, d, s)
		}
	}
}

func TestJob_DrawingsAreMeasured(t *testing.T) {
	for name, v := range jobPages() {
		for _, n := range parse(t, v).elements("rect") {
			for _, a := range n.Attr {
				if a.Key != "class" && !strings.ContainsAny(a.Val, "0123456789#") {
					t.Errorf("%s: a bar has %s=%q", name, a.Key, a.Val)
				}
			}
		}
	}
}

// harmless is a text with the length, the lines and the encoding of another one: a page
// shows long ones and several lines in a box, and what is no UTF-8 without a tree.
func harmless(s string) string {
	var b strings.Builder
	for _, r := range s {
		switch size := utf8.RuneLen(r); {
		case r == '\n' || r == '\r':
			b.WriteRune(r)
		case r == utf8.RuneError:
			b.WriteByte(0xff)
		default:
			b.WriteString(strings.Repeat("x", size))
		}
	}
	return b.String()
}

// checkJobInert is checkInert with the one address more that a job has.
func checkJobInert(t *testing.T, d tree, where string) {
	t.Helper()
	for _, n := range d.elements("a") {
		for i, a := range n.Attr {
			if a.Key == "href" {
				n.Attr[i].Val = strings.TrimPrefix(a.Val, "/api/v1")
			}
		}
	}
	checkInert(t, d, where)
}

// poisonedJob is a page of a job whose every string is s; codes are states,
// outcomes and other words that a program chose.
func poisonedJob(s string, codes bool) jobpage.View {
	v := captured().page()
	v.PausedAt, v.Acted = now, &job.Change{}
	poison(reflect.ValueOf(&v).Elem(), s, codes)
	var quoted bytes.Buffer
	e := json.NewEncoder(&quoted)
	e.SetEscapeHTML(false)
	if err := e.Encode(strings.ToValidUTF8(s, "")); err != nil {
		panic(err)
	}
	v.Job.Payload = fmt.Appendf(nil, `{"a": %s, %[1]s: 1}`, &quoted)
	v.Job.Meta = fmt.Appendf(nil, `{"trace": %s}`, &quoted)
	v.Job.Envelope = []byte(s + "\n" + s)
	v.Job.Origins = job.Origins{"max_attempts": s, "ttr": "type:" + s, "strategy": "queue:" + s + "/preset:" + s, "jitter": "rule:" + s}
	if codes {
		v.Job.Payload = []byte(s + "\x00")
	}
	return v
}

// poison puts s into every string that can be reached from v, so that a field
// that is added tomorrow is tested too.
func poison(v reflect.Value, s string, codes bool) {
	switch v.Kind() {
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range v.NumField() {
			poison(v.Field(i), s, codes)
		}
	case reflect.Slice:
		for i := range v.Len() {
			poison(v.Index(i), s, codes)
		}
	case reflect.Pointer:
		if !v.IsNil() {
			poison(v.Elem(), s, codes)
		}
	case reflect.String:
		if codes || v.Type() == reflect.TypeFor[string]() || v.Type() == reflect.TypeFor[retry.Reason]() {
			v.SetString(s)
		}
	}
}

// Reveal is offered where it shows more: errors were stored without their secrets.
func TestJob_OffersRevealWhereSomethingCanBeRevealed(t *testing.T) {
	const hidden = `{"api_key":"••••••#1"}`
	for name, c := range map[string]struct {
		change func(*jobpage.View)
		offers bool
	}{
		"an error": {func(v *jobpage.View) {
			v.Job.Error.Message, v.Attempts[0].Trace = "api_key=••••••", "api_key=••••••"
		}, false},
		"a payload":   {func(v *jobpage.View) { v.Job.Payload = []byte(hidden) }, true},
		"meta":        {func(v *jobpage.View) { v.Job.Meta = json.RawMessage(hidden) }, true},
		"an envelope": {func(v *jobpage.View) { v.Job.Envelope = []byte(hidden) }, true},
		"a revealed payload": {func(v *jobpage.View) {
			v.Job.Payload, v.Revealed = []byte(hidden), true
		}, false},
	} {
		v := jobPages()["job-dead-letter"]
		v.Attempts = slices.Clone(v.Attempts)
		c.change(&v)
		if offers := strings.Contains(doc{parse(t, v).root}.text(), "Reveal"); offers != c.offers {
			t.Errorf("%s: Reveal is offered: %v, want %v", name, offers, c.offers)
		}
	}
}

// A run that was replayed while it waited for a retry waits no more.
func TestJob_ARunThatWasReplayedIsNotRetryable(t *testing.T) {
	d := jobDoc(t, "job-replayed")
	if got := d.one(t, "#run-2").one(t, ".badge").text(); got != "replayed" {
		t.Errorf("run 2 is %q", got)
	}
}
