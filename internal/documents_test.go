package internal_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocuments_NameTestsThatExist holds the documents that promise something:
// every test that they name for a promise is there.
func TestDocuments_NameTestsThatExist(t *testing.T) {
	declared := map[string]bool{}
	for _, top := range []string{"../cmd", "../internal", "../web"} {
		err := filepath.WalkDir(top, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, f := range regexp.MustCompile(`(?m)^func (\w+)\(`).FindAllSubmatch(text, -1) {
				declared[string(f[1])] = true
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, document := range []string{"../SECURITY.md", "../docs/reliability.md"} {
		text, err := os.ReadFile(document)
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\b(Test|Fuzz)[A-Z]\w*`).FindAllString(string(text), -1)
		if len(named) == 0 {
			t.Errorf("%s names no test", document)
		}
		for _, name := range named {
			if !declared[name] {
				t.Errorf("%s names %s, which does not exist", document, name)
			}
		}
	}
}
