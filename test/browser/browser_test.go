// Package browser_test drives a real Chromium through the pages.
package browser_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"redrive/internal/store/databasetest"
	"redrive/test/rig"
	"redrive/test/site"
)

// browser is one tab of a real Chromium that remembers every complaint: errors
// and warnings on the console, uncaught exceptions, refused resources.
type browser struct {
	t    *testing.T
	tab  context.Context // until the test ends
	ctx  context.Context // the tab, and how long the test may take
	mu   sync.Mutex
	said []string
}

func TestMain(m *testing.M) {
	code := m.Run()
	if err := chromium.stop(); err != nil {
		fmt.Fprintln(os.Stderr, "the browser did not end:", err)
		code = 1
	}
	os.Exit(code)
}

// openBrowser opens a tab in a profile of its own.
func openBrowser(t *testing.T) *browser {
	t.Helper()
	shared, err := chromium.start(findChromium(t))
	if err != nil {
		t.Fatal(err)
	}
	tab, cancel := chromedp.NewContext(shared, chromedp.WithNewBrowserContext())
	t.Cleanup(cancel)
	b := &browser{t: t, tab: tab}
	if err := chromedp.Listen(tab, b.listen); err != nil { // opens the tab
		t.Fatal(err)
	}
	// Long after any test has ended, and before go test ends them all without a word
	// about the page.
	b.ctx, cancel = context.WithTimeout(tab, 20*time.Minute)
	t.Cleanup(cancel)
	call(b, cdplog.Enable, cdp.Empty{})
	call(b, runtime.Enable, cdp.Empty{})
	call(b, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: tellsWhenDrawn})
	return b
}

// tellsWhenDrawn notes when a page has been read and the frame after that is drawn. The
// time that a frame is given is the one at which it was due: on a busy machine it is
// before the end of the frame before it.
const tellsWhenDrawn = `addEventListener("DOMContentLoaded", () =>
	requestAnimationFrame(() => requestAnimationFrame(() => { window.drawn = performance.now(); })));`

// chromium is the browser of all tests: to start one takes as long as most tests.
var chromium sharedBrowser

type sharedBrowser struct {
	once sync.Once
	ctx  context.Context
	err  error
}

func (s *sharedBrowser) start(path string) (context.Context, error) {
	s.once.Do(func() {
		options := append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]),
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-component-update", true),
			// A name of this machine that the browser does not take for this machine's.
			chromedp.Flag("host-resolver-rules", "MAP redrive.example 127.0.0.1"),
			// Of the proxies that tests put in front. Told to a tab, it would come too late for
			// a connection that the browser opens in advance.
			chromedp.Flag("ignore-certificate-errors", true),
			chromedp.WindowSize(1280, 900))
		s.ctx, _ = chromedp.NewExecAllocator(context.Background(), options...) // stop ends it
		s.ctx, _ = chromedp.NewContext(s.ctx)
		s.err = chromedp.Do(s.ctx)
	})
	return s.ctx, s.err
}

// stop ends the browser, if a test has started it, and removes its files.
func (s *sharedBrowser) stop() error {
	if s.ctx == nil {
		return nil
	}
	return chromedp.Cancel(s.ctx)
}

// findChromium skips the test without a browser; where one is required, its
// absence fails. Chromium without windows and menus draws the same pages in half
// the time. Debian's command for it is a script that leaves the browser running when
// the tests are killed, so this is the program itself.
func findChromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"/usr/lib/chromium/chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	if os.Getenv("REDRIVE_TEST_BROWSER") == "required" {
		t.Fatal("no Chromium on this machine, and REDRIVE_TEST_BROWSER=required")
	}
	t.Skip("no Chromium on this machine: sudo apt-get install chromium-headless-shell")
	return ""
}

