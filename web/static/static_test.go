package static_test

import (
	"io/fs"
	"path"
	"regexp"
	"strings"
	"testing"

	"redrive/web/static"
)

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := fs.ReadFile(static.FS(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func modules(t *testing.T) []string {
	t.Helper()
	names, err := fs.Glob(static.FS(), "*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("modules: %v, %v", names, err)
	}
	return names
}

func TestPath_CarriesAHashOfTheContent(t *testing.T) {
	if got := static.Path("app.css"); !regexp.MustCompile(`^/static/[0-9a-f]{12}/app\.css$`).MatchString(got) {
		t.Errorf("Path = %q", got)
	}
}

var imports = regexp.MustCompile(`(?m)^import .* from "(.+)";$`)

func TestModules_ImportWhatIsThere(t *testing.T) {
	for _, name := range modules(t) {
		for _, match := range imports.FindAllStringSubmatch(read(t, name), -1) {
			if !strings.HasPrefix(match[1], "./") {
				t.Errorf("%s imports %s: not relative, so not under the same hash", name, match[1])
			}
			if _, err := fs.Stat(static.FS(), path.Clean(match[1])); err != nil {
				t.Errorf("%s imports %s: %v", name, match[1], err)
			}
		}
	}
}

// Data reaches a page as text. These are the ways by which it would not.
var unsafeCode = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("on|\.style\b|createContextualFragment|DOMParser`)

func TestModules_NeverMakeMarkupOfText(t *testing.T) {
	for _, name := range modules(t) {
		if found := unsafeCode.FindAllString(read(t, name), -1); found != nil {
			t.Errorf("%s uses %q", name, found)
		}
	}
}

func TestStylesheet_LoadsNothingElse(t *testing.T) {
	if found := regexp.MustCompile(`@import|url\(|https?:`).FindAllString(read(t, "app.css"), -1); found != nil {
		t.Errorf("app.css has %q", found)
	}
}
