package internal_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestDocuments_NameTestsThatExist holds the documents that promise something:
// every test that they name for a promise is there.
func TestDocuments_NameTestsThatExist(t *testing.T) {
	declared := map[string]bool{}
	for _, top := range []string{"../cmd", "../internal", "../web", "../test"} {
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

// TestVersion_IsTheNewestReleaseOfTheChangelog: a version is written in one place. A tag, if
// the commit has one, is that of the release.
func TestVersion_IsTheNewestReleaseOfTheChangelog(t *testing.T) {
	text, err := os.ReadFile("../CHANGELOG.md")
	if err != nil {
		t.Fatal(err)
	}
	releases := regexp.MustCompile(`(?m)^## \[(\d+\.\d+\.\d+)\] - \d{4}-\d\d-\d\d$`).FindStringSubmatch(string(text))
	if releases == nil {
		t.Fatal("the CHANGELOG has no release")
	}

	version, err := exec.Command("make", "--no-print-directory", "-s", "-C", "..", "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.TrimSpace(string(version)), "v"+releases[1]; got != want && !strings.HasPrefix(got, want+"-") {
		t.Errorf("make version prints %q, want %q or what came since", got, want)
	}
}

// TestDocuments_TheMapHasEveryPackage holds the list of packages in docs/architecture.md: each
// package stands in it, and nothing else does. A line begins with packages and goes on with
// what they are for, after two spaces; what is indented is below the package above it.
func TestDocuments_TheMapHasEveryPackage(t *testing.T) {
	text, err := os.ReadFile("../docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(text), "## The packages\n\n```\n")
	list, _, found := strings.Cut(list, "```\n")
	if !found {
		t.Fatal("docs/architecture.md has no list of packages")
	}

	mapped, above := map[string]bool{}, ""
	for line := range strings.Lines(list) {
		names, _, _ := strings.Cut(strings.TrimSpace(line), "  ")
		within := above
		for i, name := range strings.Fields(names) {
			indented := strings.HasPrefix(line, " ")
			switch {
			case indented:
				name = above + "/" + name
			case i == 0 || strings.Contains(name, "/"):
				above, within = name, filepath.Dir(name)
			default: // beside the first one
				name = within + "/" + name
			}
			mapped[name] = true
		}
	}
	delete(mapped, "test/workers") // a module of its own

	for _, p := range packages(t) {
		name := strings.TrimPrefix(p.ImportPath, "redrive/")
		if !mapped[name] {
			t.Errorf("docs/architecture.md does not name the package %s", name)
		}
		delete(mapped, name)
	}
	for name := range mapped {
		t.Errorf("docs/architecture.md names %s, which is no package", name)
	}
}
