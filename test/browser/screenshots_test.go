package browser_test

import (
	"bytes"
	"cmp"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"redrive/internal/demo"
)

// shot is a page to take pictures of.
type shot struct {
	name   string // of the files
	height int64
	page   string           // to open
	do     func(b *browser) // what comes before the picture
	docs   []string         // the themes in which the documentation shows it
}

// largestShot keeps the repository small.
const largestShot = 300 << 10

// shots tell the story of docs/tour.md, in its order; then come the other pages.
func shots() []shot {
	light := []string{"light"}
	return []shot{
		{"overview", 860, "/", nil, []string{"light", "dark"}},
		{"failures", 860, "/failures", nil, light},
		{"group", 1000, "/failures?type=payments.capture", follow(`main a[href^="/failures/"]`), light},
		{"job", 1000, "/dead-letters?type=payments.capture", follow(`tbody th a`), light},
		{"replay", 1000, "/dead-letters?type=crm.push", replayWithChanges, light},
		{"dead-letters", 860, "/dead-letters?queue=payments", tickAll, light},
		{"operation", 1000, "/operations", follow(`tbody a[href^="/operations/"]`), light},
		{"trash", 700, "/trash", nil, light},
		{"source", 1000, "/sources", follow(`tbody th a`), light},
		{"policies", 1000, "/policies?preset=daycry", nil, light},
		{"audit", 860, "/audit", nil, light},
		{"jobs", 860, "/jobs", nil, nil},
		{"operations", 860, "/operations", nil, nil},
		{"queues", 860, "/queues", nil, nil},
		{"queue", 860, "/queues", follow(`main a[href^="/queues/"]`), nil},
		{"sources", 860, "/sources", nil, nil},
		{"workers", 860, "/workers", nil, nil},
		{"retention", 860, "/retention", nil, nil},
		{"access", 860, "/access", nil, nil},
	}
}

// follow opens the first link that a page has of a kind.
func follow(selector string) func(*browser) {
	return func(b *browser) {
		b.run(chromedp.Click(chromedp.CSS(selector)), chromedp.WaitVisible(chromedp.CSS("main h1")))
	}
}

func replayWithChanges(b *browser) {
	follow(`tbody th a`)(b)
	b.run(chromedp.Navigate(eval[string](b, `location.href`) + "/replay"))
}

func tickAll(b *browser) {
	b.run(chromedp.Click(chromedp.CSS("[data-pick-all]")))
}

// TestScreenshots writes the pictures of the documentation into the directory that
// REDRIVE_SCREENSHOTS names, and whole pages in both themes and three widths into the
// one that REDRIVE_SCREENSHOTS_PAGES names. See make screenshots.
func TestScreenshots(t *testing.T) {
	docs, pages := os.Getenv("REDRIVE_SCREENSHOTS"), os.Getenv("REDRIVE_SCREENSHOTS_PAGES")
	if docs == "" || pages == "" {
		t.Skip("REDRIVE_SCREENSHOTS and REDRIVE_SCREENSHOTS_PAGES name no directories; see make screenshots")
	}
	url := startDemoIn(t, t.TempDir(), demo.Usual)
	b := openBrowser(t)
	for _, s := range shots() {
		b.show("light", 1280, s.height)
		b.run(chromedp.Navigate(url + s.page))
		b.wait("the page is live", isLive)
		if s.do != nil {
			s.do(b)
			b.wait("the page is live", isLive)
		}
		for _, theme := range []string{"light", "dark"} {
			if b.show(theme, 1280, s.height); slices.Contains(s.docs, theme) {
				writeShot(t, filepath.Join(docs, s.name+strings.TrimPrefix("-"+theme, "-light")+".png"), b.picture(chromedp.CaptureScreenshot()))
			}
			for _, width := range []int64{390, 768, 1280} {
				b.show(theme, width, s.height)
				name := fmt.Sprintf("%s-%s-%d.png", s.name, theme, width)
				if err := os.WriteFile(filepath.Join(pages, name), b.picture(chromedp.FullScreenshot(100)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
		if s.name == "overview" {
			useDemo(t, url)
		}
	}
	b.calm()
}

// useDemo presses a switch of the demo, which changes nothing but that its panel has
// been used: pictures of other pages show a line of it.
func useDemo(t *testing.T, url string) {
	t.Helper()
	response, err := http.PostForm(url+"/demo/faults/sms", map[string][]string{"broken": {"true"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := response.Body.Close(); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("the switch answered %s, %v", response.Status, err)
	}
}

// show draws the page in a theme and a size, without what moves.
func (b *browser) show(theme string, width, height int64) {
	b.t.Helper()
	call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: theme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}})
	b.run(chromedp.EmulateViewport(width, height))
}

// picture takes a picture.
func (b *browser) picture(take chromedp.Action[[]byte]) []byte {
	b.t.Helper()
	picture, err := chromedp.Run(b.ctx, take)
	if err != nil {
		b.t.Fatal(err)
	}
	return picture
}

// writeShot writes a picture of the documentation.
func writeShot(t *testing.T, name string, picture []byte) {
	t.Helper()
	small := shrink(t, picture)
	if len(small) > largestShot {
		t.Errorf("%s has %d kB, at most %d are wanted", name, len(small)>>10, largestShot>>10)
	}
	if err := os.WriteFile(name, small, 0o644); err != nil {
		t.Fatal(err)
	}
}

// shrink writes a picture with its 256 most frequent colours: what is drawn of
// flat areas and letters looks the same, and is a third as large.
func shrink(t *testing.T, picture []byte) []byte {
	t.Helper()
	from, err := png.Decode(bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	counts := map[color.Color]int{}
	area := from.Bounds()
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			counts[from.At(x, y)]++
		}
	}
	frequent := slices.SortedFunc(maps.Keys(counts), func(a, b color.Color) int { return cmp.Compare(counts[b], counts[a]) })
	to := image.NewPaletted(area, frequent[:min(len(frequent), 256)])
	nearest := map[color.Color]uint8{}
	for c := range counts {
		nearest[c] = uint8(to.Palette.Index(c))
	}
	for y := area.Min.Y; y < area.Max.Y; y++ {
		for x := area.Min.X; x < area.Max.X; x++ {
			to.SetColorIndex(x, y, nearest[from.At(x, y)])
		}
	}
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, to); err != nil {
		t.Fatal(err)
	}
	return small.Bytes()
}
