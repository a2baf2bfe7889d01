package main

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
)

// shot is one picture of the documentation.
type shot struct {
	name   string // of the file
	theme  string
	height int64
	page   string           // to open, or nothing to stay
	do     func(b *browser) // what comes before the picture
}

// largestShot keeps the repository small.
const largestShot = 300 << 10

// shots tell the story of docs/tour.md, in its order.
func shots() []shot {
	return []shot{
		{"overview", "light", 860, "/", nil},
		{"overview-dark", "dark", 860, "/", nil},
		{"failures", "light", 860, "/failures", nil},
		{"group", "light", 1000, "/failures?type=payments.capture", follow(`main a[href^="/failures/"]`)},
		{"job", "light", 1000, "/dead-letters?type=payments.capture", follow(`tbody th a`)},
		{"job-dark", "dark", 1000, "", nil},
		{"replay", "light", 1000, "/dead-letters?type=crm.push", replayWithChanges},
		{"dead-letters", "light", 860, "/dead-letters?queue=payments", tickAll},
		{"operation", "light", 1000, "/operations", follow(`tbody a[href^="/operations/"]`)},
		{"trash", "light", 700, "/trash", nil},
		{"policies", "light", 1000, "/policies?preset=daycry", nil},
		{"policies-dark", "dark", 1000, "", nil},
		{"audit", "light", 860, "/audit", nil},
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

// TestScreenshots writes the pictures of the documentation into the directory
// that REDRIVE_SCREENSHOTS names. See make screenshots.
func TestScreenshots(t *testing.T) {
	dir := os.Getenv("REDRIVE_SCREENSHOTS")
	if dir == "" {
		t.Skip("REDRIVE_SCREENSHOTS names no directory; see make screenshots")
	}
	url := startDemo(t)
	b := openBrowser(t)
	for _, s := range shots() {
		call(b, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: s.theme}},
		})
		b.run(chromedp.EmulateViewport(1280, s.height))
		if s.page != "" {
			b.run(chromedp.Navigate(url + s.page))
			b.wait("the page is live", isLive)
		}
		if s.do != nil {
			s.do(b)
			b.wait("the page is live", isLive)
		}
		picture, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		small := shrink(t, picture)
		if len(small) > largestShot {
			t.Errorf("%s.png has %d kB, at most %d are wanted", s.name, len(small)>>10, largestShot>>10)
		}
		if err := os.WriteFile(filepath.Join(dir, s.name+".png"), small, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	b.calm()
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
