// Package internal_test holds the house in order: who may import whom.
package internal_test

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// rooms lists, for each package, the packages of the house that it may
// import. Engine, store and live never see each other: the consumer declares
// the interface that it needs, and cmd/dashboard introduces them.
var rooms = map[string][]string{
	"redrive/internal/access":          {},
	"redrive/internal/retry":           {},
	"redrive/internal/failure":         {},
	"redrive/internal/job":             {"failure", "retry"},
	"redrive/internal/store":           {"access", "failure", "job", "retry"},
	"redrive/internal/store/storetest": {"access", "job", "retry"},
	"redrive/internal/store/rawtest":   {"job"},
	"redrive/internal/rawjson":         {},
	"redrive/internal/babel":           {"job", "retry", "rawjson"},
	"redrive/internal/engine":          {"job", "retry"},
	"redrive/internal/bulk":            {"job"},
	"redrive/internal/live":            {"job"},
	"redrive/internal/redact":          {"rawjson"},
	"redrive/internal/rules":           {"job", "retry"},
	"redrive/internal/config":          {"access", "babel", "job", "retry", "rules", "redact"},
	"redrive/internal/handler":         {"engine", "babel", "job", "retry"},
	"redrive/internal/forward":         {"babel", "job", "retry"},
	"redrive/internal/demo":            {"engine", "job", "retry"},
	"redrive/internal/crowd":           {"job", "retry"},
	"redrive/web/static":               {},
	"redrive/web/templates":            {"access", "job", "retry", "static"},
	"redrive/internal/server":          {"access", "babel", "rawjson", "store", "live", "config", "rules", "job", "retry", "templates", "static", "redact"},
	"redrive/cmd/dashboard":            {"access", "store", "live", "config", "job", "retry", "templates", "static", "engine", "handler", "forward", "demo", "crowd", "server", "bulk"},
}

// owners lists the rooms in which a third-party module may be used.
var owners = map[string][]string{
	"modernc.org/sqlite":                  {"store", "rawtest"},
	"github.com/pressly/goose":            {"store"},
	"github.com/labstack/echo":            {"server"},
	"github.com/gorilla/websocket":        {"live"},
	"github.com/prometheus/client_golang": {"server", "dashboard"},
	"github.com/a-h/templ":                {"templates", "server"},
	"github.com/alecthomas/kong":          {"dashboard"},
	"github.com/expr-lang/expr":           {"rules"},
	"github.com/goccy/go-yaml":            {"config"},
	"github.com/google/uuid":              {"job"},
	"github.com/sosodev/duration":         {"job"},
	"golang.org/x/crypto":                 {"access"},
	"golang.org/x/net":                    {"dashboard"},
	"golang.org/x/term":                   {"dashboard"},
	"golang.org/x/sync":                   {"server"},
	"pgregory.net/rapid":                  {"storetest"},
}

type pkg struct {
	ImportPath string
	Imports    []string
}

func packages(t *testing.T) []pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "redrive/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
}

func short(path string) string { return path[strings.LastIndex(path, "/")+1:] }

func TestImports_StayInTheirRooms(t *testing.T) {
	for _, p := range packages(t) {
		allowed, known := rooms[p.ImportPath]
		if !known && p.ImportPath != "redrive/internal" {
			t.Errorf("%s is in no room: add it to the list, with what it may import", p.ImportPath)
		}
		for _, path := range p.Imports {
			switch {
			case strings.HasPrefix(path, "redrive/"):
				if !slices.Contains(allowed, short(path)) {
					t.Errorf("%s may not import %s", p.ImportPath, path)
				}
			case strings.Contains(path, "."):
				if !owned(short(p.ImportPath), path) {
					t.Errorf("%s may not import %s", p.ImportPath, path)
				}
			}
		}
	}
}

// owned reports whether the room may use the third-party package.
func owned(room, path string) bool {
	for module, ownerRooms := range owners {
		if path == module || strings.HasPrefix(path, module+"/") {
			return slices.Contains(ownerRooms, room)
		}
	}
	return false
}

func TestImports_StayShallow(t *testing.T) {
	imports := map[string][]string{}
	for _, p := range packages(t) {
		for _, path := range p.Imports {
			if strings.HasPrefix(path, "redrive/") {
				imports[p.ImportPath] = append(imports[p.ImportPath], path)
			}
		}
	}
	var depth func(path string) int // how many imports follow one another
	depth = func(path string) int {
		deepest := 0
		for _, next := range imports[path] {
			deepest = max(deepest, 1+depth(next))
		}
		return deepest
	}
	for path := range imports {
		if d := depth(path); d > 5 {
			t.Errorf("%s is %d imports deep, at most 5 are allowed", path, d)
		}
	}
}
