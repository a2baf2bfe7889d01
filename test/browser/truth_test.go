package browser_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"redrive/internal/app/apptest"
	"redrive/internal/store/databasetest"
	"redrive/test/mill"
	"redrive/test/rig"
)

// statements is everything that the page says, but for rows of lists, which stay
// where they are, answers to acts, and lengths of time, which go on.
const statements = `
	window.statements = (page) => {
		const main = page.querySelector("#main").cloneNode(true), side = page.querySelector("nav.side");
		for (const out of main.querySelectorAll("tbody, time, [data-keep], [data-note], .answer, .empty, [data-toast], form.bulk, template")) out.remove();
		return (side.textContent + "\n" + main.textContent).replace(/\bnow\b|[\d.,]+ (ms|s|min|h|d)( ago)?\b/g, "some time").replace(/\d\d:\d\d(:\d\d)?/g, "then").replace(/\s+/g, " ");
	};
	window.fresh = () => new Promise((resolve) => {
		const request = new XMLHttpRequest();
		request.responseType = "document";
		request.open("GET", location.href);
		request.onload = () => resolve(window.statements(request.response));
		request.send();
	});
	window.agrees = false;
	window.difference = "nothing was compared";
	{
		const compare = async () => {
			const drawn = await window.fresh(), shown = window.statements(document);
			window.agrees = drawn === shown;
			let at = 0;
			while (at < drawn.length && drawn[at] === shown[at]) at++;
			window.difference = "the page says …" + shown.slice(Math.max(0, at - 40), at + 80) + "… and a new one …" + drawn.slice(Math.max(0, at - 40), at + 80) + "…";
			setTimeout(compare, 200);
		};
		compare();
	}
	undefined;`

// truth watches what the open page says.
type truth struct {
	*mill.Mill
	*browser
	t *testing.T
}

// on opens a page and waits until it is live.
func (v truth) on(path string) {
	v.t.Helper()
	v.open(v.Mill.URL + path)
	eval[chromedp.Void](v.browser, statements)
}

// says waits until the open page says each of the texts, and then until everything
// on it is what a page drawn at that moment says. It is the same document all along.
func (v truth) says(texts ...string) {
	v.t.Helper()
	for _, text := range texts {
		v.wait("the page says "+text, `document.querySelector("#main").textContent.replace(/\s+/g, " ").includes(`+strconv.Quote(text)+`)`)
	}
	if err := v.poll(`window.agrees`); err != nil {
		v.t.Errorf("after it says %q: %s", texts, eval[string](v.browser, `window.difference`))
	}
	if eval[int](v.browser, `window.rowsTouched`) != 0 || !eval[bool](v.browser, `window.order() === window.firstOrder`) {
		v.t.Error("rows were added, removed or moved")
	}
}

// counts waits until the dead letters are n wherever their number stands.
func (v truth) counts(n int) {
	v.t.Helper()
	v.until(func(now rig.Totals) bool { return now.States["dead_letter"] == n })
	v.wait("the dead letters are "+strconv.Itoa(n), `[...document.querySelectorAll('[data-state-count="dead_letter"]')].every((e) => e.textContent.trim() === "`+strconv.Itoa(n)+`")`)
}

// until waits until the totals are as wanted.
func (v truth) until(holds func(rig.Totals) bool) {
	v.t.Helper()
	(&rig.Process{T: v.t, URL: v.Mill.URL}).Until(holds)
}

