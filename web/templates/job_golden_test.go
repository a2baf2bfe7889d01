package templates_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// content is what the frame and its notices surround: they have their own
// golden pages.
func content(t *testing.T, page []byte) []byte {
	t.Helper()
	_, rest, found := bytes.Cut(page, []byte(`<ol class="crumbs"`))
	main, _, closed := bytes.Cut(rest, []byte("</main>"))
	if !found || !closed {
		t.Fatal("the page has no content")
	}
	return append([]byte(`<ol class="crumbs"`), main...)
}

// Every state of a job, byte by byte, as TestGolden does for the other pages.
func TestGoldenJob(t *testing.T) {
	for name, v := range jobPages() {
		t.Run(name, func(t *testing.T) {
			got, file := content(t, render(t, v)), filepath.Join("testdata", name+".html")
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
