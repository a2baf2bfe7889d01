package templates_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// content is what the frame surrounds; the frame has its own golden pages.
func content(t *testing.T, page []byte) []byte {
	t.Helper()
	_, rest, found := bytes.Cut(page, []byte("<main"))
	main, _, closed := bytes.Cut(rest, []byte("</main>"))
	if !found || !closed {
		t.Fatal("the page has no main")
	}
	return append([]byte("<main"), main...)
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
