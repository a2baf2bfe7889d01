package main

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestBundle_IsCurrent(t *testing.T) {
	all, err := bundle("../files")
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		if got, err := os.ReadFile(filepath.Join("../sent", name)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("sent/%s is not made of the sources as they are; run make generate (%v)", name, err)
		}
	}
}

// The script begins with what must run first. Each module is in it, if only because
// another one imports it.
func TestBundle_HasEveryModule(t *testing.T) {
	theme, err := small("../files", "theme.js")
	if err != nil {
		t.Fatal(err)
	}
	all, err := bundle("../files")
	if err != nil || !strings.HasPrefix(string(all["app.js"]), theme) {
		t.Errorf("the theme is not first (%v)", err)
	}
	modules, err := filepath.Glob("../files/*.js")
	if err != nil || len(modules) == 0 {
		t.Fatalf("modules: %v, %v", modules, err)
	}
	imported := map[string]bool{"theme.js": true, "app.js": true}
	for _, name := range modules {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range regexp.MustCompile(`from "\./(\w+\.js)";`).FindAllStringSubmatch(string(text), -1) {
			imported[match[1]] = true
		}
	}
	for _, name := range modules {
		if !imported[filepath.Base(name)] {
			t.Errorf("no module imports %s", name)
		}
	}
}

func TestBundle_RefusesWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "app.js"), []byte(`import { x } from "./none.js"; x();`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := small(dir, "app.js"); err == nil || !strings.Contains(err.Error(), "none.js") {
		t.Errorf("an import of nothing: %v", err)
	}
}
