package browser_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"redrive/test/mill"
	"redrive/test/site"
)

// What the first paint of a page may take.
const paintRequests = 3

// paintBytes are over the wire, headers included, by how they are compressed: at most
// 40 kB of 1,024 bytes.
// Browsers read brotli over TLS and from this machine, and only gzip otherwise.
var paintBytes = map[string]float64{"br": 36_000, "gzip": 40_960}

// traffic is what a browser fetches to draw a page. What scripts fetch later
// does not count.
type traffic struct {
	mu    sync.Mutex
	asked map[network.RequestID]string  // addresses
	took  map[network.RequestID]float64 // bytes of those that are there
	more  chan struct{}                 // one slot: something has arrived
}

// drawn are the kinds of what a page is drawn with.
var drawn = []network.ResourceType{
	network.ResourceTypeDocument, network.ResourceTypeStylesheet, network.ResourceTypeScript,
	network.ResourceTypeImage, network.ResourceTypeFont, network.ResourceTypeOther,
}

func (w *traffic) listen(event any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if slices.Contains(drawn, e.Type) && strings.HasPrefix(e.Request.URL, "http") {
			w.asked[e.RequestID] = e.Request.URL
		}
	case *network.EventLoadingFinished:
		if w.asked[e.RequestID] != "" {
			w.took[e.RequestID] = e.EncodedDataLength
		}
	}
	select {
	case w.more <- struct{}{}:
	default:
	}
}

// begin forgets the page before.
func (w *traffic) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked, w.took = map[network.RequestID]string{}, map[network.RequestID]float64{}
}

// total is what was asked for and its size; false while something is under way.
func (w *traffic) total() (requests []string, size float64, all bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for id, address := range w.asked {
		requests = append(requests, address)
		size += w.took[id]
	}
	return requests, size, len(w.took) == len(w.asked)
}

// firstPaint opens a page that the browser knows nothing of.
func (b *browser) firstPaint(w *traffic, url string) (requests []string, size float64) {
	b.t.Helper()
	b.run(chromedp.Navigate("about:blank"))
	w.begin()
	b.run(chromedp.Navigate(url))
	b.wait("the page is loaded", `document.readyState === "complete"`)
	for {
		requests, size, all := w.total()
		if all {
			return requests, size
		}
		select {
		case <-w.more:
		case <-b.ctx.Done():
			b.t.Fatalf("%s: not all of %q arrives", url, requests)
		}
	}
}

// A first visit to the heaviest pages takes few requests and few bytes: to lists with
// charts, and to a job, even from a browser that reads nothing but gzip. The demo begins
// with a day of jobs, so that its lists are full.
func TestBrowser_FirstPaintIsSmall(t *testing.T) {
	t.Parallel()
	url := startDemoIn(t, t.TempDir(), fullPages)
	firstPaintIsSmall(t, url, append(fullLists(t, url), "/", site.DeadLetter(t, url), enqueueLong(t, url)), "gzip")
}

// So does one to any kind of page, and to a job's page in each of its states. With brotli,
// every page is smaller still.
func TestLong_BrowserFirstPaintIsSmallEverywhere(t *testing.T) {
	for _, coding := range []string{"gzip", "br"} {
		t.Run(coding, func(t *testing.T) {
			t.Parallel()
			url := startDemoIn(t, t.TempDir(), fullPages)
			var paths []string
			more := slices.Concat(site.EveryState(t, url), fullLists(t, url), []string{"/nowhere", enqueueLong(t, url)})
			site.Walk(t, url, site.Reach{Addresses: 1, Kinds: 2}, more, func(p site.Page) {
				if !strings.Contains(p.Path, "payload=more") { // the user asked for much
					paths = append(paths, p.Path)
				}
			})
			firstPaintIsSmall(t, url, paths, coding)
		})
	}
}

func firstPaintIsSmall(t *testing.T, url string, paths []string, coding string) {
	t.Helper()
	b := openBrowser(t)
	w := &traffic{more: make(chan struct{}, 1)}
	w.begin()
	if err := chromedp.Listen(b.tab, w.listen); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	b.paints(w, url, coding, paths)
	b.quiet("404")
	b.calm()
}

// paints opens every page for the first time, from a browser that reads one coding.
func (b *browser) paints(w *traffic, url, coding string, paths []string) {
	b.t.Helper()
	call(b, network.SetExtraHTTPHeaders, network.SetExtraHTTPHeadersParams{Headers: network.Headers{"Accept-Encoding": coding}})
	least, most := math.Inf(1), 0.0
	for _, path := range paths {
		requests, size := b.firstPaint(w, url+path)
		b.t.Logf("%s %6.0f bytes, %d requests: %s", coding, size, len(requests), path)
		least, most = min(least, size), max(most, size)
		if len(requests) != paintRequests || size > paintBytes[coding] {
			b.t.Errorf("%s takes %.0f bytes with %s, at most %.0f are allowed, and these requests instead of %d: %q",
				path, size, coding, paintBytes[coding], paintRequests, requests)
		}
	}
	b.t.Logf("with %s, %d pages take %.0f to %.0f bytes", coding, len(paths), least, most)
}

// fullLists are lists with fifty rows, with charts and without, by queue, type and state.
func fullLists(t *testing.T, url string) []string {
	t.Helper()
	paths := []string{"/dead-letters", "/dead-letters?queue=payments", "/jobs?state=dead_letter"}
	for _, queue := range []string{"payments", "search", "email"} {
		paths = append(paths, "/jobs?queue="+queue)
	}
	for _, typ := range []string{"payments.capture", "sms.send"} {
		paths = append(paths, "/jobs?type="+typ)
	}
	for _, path := range paths {
		response, err := http.Get(url + path)
		if err != nil {
			t.Fatal(err)
		}
		page, err := io.ReadAll(response.Body)
		response.Body.Close()
		if rows := bytes.Count(page, []byte("<tr data-job=")); err != nil || rows < 50 {
			t.Errorf("%s has %d rows, want 50 or more, %v", path, rows, err)
		}
	}
	return paths
}

// enqueueLong makes a job with a payload that is long and compresses badly, and
// returns its page.
func enqueueLong(t *testing.T, url string) string {
	t.Helper()
	random, text := rand.New(rand.NewPCG(1, 2)), new(strings.Builder)
	for range 20_000 {
		fmt.Fprintf(text, "%x ", random.Uint64())
	}
	body, err := json.Marshal(map[string]any{"type": "long.payload", "queue": "payments", "payload": map[string]string{"text": text.String()}})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(url+"/api/v1/jobs", "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var made struct{ Job struct{ ID string } }
	if err := json.NewDecoder(response.Body).Decode(&made); err != nil || made.Job.ID == "" {
		t.Fatalf("the job is %+v, %v", made, err)
	}
	return "/jobs/" + made.Job.ID
}

// A total of millions stands on one line in its tile, also on a small laptop and a phone.
func TestOverview_ATotalOfMillionsIsOnOneLine(t *testing.T) {
	t.Parallel()
	m := mill.Start(t)
	b := openBrowser(t)
	b.open(m.URL + "/")
	for _, width := range []int64{1280, 390} {
		b.run(chromedp.EmulateViewport(width, 900))
		if lines := eval[int](b, `(() => {
			const value = document.querySelector(".counters [data-value]"), range = document.createRange();
			value.textContent = "1,261,402";
			range.selectNodeContents(value);
			return range.getClientRects().length;
		})()`); lines != 1 {
			t.Errorf("at %d pixels the total has %d lines", width, lines)
		}
	}
	b.calm()
}
