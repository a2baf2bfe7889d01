package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// What the first paint of a page may take.
const (
	paintRequests = 3
	paintBytes    = 40_000 // over the wire, headers included
)

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

// A first visit to any page takes few requests and few bytes.
func TestBrowser_FirstPaintIsSmall(t *testing.T) {
	t.Parallel()
	url := startDemo(t)
	b := openBrowser(t)
	w := &traffic{more: make(chan struct{}, 1)}
	w.begin()
	if err := chromedp.Listen(b.tab, w.listen); err != nil {
		t.Fatal(err)
	}
	call(b, network.Enable, network.EnableParams{})
	call(b, network.SetCacheDisabled, network.SetCacheDisabledParams{CacheDisabled: true})
	var paths []string
	more := append(everyState(t, url), enqueueLong(t, url), "/nowhere")
	walk(t, url, reach{addresses: 1, kinds: 2}, more, func(p sitePage) { paths = append(paths, p.path) })
	most := 0.0
	for _, path := range paths {
		if strings.Contains(path, "payload=more") { // somebody asked for much
			continue
		}
		requests, size := b.firstPaint(w, url+path)
		t.Logf("%6.0f bytes, %d requests: %s", size, len(requests), path)
		if most = max(most, size); len(requests) != paintRequests || size > paintBytes {
			t.Errorf("%s takes %.0f bytes, at most %d are allowed, and these requests instead of %d: %q",
				path, size, paintBytes, paintRequests, requests)
		}
	}
	t.Logf("the largest of %d pages takes %.0f bytes", len(paths), most)
	b.quiet("404")
	b.calm()
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
