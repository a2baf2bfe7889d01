package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
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

const runAxe = `axe.run(document, {resultTypes: ["violations"]}).then((r) => JSON.stringify(r.violations))`

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

// Axe finds nothing on any page, in either theme, wide or narrow.
func TestBrowser_AxeFindsNothing(t *testing.T) {
	source := findAxe(t)
	url := startDemo(t)
	b := openBrowser(t)
	b.patience(9 * time.Minute)
	more := append(everyState(t, url),
		"/jobs?queue=nowhere", "/jobs?state=wrong", "/dead-letters?queue=nowhere", "/nowhere")
	var paths []string
	walk(t, url, reach{addresses: 1, kinds: 2}, more, func(p sitePage) { paths = append(paths, p.path) })
	for _, path := range paths {
		b.run(chromedp.Navigate(url + path))
		b.sound(source, path)
	}
	eval[chromedp.Void](b, `document.querySelector("main").append(new Image())`)
	if found := b.axe(); len(found) != 1 || found[0].ID != "image-alt" {
		t.Errorf("of an image without a text axe says %v", found)
	}
}

// sound fails if axe finds anything on the page as it stands, in either theme,
// wide or narrow.
func (b *browser) sound(source, where string) {
	b.t.Helper()
	eval[chromedp.Void](b, source+"\n;0")
	for _, theme := range []string{"light", "dark"} {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: theme}},
		})
		for _, width := range []int64{390, 1280} {
			b.run(chromedp.EmulateViewport(width, 900))
			for _, v := range b.axe() {
				b.t.Errorf("%s in %s, %d px: %v", where, theme, width, v)
			}
			if wide := eval[int64](b, `document.documentElement.scrollWidth`); wide > width {
				b.t.Errorf("%s in %s is %d px wide on a screen of %d", where, theme, wide, width)
			}
		}
	}
}
