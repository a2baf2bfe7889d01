package templates

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An icon without a drawing leaves an empty place.
func TestIcons_AllHaveADrawing(t *testing.T) {
	named := regexp.MustCompile(`\b(?:Icon|SmallIcon|InlineIcon)\("([a-z-]+)"\)`)
	found := 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".templ") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, icon := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			var b strings.Builder
			if err := drawing(icon[1]).Render(t.Context(), &b); err != nil || b.Len() == 0 {
				t.Errorf("%s names the icon %q, which has no drawing, %v", path, icon[1], err)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d icons are named: %v", found, err)
	}
}