// post changes something over the API, as another client would.
func (v truth) post(path, body string) {
	v.t.Helper()
	response, err := http.Post(v.Mill.URL+"/api/v1"+path, "application/json", strings.NewReader(body))
	if err != nil {
		v.t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode >= 300 {
		v.t.Fatalf("POST %s was answered with %s", path, response.Status)
	}
}

func watchTruth(t *testing.T) truth { return watchTruthOn(t, apptest.Parts(t).DB) }

func watchTruthOn(t *testing.T, db string) truth {
	m := mill.StartOn(t, db)
	return truth{Mill: m, browser: openBrowser(t), t: t}
}

// Rule 0: whatever is done to a job, its page says it everywhere: in its badge, its
// sentence, its buttons and its history.
func TestTruth_OfAJob(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	id := v.DeadLetters(1)[0]
	v.on("/jobs/" + id)
	v.says("The job was dead-lettered")
	v.Act(id, "discard", `{"run":1}`)
	v.says("discarded the dead letter", "trashed", "Restore")
	v.counts(0)
	v.Act(id, "restore", `{"run":1}`)
	v.says("The job was dead-lettered", "dead letter")
	v.counts(1)
	v.Act(id, "replay", `{"run":1}`)
	v.says("Two runs, two attempts", "The job was dead-lettered", "Replay, run 3") // it failed again
	v.counts(1)
	v.Fixed.Store(true)
	v.pressOn(`form[data-act="replay"] button`)
	v.says("The job succeeded", "completed", "The replay worked", "Run 3")
	v.counts(0)
	v.calm()
}

// The lists, the overview and the page of a queue agree with themselves while jobs
// fail, are replayed and discarded, and while the queue is paused.
func TestTruth_OfListsAndQueues(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	v.Act(v.DeadLetters(5)[0], "discard", `{"run":1}`) // a trash that is empty would be drawn whole as soon as it is not
	for i, path := range []string{"/", "/dead-letters", "/jobs", "/failures", "/queues", "/queues/sieve", "/trash", "/jobs?state=dead_letter"} {
		v.on(path)
		ids := v.DeadLetters(2)
		v.says()
		v.Act(ids[0], "discard", `{"run":1}`)
		v.says()
		v.post("/queues/sieve/pause", "")
		v.says()
		v.Act(ids[1], "replay", `{"run":1}`)
		v.says()
		v.post("/queues/sieve/resume", "")
		v.says()
		v.Act(ids[0], "restore", `{"run":1}`)
		v.says()
		// A number that gets a digit more on the next page moves what is beside it.
		v.Settles(4 + 2*(i+1))
		if path != "/queues/sieve" { // whose own state is in its title
			v.still()
		}
	}
	v.on("/queues/sieve")
	v.post("/queues/sieve/pause", "")
	v.says("paused", "Resume")
	v.post("/queues/sieve/resume", "")
	v.says("Pause")
	v.calm()
}

// A cell stays in its column when its number becomes zero, so that a user who has selected
// it or put the focus into it keeps the selection or the focus.
func TestTruth_ACellStaysInItsColumn(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	id := v.DeadLetters(1)[0]
	v.on("/queues")
	eval[chromedp.Void](v.browser, `window.cells = [...document.querySelector("tbody tr").cells]`)
	v.Act(id, "discard", `{"run":1}`)
	v.counts(0)
	v.says()
	if !eval[bool](v.browser, `[...document.querySelector("tbody tr").cells].every((cell, i) => cell === window.cells[i])`) {
		t.Error("a cell has moved to another column")
	}
	v.calm()
}

// The page of an operation says the same of it everywhere, in each of its states.
func TestTruth_OfAnOperation(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	v.DeadLetters(30)
	path := v.Change("", `{"kind":"replay","filter":"state:dead_letter","rate":200,"canary":5,"guard":false}`)
	v.Leaves(path, "collecting")
	v.on(path)
	v.says("This is a preview", "30 jobs are eligible")
	v.post(path+"/start", "{}")
	v.says("paused", "Canary failed: 0 of 5 succeeded", "Fix the cause first", "failed again 5")
	if eval[bool](v.browser, `document.querySelector('form[action$="/resume"] button').classList.contains("primary")`) {
		t.Error("after a canary that failed, Resume is the obvious button")
	}
	v.wait("the navigation says so", `document.querySelector("nav.side .under-way").innerText.includes("canary: 0 of 5 passed")`)
	v.post(path+"/abort", "")
	v.says("aborted", "25 jobs were left as they were")
	v.wait("nothing is under way", `document.querySelector("nav.side .under-way") === null`)

	v.Fixed.Store(true)
	path = v.Change("", `{"kind":"replay","filter":"state:dead_letter","rate":200,"canary":5,"start":true}`)
	v.Starts(path)
	v.on(path)
	v.says("paused", "Canary passed: 5 of 5 succeeded", "Resume to replay the 25 remaining jobs")
	v.post(path+"/resume", "")
	v.says("finished", "Finished: 30 jobs succeeded.", "30 of 30 finished runs succeeded (100 %)")
	v.counts(0)
	type answer struct {
		Operation struct{ Done, Succeeded, Pending int }
	}
	told := rig.Get[answer](t, v.Mill.URL+"/api/v1"+path).Operation
	if shown := []int{v.number("done"), v.number("succeeded"), v.number("pending")}; shown[0] != told.Done || shown[1] != told.Succeeded || shown[2] != told.Pending {
		said, err := json.Marshal(told)
		t.Errorf("the page says done, succeeded, pending %v, the API %s, %v", shown, said, err)
	}
	v.calm()
}

// While nothing can be done about anything, every page says so, and stops saying it
// when that is over.
func TestTruth_OfTheWholeProgram(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	v.on("/policies") // nothing else on it is redrawn
	v.post("/workers/quiet", "")
	v.wait("the worker is quiet", `document.querySelector("#notices").textContent.includes("The worker is quiet")`)
	v.post("/workers/resume", "")
	v.wait("the worker runs", `!document.querySelector("#notices").textContent.includes("The worker is quiet")`)
	v.calm()
}

// A login that ended is told at once, and whatever was shown or ticked stays.
func TestTruth_OfALoginThatEnded(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	b := openBrowser(t)
	b.as(g.url, "ana", rig.AnaPassword)
	b.run(chromedp.Navigate(g.url + "/dead-letters"))
	b.wait("the page is live", isLive)
	b.run(chromedp.Click(chromedp.CSS(`tbody input[type="checkbox"]`)))
	eval[chromedp.Void](b, `void fetch("/logout", { method: "POST", body: new URLSearchParams() })`) // as another tab does
	b.wait("the end is told", `document.querySelector("#notices").textContent.includes("Your session has ended")`)
	eval[chromedp.Void](b, `document.querySelector('tbody form[data-act="discard"] button').click()`)
	b.wait("the act says so", `document.querySelector("main").textContent.includes("Nothing was changed: your login has ended.")`)
	if !eval[bool](b, `document.querySelector('tbody input[type="checkbox"]').checked`) {
		t.Error("the tick is gone")
	}
	if to := eval[string](b, `document.querySelector("#notices a").getAttribute("href")`); to != "/login?next=%2Fdead-letters" {
		t.Errorf("the way back is %s", to)
	}
	b.quiet("401")
	b.calm()
}

// A dead letter that its receiver refused, and accepts when it is sent again.
func TestTruth_OfADeadLetterThatIsForwarded(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	id := v.Enqueue(1, "corn.ground", "sent")[0]
	v.until(func(now rig.Totals) bool { return now.States["dlq_failed"] == 1 })
	v.on("/jobs/" + id)
	v.says("the receiver is away")
	v.Accepted.Store(true)
	v.Act(id, "forward", `{"run":1}`)
	v.says("dead letter")
	v.counts(1)
	v.calm()
}

// A job that waits is moved: by the reader of its page and by another client.
func TestTruth_OfAJobThatIsRescheduled(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	id := v.Enqueue(1, "corn.rests", "rest")[0]
	v.on("/jobs/" + id)
	v.says("Attempt 2 of 2 starts in", "Postpone")
	v.run(chromedp.Click(chromedp.CSS(`details:has(form[data-act="reschedule"]) summary`)))
	v.pressOn(`.menu form[data-act="reschedule"] button`)
	v.says("moved the job to this time", "rescheduled the job to run", "starts in 75 min")
	v.Act(id, "reschedule", `{"run":1,"delay":"3h"}`)
	v.says("starts in 3 h")
	v.Fixed.Store(true)
	v.pressOn(`form[data-act="reschedule"]:has([value="0s"]) button`)
	v.says("The job succeeded", "chose Run now", "completed")
	v.calm()
}

// A rule that grants one more attempt than the policy is part of every count.
func TestTruth_OfAnAttemptThatARuleAdds(t *testing.T) {
	t.Parallel()
	v := watchTruth(t)
	id := v.Enqueue(1, "corn.again", "sieve")[0]
	v.on("/jobs/" + id)
	v.says("one-more")
	v.counts(1)
	v.says("exhausted")
	v.calm()
}

// fill appends to a file until its disk is full.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for err == nil {
		_, err = f.Write(make([]byte, 64<<10))
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
}

