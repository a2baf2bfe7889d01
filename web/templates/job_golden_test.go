package templates_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Every state of a job, byte by byte, as TestGolden does for the other pages.
func TestGoldenJob(t *testing.T) {
	for name, v := range jobPages() {
		t.Run(name, func(t *testing.T) {
			got, file := render(t, v), filepath.Join("testdata", name+".html")
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
