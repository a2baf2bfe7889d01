package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"redrive/internal/config"
	"redrive/internal/engine"
	"redrive/internal/job"
)

// mill is the whole program in this process, with handlers that fail as long
// as a test wants them to.
type mill struct {
	t     *testing.T
	app   *app
	url   string
	fixed atomic.Bool // the handlers succeed

	accepted atomic.Bool // the dead letters of the queue "sent"
}

const millConfig = `
policy: {max_attempts: 1, jitter: false}
queues:
  grind: {workers: 50, policy: {strategy: constant, initial_interval: 200ms, max_attempts: 10000}}
  sieve: {workers: 20}
  rest: {workers: 20, policy: {strategy: constant, initial_interval: 1h, max_attempts: 2}}
rules:
  after_failure:
    - {name: one-more, when: job.type == "corn.again" && attempt.number == 1, action: retry, max_attempts: 2, delay: 0s}
`

func startMill(t *testing.T) *mill { return startMillOn(t, testParts(t).db) }

func startMillOn(t *testing.T, db string) *mill {
	t.Helper()
	m := &mill{t: t}
	p := testParts(t)
	p.db, p.sender = db, m
	settings, err := config.Parse("the mill", []byte(millConfig))
	if err != nil {
		t.Fatal(err)
	}
	p.config, p.relaxed, p.handlers = settings, true, m.handler
	if m.app, err = startApp(context.Background(), p); err != nil {
		t.Fatal(err)
	}
	m.url = m.app.url()
	t.Cleanup(func() {
		if err := m.app.stop(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return m
}

// Kept says that one queue sends its dead letters away.
func (m *mill) Kept(queue string) (job.Delivery, bool) { return job.Delivery{}, queue != "sent" }

// Deliver is the receiver of those.
func (m *mill) Deliver(context.Context, job.Job, job.DeadLetter) job.Delivery {
	if !m.accepted.Load() {
		return job.Delivery{Problem: "the receiver is away"}
	}
	return job.Delivery{ForwardedTo: "https://letters.example.org", ForwardedAt: time.Now().UTC()}
}

func (m *mill) handler(typ string) (engine.Handler, bool) {
	if typ == "stone.stays" { // no handler knows it: it waits
		return nil, false
	}
	return func(_ context.Context, j job.Job) error {
		if j.Type == "corn.spoiled" {
			return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "corn.Spoiled", Message: "nothing can be ground from it"}}
		}
		if m.fixed.Load() {
			return nil
		}
		return &job.Failure{ErrorInfo: job.ErrorInfo{Type: "mill.Jammed", Message: "the stone does not turn"}}
	}, true
}

// enqueue sends count jobs and returns their ids.
func (m *mill) enqueue(count int, typ, queue string) []string {
	one := fmt.Sprintf(`{"type":%q,"queue":%q,"payload":{"corn":1}}`, typ, queue)
	body := `{"jobs":[` + strings.Repeat(one+",", count-1) + one + `]}`
	response, err := http.Post(m.url+"/api/v1/jobs/batch", "application/json", strings.NewReader(body))
	if err != nil {
		m.t.Error(err)
		return nil
	}
	defer response.Body.Close()
	var answer struct{ Jobs []struct{ ID string } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusCreated {
		m.t.Errorf("a batch was answered with %s, %v", response.Status, err)
	}
	var ids []string
	for _, j := range answer.Jobs {
		ids = append(ids, j.ID)
	}
	return ids
}

// act posts to a job over the API, as another client would.
func (m *mill) act(id, action, body string) {
	m.t.Helper()
	response, err := http.Post(m.url+"/api/v1/jobs/"+id+"/"+action, "application/json", bytes.NewBufferString(body))
	if err != nil {
		m.t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		m.t.Fatalf("%s of %s was answered with %s", action, id, response.Status)
	}
}

// letters fails count jobs for good and returns when all are dead letters.
func (m *mill) letters(count int) []string {
	m.t.Helper()
	return m.lettersOf(count, "corn.ground")
}

// lettersOf does so with jobs of a type; those of corn.spoiled always fail.
func (m *mill) lettersOf(count int, typ string) []string {
	m.t.Helper()
	before := get[struct{ Counters totals }](m.t, m.url+"/live").Counters.States["dead_letter"]
	ids := m.enqueue(count, typ, "sieve")
	(&process{t: m.t, url: m.url}).until(func(now totals) bool { return now.States["dead_letter"] >= before+count })
	return ids
}

// news enqueues jobs at a steady rate until the returned function is called.
func (m *mill) news(perSecond int, typ, queue string) (stop func()) {
	quit := make(chan struct{})
	var running sync.WaitGroup
	running.Go(func() {
		beat := time.NewTicker(time.Second / 4)
		defer beat.Stop()
		for {
			select {
			case <-quit:
				return
			case <-beat.C:
				m.enqueue(perSecond/4, typ, queue)
			}
		}
	})
	var once sync.Once
	stop = func() { once.Do(func() { close(quit); running.Wait() }) }
	m.t.Cleanup(stop)
	return stop
}

// watch remembers, from now on, every row that comes, goes or moves, every
// shift of the layout since the page was read, and that it is one document.
const watch = `
	window.rowsTouched = 0;
	new MutationObserver((changes) => {
		for (const c of changes) for (const n of [...c.addedNodes, ...c.removedNodes]) {
			if (n.nodeName === "TR" && !c.target.closest("figure")) window.rowsTouched++; // the table of a chart is no list
		}
	}).observe(document, { subtree: true, childList: true });
	window.shift = 0;
	window.shifted = [];
	new PerformanceObserver((list) => {
		for (const e of list.getEntries()) {
			if (!(e.startTime >= window.drawn)) continue; // half a page may be drawn while it is read
			window.shift += e.value;
			for (const s of e.sources) {
				const { previousRect: p, currentRect: c } = s;
				window.shifted.push([Math.round(e.startTime), "ms:", s.node?.nodeName, p.x, p.y, "to", c.x, c.y, s.node?.parentElement?.outerHTML?.slice(0, 200)].join(" "));
			}
		}
	}).observe({ type: "layout-shift", buffered: true });
	window.order = () => [...document.querySelectorAll("tr[data-job]")].map((r) => r.dataset.job).join(" ");
	window.firstOrder = window.order();
	undefined;`

// still fails unless nothing has moved since watch.
func (b *browser) still() {
	b.t.Helper()
	if n := eval[int](b, `window.rowsTouched`); n != 0 {
		b.t.Errorf("%d rows were added, removed or moved", n)
	}
	if !eval[bool](b, `window.order() === window.firstOrder`) {
		b.t.Error("the rows are in another order")
	}
	b.wait("the page is drawn", `window.drawn > 0`)
	if shift := eval[float64](b, `window.shift`); shift != 0 {
		b.t.Errorf("the layout has shifted by %v, at %s", shift, strings.Join(eval[[]string](b, `window.shifted`), "\n"))
	}
}

// open leads to a page and waits until it is live and watched.
func (b *browser) open(url string) {
	b.t.Helper()
	b.run(chromedp.Navigate(url))
	b.wait("the page is live", isLive)
	eval[chromedp.Void](b, watch)
}

// press sends keys to whatever has the focus.
func (b *browser) press(keys string) {
	b.t.Helper()
	b.run(chromedp.KeyEvent(keys))
}

// goTo presses g and the key of a section until the section is there and live. A browser
// drops the keys that come before it has drawn a page, and now and then the next ones. The
// keys are a tenth of a second apart by their own times, however busy the machine is.
func (b *browser) goTo(key, section string) {
	b.t.Helper()
	arrived := `document.querySelector('nav.side [data-section="` + section + `"][aria-current]') !== null && ` + isLive
	for range 20 {
		at := time.Now()
		for i, k := range []string{"g", key} {
			pressed := input.TimeSinceEpoch(float64(at.Add(time.Duration(i)*100*time.Millisecond).UnixMicro()) / 1e6)
			b.run(chromedp.KeyEvent(k, func(e *input.DispatchKeyEventParams) { e.Timestamp = pressed }))
		}
		if b.pollFor(10*time.Second, arrived) == nil {
			return
		}
	}
	b.t.Fatalf("g %s does not lead to %s; the page says:\n%s\nit said: %v", key, section, b.text("body"), b.complaints())
}

const (
	bulkSays = `document.querySelector("form[data-bulk] p").innerText.trim()`
	newsSays = `document.querySelector(".newer a:not([hidden])")?.innerText.trim() ?? ""`
)
