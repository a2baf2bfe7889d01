package templates_test

import (
	"bytes"
	"context"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/a-h/templ"
	"golang.org/x/net/html"

	"redrive/web/static"
)

var update = flag.Bool("update", false, "write testdata/*.html anew")

// page is what every view can draw.
type page interface{ Page() templ.Component }

func render(t *testing.T, p page) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := p.Page().Render(context.Background(), &b); err != nil {
		t.Fatalf("render: %v", err)
	}
	// The addresses of stylesheet and script change with their content; the page does not.
	drawn := bytes.ReplaceAll(b.Bytes(), []byte(static.Stylesheet().Path), []byte("/static/app.css"))
	return bytes.ReplaceAll(drawn, []byte(static.Script().Path), []byte("/static/app.js"))
}

// Every state of every page, byte by byte. A change of the pages is reviewed
// as a change of these files: go test ./web/templates -run TestGolden -update
func TestGolden(t *testing.T) {
	for name, p := range pages() {
		t.Run(name, func(t *testing.T) {
			got, file := render(t, p), filepath.Join("testdata", name+".html")
			if *update {
				if err := os.WriteFile(file, got, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v; run the test with -update", err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("the page differs from %s; look at the difference, then run the test with -update", file)
			}
		})
	}
}

// No page has an attribute twice, or one that is a word of the templates.
func TestPages_HaveWholeAttributes(t *testing.T) {
	for name, p := range pages() {
		z := html.NewTokenizer(bytes.NewReader(render(t, p)))
		for z.Next() != html.ErrorToken {
			seen := map[string]bool{}
			token := z.Token()
			for _, a := range token.Attr {
				if seen[a.Key] || a.Key == "else" || a.Key == "if" {
					t.Fatalf("%s: %s has a stray or second attribute %s: %s", name, token.Data, a.Key, token)
				}
				seen[a.Key] = true
			}
		}
	}
}