func (b *browser) listen(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *cdplog.EventEntryAdded:
		if e.Entry.Level == cdplog.EntryLevelError || e.Entry.Level == cdplog.EntryLevelWarning {
			b.said = append(b.said, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == runtime.ConsoleAPICalledTypeError || e.Type == runtime.ConsoleAPICalledTypeWarning {
			b.said = append(b.said, fmt.Sprintf("console: %s %s", e.Type, e.Args[0].Value))
		}
	case *runtime.EventExceptionThrown:
		b.said = append(b.said, "exception: "+e.ExceptionDetails.Text)
	}
}

// call sends one command of the protocol.
func call[P, R any](b *browser, command cdp.Command[P, R], params P) {
	b.t.Helper()
	if _, err := chromedp.Call(b.ctx, command, params); err != nil {
		b.t.Fatalf("browser: %v", err)
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatalf("browser: %v; it said: %v", err, b.complaints())
	}
}

func (b *browser) complaints() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.said...)
}

// calm fails the test if the browser complained about anything.
func (b *browser) calm() {
	b.t.Helper()
	if said := b.complaints(); len(said) > 0 {
		b.t.Errorf("the browser complained:\n%s", strings.Join(said, "\n"))
	}
}

// wait waits until the expression is true, in the page as it is: no reload.
func (b *browser) wait(what, expression string) {
	b.t.Helper()
	if err := b.poll(expression); err != nil {
		b.t.Fatalf("%s: %v\nthe page says:\n%s\nit said: %v", what, err, b.text("main"), b.complaints())
	}
}

func (b *browser) poll(expression string) error { return b.pollFor(3*time.Minute, expression) }

// pollFor begins again where it was sent to the page before, whose end was not known
// here yet. A page that ends while it polls is an error.
func (b *browser) pollFor(longest time.Duration, expression string) error {
	for {
		_, err := chromedp.Run(b.ctx, chromedp.Poll[chromedp.Void](expression,
			chromedp.WithPollingInterval(50*time.Millisecond), chromedp.WithPollingTimeout(longest)))
		if err == nil || !strings.Contains(err.Error(), "Cannot find context with specified id") {
			return err
		}
	}
}

// arrive waits until the expression is true on the page to which the last key or click
// leads, once all of that page is read. It asks from outside: the page that it begins on may
// end meanwhile, and a page whose scripts are switched off has no timers to wait by.
func (b *browser) arrive(what, expression string) {
	b.t.Helper()
	var err error
	there := func() bool {
		var is bool
		is, err = chromedp.Run(b.ctx, chromedp.Evaluate[bool](`document.readyState !== "loading" && !!(`+expression+`)`))
		return err == nil && is
	}

	for late := time.Now().Add(3 * time.Minute); !there(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(late) {
			b.t.Fatalf("%s: %v\nthe page says:\n%s\nit said: %v", what, err, b.text("body"), b.complaints())
		}
	}
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return eval[string](b, `document.querySelector(`+strconv.Quote(selector)+`)?.innerText ?? ""`)
}

// eval returns the value of an expression in the page.
func eval[T any](b *browser, expression string) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		b.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// isLive: the word stands on the page from the beginning, hidden until it is true.
const isLive = `!!document.querySelector("[data-live-status]:not(.unknown)")?.textContent.includes("Live")`

// fix lets a service of the demo work again, in the panel of a page on which that is
// one line.
func (b *browser) fix(fault string) {
	b.t.Helper()
	button := `form[action="/demo/faults/` + fault + `"] button`
	b.run(chromedp.Click(chromedp.CSS(".demo summary")), chromedp.Click(chromedp.CSS(button)))
	b.wait("the "+fault+" works", `document.querySelector('`+button+`').innerText.includes("Break")`)
}

// startDemo runs the demo with the shortest history and returns its address.
func startDemo(t *testing.T) string {
	t.Helper()
	return startDemoIn(t, t.TempDir(), shortestHistory)
}

// The shortest history has failures of every kind. Lists that fill a page, and hundreds of
// failures of a kind, take the longer one, which takes a few times as long to write.
const (
	shortestHistory = 2000
	fullPages       = 8000
)