// enqueueLarge sends a job of a megabyte, and returns the status of the answer.
func enqueueLarge(t *testing.T, url string) int {
	t.Helper()
	large := `{"type":"corn.ground","payload":"` + strings.Repeat("x", 1<<20-2) + `"}`
	response, err := http.Post(url+"/api/v1/jobs", "application/json", strings.NewReader(large))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.StatusCode
}

// A full disk is told on every page, and no longer when there is room.
func TestTruth_OfAFullDisk(t *testing.T) {
	t.Parallel()
	databasetest.NeedsFile(t, "the disk of a server cannot be filled from here")
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=8m"); err != nil {
		t.Skip("a small disk cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	v := watchTruthOn(t, filepath.Join(dir, "redrive.db"))
	v.on("/dead-letters")
	filler := filepath.Join(dir, "filler")
	refused := false
	for end := time.Now().Add(time.Minute); !refused && time.Now().Before(end); {
		fill(t, filler) // again each time: a checkpoint that cuts the log makes room for a job
		refused = enqueueLarge(t, v.Mill.URL) == http.StatusInsufficientStorage
	}
	if !refused {
		t.Error("jobs are accepted for which there is no room")
	}
	v.wait("the full disk is told", `document.querySelector("#notices").textContent.includes("is full")`)
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	v.wait("there is room again", `!document.querySelector("#notices").textContent.includes("is full")`)
	v.calm()
}
