package static

import (
	"bytes"
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/andybalholm/brotli"
)

func TestFiles_HaveAHashOfTheirContent(t *testing.T) {
	for _, f := range []File{Stylesheet(), Script()} {
		if !regexp.MustCompile(`^/static/app-[0-9a-f]{12}\.(css|js)$`).MatchString(f.Path) {
			t.Errorf("the path is %q", f.Path)
		}
		if found, ok := Find(f.Path); !ok || found.Path != f.Path {
			t.Errorf("%s is not found", f.Path)
		}
	}
	a := newFile("css", "text/css", []byte("a {}"))
	if b := newFile("css", "text/css", []byte("b {}")); a.Path == b.Path {
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

// Data reaches a page as text. These are the ways by which it would not.
var unsafeCode = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|setAttribute\("on|\.style\b|createContextualFragment|DOMParser`)

func TestModules_NeverMakeMarkupOfText(t *testing.T) {
	modules, err := filepath.Glob("files/*.js")
	if err != nil || len(modules) == 0 {
		t.Fatalf("modules: %v, %v", modules, err)
	}
	for _, name := range modules {
		text, err := os.ReadFile(name)
		if found := unsafeCode.FindAll(text, -1); found != nil || err != nil {
			t.Errorf("%s uses %q (%v)", name, found, err)
		}
	}
}

func TestStylesheet_LoadsNothingElse(t *testing.T) {
	if found := regexp.MustCompile(`@import|url\(|https?:`).FindAll(Stylesheet().Plain, -1); found != nil {
		t.Errorf("app.css has %q", found)
	}
}