// startDemoIn runs the demo with its databases below a directory, and with so many jobs
// before its start.
func startDemoIn(t *testing.T, dir string, jobs int) string {
	t.Helper()
	databasetest.NeedsFile(t, "the demo keeps its jobs in a file")
	cmd := rig.Command(t, dir, "demo", "--listen", "127.0.0.1:0", "--jobs", strconv.Itoa(jobs))
	cmd.Env = append(cmd.Env, "TMPDIR="+dir)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the demo ended badly: %v", err)
		}
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	_, after, ok := strings.Cut(line, "The demo is at ")
	if err != nil || !ok {
		t.Fatalf("the demo said %q, %v", line, err)
	}
	url, _, _ := strings.Cut(after, ". ")
	return url
}

// The main story, in one breath: the demo starts, counters move without a
// reload, a failed job is opened, its attempts, delays and reason are read,
// the fault is fixed, replay is clicked, and run 2 appears and succeeds.
func TestBrowser_FromFailureToReplay(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)

	b.run(chromedp.Navigate(url))
	b.wait("the page is live", isLive)
	const counter = `document.querySelector('[data-counter="jobs_succeeded"] [data-value]').textContent`
	first := eval[string](b, counter)
	b.wait("a counter moves", counter+" !== "+strconv.Quote(first))

	b.run(chromedp.Navigate(url + "/jobs?state=dead_letter&type=payments.capture"))
	b.run(chromedp.Click(chromedp.CSS("tbody tr th a")), chromedp.WaitVisible(chromedp.CSS("[data-job] h1")))
	for _, want := range []string{
		"The job was dead-lettered", "Attempt 4 failed", "upstream.unavailable", "policy:exhausted:4/4",
		"exponential", "retry 3", "cap 1 min", "jitter 0.85 to 1.15", "shop/payments/client.go", "exhausted",
	} {
		if got := b.text("main"); !strings.Contains(got, want) {
			t.Fatalf("the job's page does not say %q:\n%s", want, got)
		}
	}

	b.fix("provider")
	b.run(chromedp.Click(chromedp.CSS(`form[data-act="replay"] button`)))
	b.wait("run 2 succeeded, live", `document.querySelector('[data-cell="state"]').innerText.includes("completed")`)
	if panel := eval[string](b, `document.querySelector(".demo").textContent`); strings.Contains(panel, "Replayed") {
		t.Errorf("the demo's panel tells of the replay:\n%s", panel)
	}
	b.wait("so do its lane, its sentence and its buttons", `
		document.querySelector("#run-2")?.innerText.includes("succeeded") && document.querySelector(".next").innerText.includes("The replay worked")
		&& document.querySelector('.head form[data-act="discard"]:not([hidden])') === null`)
	if got := b.text("#run-1"); !strings.Contains(got, "Attempt 4 failed") {
		t.Errorf("run 1 has lost its history:\n%s", got)
	}
	b.calm()
}

// A row is replayed where it stands; a second click changes nothing.
func TestBrowser_ReplayOnARow(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)
	b.run(chromedp.Navigate(url + "/dead-letters"))
	b.wait("the page is live", isLive)
	eval[chromedp.Void](b, `
		window.row = document.querySelector('tbody tr:has(form[data-act="replay"])');
		window.moves = 0;
		new MutationObserver((changes) => {
			for (const c of changes) for (const n of [...c.addedNodes, ...c.removedNodes]) if (n.nodeName === "TR") window.moves++;
		}).observe(document.body, { subtree: true, childList: true });
		const button = window.row.querySelector('form[data-act="replay"] button');
		button.click();
		button.click();`)
	b.wait("the answer stands in the row", `/run 2/i.test(window.row.innerText)`)
	b.wait("the job left the list, its row stays", `window.row.classList.contains("gone")`)
	if moves := eval[int](b, `window.moves`); moves != 0 {
		t.Errorf("%d rows were added or removed", moves)
	}
	id := eval[string](b, `window.row.dataset.job`)
	if d := rig.Get[rig.Detail](t, url+"/api/v1/jobs/"+id); d.Job.Run != 2 {
		t.Errorf("two clicks made run %d, want 2", d.Job.Run)
	}
	b.calm()
}

