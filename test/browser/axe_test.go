package browser_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"redrive/test/site"
)

// findAxe is the source of axe-core, which the protocol injects: the pages' own
// policy would let no foreign script in.
func findAxe(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(filepath.Join("..", "..", ".ci", "node_modules", "axe-core", "axe.min.js"))
	if err == nil {
		return string(source)
	}
	if os.Getenv("REDRIVE_TEST_BROWSER") == "required" {
		t.Fatalf("no axe-core, and REDRIVE_TEST_BROWSER=required: %v", err)
	}
	t.Skip("no axe-core on this machine: sudo apt-get install npm, then .ci/prepare")
	return ""
}

// violation is a rule of axe that a page breaks.
type violation struct {
	ID, Help string
	Nodes    []struct {
		Target  []any
		HTML    string
		Summary string `json:"failureSummary"`
	}
}

const runAxe = `axe.run(document, {resultTypes: ["violations"], rules: {"target-size": {enabled: true}}})
	.then((r) => JSON.stringify(r.violations))`

// axe returns what is wrong with the page as the browser shows it.
func (b *browser) axe() []violation {
	b.t.Helper()
	text, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](runAxe, chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("axe: %v", err)
	}
	var all []violation
	if err := json.Unmarshal([]byte(text), &all); err != nil {
		b.t.Fatalf("axe: %v", err)
	}
	return all
}

func (v violation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s", v.ID, v.Help)
	for _, n := range v.Nodes[:min(len(v.Nodes), 3)] {
		fmt.Fprintf(&b, "\n  %v %s\n  %s", n.Target, n.HTML, strings.ReplaceAll(n.Summary, "\n", " "))
	}
	return b.String()
}

// Axe finds nothing on the main pages, each in one view, the next page in the next view,
// and their lists need no scrolling sideways.
func TestBrowser_AxeFindsNothing(t *testing.T) {
	t.Parallel()
	url := startDemoIn(t, t.TempDir(), fullPages)
	b := openBrowser(t)
	axe := findAxe(t)
	for n, path := range mainPages(site.DeadLetter(t, url)) {
		b.run(chromedp.Navigate(url + path))
		b.sound(axe, path, looks[n%len(looks):][:1])
		b.showsItsLists(path)
	}
	b.missesNothing()
}

// Axe finds nothing on any page, a job's in each of its states, in either theme, wide or
// narrow, nor with more contrast or forced colours.
func TestLong_BrowserAxeFindsNothingInAnyView(t *testing.T) {
	t.Parallel()
	url := startDemoIn(t, t.TempDir(), fullPages)
	more := append(site.EveryState(t, url), "/jobs?queue=nowhere", "/jobs?state=wrong", "/dead-letters?queue=nowhere", "/nowhere")
	var paths []string
	site.Walk(t, url, site.Reach{Addresses: 1, Kinds: 2}, more, func(p site.Page) { paths = append(paths, p.Path) })
	b := openBrowser(t)
	axe := findAxe(t)
	for _, path := range paths {
		b.run(chromedp.Navigate(url + path))
		b.sound(axe, path, looks)
	}
	b.missesNothing()
}

// missesNothing fails unless axe finds an image without a text on the page.
func (b *browser) missesNothing() {
	b.t.Helper()
	var found []violation
	for n := 0; n < 5 && len(found) == 0; n++ { // a page that is redrawn meanwhile has lost the image
		eval[chromedp.Void](b, `document.querySelector("main").append(new Image())`)
		found = b.axe()
	}
	if len(found) != 1 || found[0].ID != "image-alt" {
		b.t.Errorf("of an image without a text axe says %v", found)
	}
}

// look is a way in which a page is looked at.
type look struct {
	theme, feature, value string
	width                 int64
}

var looks = []look{
	{"light", "", "", 320}, {"dark", "", "", 1280}, {"light", "prefers-contrast", "more", 1280},
	{"dark", "forced-colors", "active", 320}, {"light", "", "", 1280}, {"dark", "prefers-contrast", "more", 320},
}

// media are the features of the browser in a look.
func (l look) media() []*emulation.MediaFeature {
	features := []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: l.theme}}
	if l.feature != "" {
		features = append(features, &emulation.MediaFeature{Name: l.feature, Value: l.value})
	}
	return features
}

// sound fails if axe finds anything on the page as it stands, or if the page is wider
// than the screen.
func (b *browser) sound(source, where string, in []look) {
	b.t.Helper()
	eval[chromedp.Void](b, source+"\n;0")
	for _, v := range in {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: v.media()})
		b.run(chromedp.EmulateViewport(v.width, 900))
		for _, found := range b.axe() {
			b.t.Errorf("%s in %s %s, %d px: %v", where, v.theme, v.feature, v.width, found)
		}
		if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > v.width {
			b.t.Errorf("%s in %s %s is %d px wide on a screen of %d", where, v.theme, v.feature, wide, v.width)
		}
	}
}
