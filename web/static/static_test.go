package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/andybalholm/brotli"
	"github.com/tdewolff/minify/v2"
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
		all[name] = source(name)
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
	a := newFile("css", "text/css", asItIs, "a {}")
	if b := newFile("css", "text/css", asItIs, "b {}"); a.Path == b.Path {
		t.Errorf("two contents have the path %s", a.Path)
	}
}

// asItIs makes nothing smaller.
func asItIs(_ *minify.M, w io.Writer, r io.Reader, _ map[string]string) error {
	_, err := io.Copy(w, r)
	return err
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

// The script begins with what must run first, and has every module once, after
// those that it imports.
func TestBundle_HasEveryModule(t *testing.T) {
	script := bundle()
	if !strings.HasPrefix(script, source("theme.js")) {
		t.Error("the theme is not first")
	}
	for file, text := range modules(t) {
		name := strings.TrimSuffix(file, ".js")
		if n := strings.Count(script, "const "+name+" = (() => {"); n != 1 && file != "theme.js" {
			t.Errorf("%s is in the script %d times", file, n)
		}
		for _, match := range imported.FindAllStringSubmatch(text, -1) {
			if strings.Index(script, "const "+match[2]+" = (") > strings.Index(script, "const "+name+" = (") {
				t.Errorf("%s is in the script before %s, which it imports", file, match[2])
			}
			if regexp.MustCompile(`(?m)^(const|let|(async )?function) ` + match[2] + `\b`).MatchString(text) {
				t.Errorf("%s has a name for something else than the module %s that it imports", file, match[2])
			}
		}
	}
	if left := regexp.MustCompile(`(?m)^(import|export)\b.*`).FindAllString(script, -1); left != nil {
		t.Errorf("these lines are not understood: %q", left)
	}
}

// What a module imports is there, under its own name.
func TestModules_ImportWhatIsExported(t *testing.T) {
	all := modules(t)
	for file, text := range all {
		for _, match := range imported.FindAllStringSubmatch(text, -1) {
			var names []string
			for _, export := range exported.FindAllStringSubmatch(all[match[2]+".js"], -1) {
				names = append(names, export[2])
			}
			for name := range strings.SplitSeq(strings.Trim(match[1], "{} "), ", ") {
				if name != "" && !slices.Contains(names, name) {
					t.Errorf("%s imports %s, which %s.js does not export", file, name, match[2])
				}
			}
			if match[1] == "" && !strings.Contains(match[0], "* as "+match[2]+" ") {
				t.Errorf("%s imports a module under another name: %s", file, match[0])
			}
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
	if found := regexp.MustCompile(`@import|url\(|https?:`).FindAllString(source("app.css"), -1); found != nil {
		t.Errorf("app.css has %q", found)
	}
}
