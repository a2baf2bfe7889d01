package errortext_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/errortext"
	"redrive/internal/fingerprint"
)

// BenchmarkRead reads and groups outputs of 64 kB: what a program of each language of the
// corpus prints before its error, and then that.
func BenchmarkRead(b *testing.B) {
	const size = 64 << 10
	files, err := filepath.Glob("testdata/outputs/*")
	if err != nil || len(files) == 0 {
		b.Fatalf("there are no outputs: %v", err)
	}

	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			b.Fatal(err)
		}
		const line = "2026-03-04 05:06:07 INFO shop.feeds: read 17 rows of feed 4711, 3 to go\n"
		text := strings.Repeat(line, (size-len(content))/len(line)) + string(content)

		b.Run(filepath.Base(file), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				e := errortext.Program(text, "")
				fingerprint.Of("job", "exec.exit_1", e.String(), text)
			}
		})
	}
}
