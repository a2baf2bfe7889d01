package templates_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestIcons_AreAllInTheSprite holds every icon that a page names: one that the
// sprite does not have leaves an empty place.
func TestIcons_AreAllInTheSprite(t *testing.T) {
	sprite, err := os.ReadFile("sprite.templ")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`\bIcon\("([a-z-]+)"\)`)
	found := 0
	err = filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".templ") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, icon := range named.FindAllStringSubmatch(string(text), -1) {
			found++
			if !strings.Contains(string(sprite), `id="i-`+icon[1]+`"`) {
				t.Errorf("%s names the icon %q, which is not in the sprite", path, icon[1])
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d icons are named: %v", found, err)
	}
}
