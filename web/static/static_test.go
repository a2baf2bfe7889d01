package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"regexp"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
)

// modules are the sources of the script, by name.
func modules(t *testing.T) map[string]string {
	t.Helper()
	names, err := fs.Glob(embedded, "files/*.js")
	if err != nil || len(names) == 0 {
		t.Fatalf("modules: %v, %v", names, err)
	}
	all := map[string]string{}
	for _, name := range names {
		name = strings.TrimPrefix(name, "files/")
		if all[name], err = source(name); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func TestFiles_HaveAHashOfTheirContent(t *testing.T) {
	for _, f := range []File{Stylesheet(), Script()} {
		if !regexp.MustCompile(`^/static/app-[0-9a-f]{12}\.(css|js)$`).MatchString(f.Path) {
			t.Errorf("the path is %q", f.Path)
		}
		if found, ok := Find(f.Path); !ok || found.Path != f.Path {
			t.Errorf("%s is not found", f.Path)
		}
	}
	a := newFile("css", "text/css", "a {}")
	if b := newFile("css", "text/css", "b {}"); a.Path == b.Path {
		t.Errorf("two contents have the path %s", a.Path)
	}
}

func TestFiles_ArePacked(t *testing.T) {
	for _, f := range []File{Stylesheet(), Script()} {
		gzipped, err := gzip.NewReader(bytes.NewReader(f.Gzip()))
		if err != nil {
			t.Fatal(err)
		}
		for coding, r := range map[string]io.Reader{"gzip": gzipped, "brotli": brotli.NewReader(bytes.NewReader(f.Brotli()))} {
			if plain, err := io.ReadAll(r); err != nil || !bytes.Equal(plain, f.Plain) {
				t.Errorf("%s is another file when it is unpacked from %s: %v", f.Path, coding, err)
			}
		}
		t.Logf("%s: %d bytes, gzip %d, brotli %d", f.Path, len(f.Plain), len(f.Gzip()), len(f.Brotli()))
	}
}

// The script begins with what must run first. Each module is in it, if only because
// another one imports it.
func TestScript_HasEveryModule(t *testing.T) {
	if !strings.HasPrefix(script(), small("theme.js")) {
		t.Error("the theme is not first")
	}
	all := modules(t)
	imported := map[string]bool{"theme.js": true, "app.js": true}
	for _, text := range all {
		for _, match := range regexp.MustCompile(`from "\./(\w+\.js)";`).FindAllStringSubmatch(text, -1) {
			imported[match[1]] = true
		}
	}
	for file := range all {
		if !imported[file] {
			t.Errorf("no module imports %s", file)
		}
	}
}

// Data reaches a page as text. These are the ways by which it would not.
var unsafeCode = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("on|\.style\b|createContextualFragment|DOMParser`)

func TestModules_NeverMakeMarkupOfText(t *testing.T) {
	for name, text := range modules(t) {
		if found := unsafeCode.FindAllString(text, -1); found != nil {
			t.Errorf("%s uses %q", name, found)
		}
	}
}

func TestStylesheet_LoadsNothingElse(t *testing.T) {
	if found := regexp.MustCompile(`@import|url\(|https?:`).FindAllString(small("app.css"), -1); found != nil {
		t.Errorf("app.css has %q", found)
	}
}