// Without scripts every page is complete, and the replay button works.
func TestBrowser_WithoutScripts(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)
	call(b, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	b.run(chromedp.Navigate(url + "/dead-letters?queue=email"))
	b.run(chromedp.Click(chromedp.CSS(`tbody tr form[data-act="replay"] button`)))
	b.run(chromedp.WaitVisible(chromedp.CSS("[data-answer]")))
	if got := b.text("[data-answer]"); !strings.Contains(got, "email.receipt") || !strings.Contains(got, "run 2") {
		t.Errorf("the answer says %q", got)
	}
	b.run(chromedp.Navigate(url + "/jobs"))
	if got := b.text("main"); !strings.Contains(got, "email.receipt") {
		t.Errorf("the list of jobs says:\n%s", got)
	}
	b.calm()
}

// mainPages are those that people look at most, and that of a dead letter.
func mainPages(deadLetter string) []string {
	return []string{
		"/", "/failures", "/dead-letters", "/operations", "/operations/1", "/trash", "/jobs", "/jobs?state=retryable",
		"/queues", "/queues/payments", "/workers", "/policies", "/retention", "/audit", deadLetter, deadLetter + "/replay", "/nowhere",
	}
}

// No page is wider than its screen, at any width, in either theme. TestBrowser_AxeFindsNothing
// looks at each in one of them.
func TestLong_BrowserFitsEveryScreen(t *testing.T) {
	t.Parallel()
	url := startDemoIn(t, t.TempDir(), fullPages)
	b := openBrowser(t)
	for _, theme := range []string{"light", "dark"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		for _, path := range mainPages(site.DeadLetter(t, url)) {
			b.run(chromedp.Navigate(url + path))
			b.fits(path+" in "+theme, 320, 390, 768, 1280, 1920)
			b.showsItsLists(path + " in " + theme)
		}
	}
	b.quiet("404")
	b.calm()
}

// showsItsLists fails if a list has to be scrolled sideways on a laptop, where its buttons
// would be out of sight. The bar with which people scroll the page takes 15 px of 1280.
func (b *browser) showsItsLists(page string) {
	b.t.Helper()
	b.run(chromedp.EmulateViewport(1265, 900))
	const hidden = `[...document.querySelectorAll(".stacks.scroll")].map((list) => list.scrollWidth - list.clientWidth).find((px) => px > 0) ?? 0`
	if px := eval[int64](b, hidden); px > 0 {
		b.t.Errorf("%s: %d px of a list are out of sight on a screen of 1280", page, px)
	}
}

// fits fails if the page is wider than a screen.
func (b *browser) fits(page string, widths ...int64) {
	b.t.Helper()
	for _, width := range widths {
		b.run(chromedp.EmulateViewport(width, 900))
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
			b.t.Errorf("%s is %d px wide on a screen of %d", page, wide, width)
		}
	}
}

// Nor is it when every name, text and key is long and has no place to break. The shorter
// test looks at the pages of the demo only.
func TestLong_BrowserLongNamesFitTheirScreen(t *testing.T) {
	t.Parallel()
	var words []string
	for i := range 48 {
		words = append(words, fmt.Sprintf("%s%02d", strings.Repeat("name", 60), i))
	}
	url := site.OpenShop(t, words)
	b := openBrowser(t)
	site.Walk(t, url, site.Reach{Addresses: 1, Kinds: 2}, append(site.EveryState(t, url), "/queues/"+site.LongQueue), func(p site.Page) {
		b.run(chromedp.Navigate(url + p.Path))
		b.fits(p.Path, 320)
	})
	b.quiet("404")
	b.calm()
}

// quiet forgets the complaints about a status that this test asked for.
func (b *browser) quiet(status string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	kept := b.said[:0]
	for _, s := range b.said {
		if !strings.Contains(s, status) {
			kept = append(kept, s)
		}
	}
	b.said = kept
}
