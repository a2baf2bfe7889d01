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

// nouns are the packages that every room speaks of: types and rules without
// input and output. Each may import those before it.
var nouns = []string{
	"clip", "invalid", "retry", "wire", "fingerprint", "job", "filter", "audit", "failures", "operation", "queues", "retention", "history",
}

// rooms lists, for each other package, the packages of the house that it may
// import beside the nouns. Engine, store and live never see each other: the
// consumer declares the interface that it needs, and cmd/dashboard introduces
// them.
var rooms = map[string][]string{
	"redrive/internal/access":             {},
	"redrive/internal/store":              {"access"},
	"redrive/internal/store/storetest":    {"access"},
	"redrive/internal/store/rawtest":      {},
	"redrive/internal/rawjson":            {},
	"redrive/internal/envelope":           {"rawjson"},
	"redrive/internal/engine":             {},
	"redrive/internal/bulk":               {},
	"redrive/internal/live":               {},
	"redrive/internal/redact":             {"rawjson"},
	"redrive/internal/rules":              {},
	"redrive/internal/webhook":            {"envelope"},
	"redrive/internal/config":             {"access", "envelope", "redact", "rules", "webhook"},
	"redrive/internal/handler":            {"engine", "envelope"},
	"redrive/internal/demo":               {"engine"},
	"redrive/internal/seed":               {},
	"redrive/web/static":                  {},
	"redrive/web/templates/format":        {},
	"redrive/web/templates/link":          {"static"},
	"redrive/web/templates":               {"access", "format", "link", "static"},
	"redrive/web/templates/adminpage":     {"access", "format", "link", "templates"},
	"redrive/web/templates/failurepage":   {"access", "format", "link", "templates"},
	"redrive/web/templates/jobpage":       {"access", "format", "link", "templates"},
	"redrive/web/templates/listpage":      {"access", "format", "link", "templates"},
	"redrive/web/templates/operationpage": {"access", "format", "link", "templates"},
	"redrive/web/templates/policypage":    {"access", "format", "link", "templates"},
	"redrive/web/templates/queuepage":     {"access", "format", "link", "templates"},
	"redrive/internal/server":             {"adminpage", "failurepage", "jobpage", "listpage", "operationpage", "policypage", "queuepage", "access", "config", "envelope", "live", "rawjson", "redact", "rules", "static", "store", "templates", "webhook"},
	"redrive/cmd/dashboard":               {"policypage", "access", "bulk", "config", "demo", "engine", "handler", "live", "seed", "server", "static", "store", "templates", "webhook"},
}

// allowed lists what a package may import of the house; known is false for one
// that is in no room.
func allowed(path string) (all []string, known bool) {
	if i := slices.Index(nouns, short(path)); i >= 0 && path == "redrive/internal/"+short(path) {
		return nouns[:i], true
	}
	all, known = rooms[path]
	return append(all, nouns...), known
}

// owners lists the rooms in which a third-party module may be used.
var owners = map[string][]string{
	"modernc.org/sqlite":                  {"store", "rawtest"},
	"github.com/pressly/goose":            {"store"},
	"github.com/labstack/echo":            {"server"},
	"github.com/gorilla/websocket":        {"live"},
	"github.com/prometheus/client_golang": {"server", "dashboard"},
	"github.com/a-h/templ":                {"link", "templates", "adminpage", "failurepage", "jobpage", "listpage", "operationpage", "policypage", "queuepage", "server"},
	"github.com/alecthomas/kong":          {"dashboard"},
	"github.com/expr-lang/expr":           {"rules"},
	"github.com/goccy/go-yaml":            {"config"},
	"github.com/google/uuid":              {"job"},
	"github.com/sosodev/duration":         {"wire"},
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
		may, known := allowed(p.ImportPath)
		if !known && p.ImportPath != "redrive/internal" {
			t.Errorf("%s is in no room: add it to the list, with what it may import", p.ImportPath)
		}
		for _, path := range p.Imports {
			switch {
			case strings.HasPrefix(path, "redrive/"):
				if !slices.Contains(may, short(path)) {
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
		if d := depth(path); d > 9 {
			t.Errorf("%s is %d imports deep, at most 9 are allowed", path, d)
		}
	}
}
