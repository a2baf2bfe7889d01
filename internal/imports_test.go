// Package internal_test holds the walls of the house: which package may import which, and
// how large a room may grow.
package internal_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
)

// nouns are the packages that every room speaks of: types and rules without
// input and output. Each may import those before it.
var nouns = []string{
	"clip", "pause", "fault", "invalid", "usage", "retry", "wire", "fingerprint", "shortage", "job", "stats", "source", "filter", "audit", "failures", "operation", "queues", "retention", "history",
}

// rooms lists, for each other package, the packages of the house that it may
// import beside the nouns. Engine, store and live never see each other: the
// consumer declares the interface that it needs, and app introduces them. The
// store's core and its projections import no driver; only sqlite and postgres do.
var rooms = map[string]string{
	"access":                       "",
	"apitype":                      "access",
	"apitype/work":                 "apitype",
	"apitype/admin":                "access apitype apitype/work",
	"openapi":                      "apitype",
	"loglimit":                     "",
	"freeport":                     "",
	"rawjson":                      "",
	"httpclient":                   "",
	"resource":                     "",
	"engine":                       "engine/breaker engine/execution engine/outcome engine/prefetch engine/when engine/workers",
	"engine/when":                  "",
	"engine/breaker":               "",
	"engine/outcome":               "",
	"engine/execution":             "engine/outcome engine/when",
	"engine/prefetch":              "engine/execution engine/when",
	"engine/workers":               "engine/execution",
	"bulk":                         "",
	"live":                         "",
	"rules":                        "",
	"seed":                         "",
	"chaos":                        "",
	"client":                       "apitype httpclient",
	"envelope":                     "rawjson",
	"plaintext":                    "",
	"errortext/form":               "plaintext",
	"errortext/lang":               "errortext/form",
	"errortext":                    "errortext/form errortext/lang plaintext",
	"redact":                       "rawjson",
	"webhook":                      "envelope httpclient rawjson resource",
	"handler":                      "engine envelope errortext httpclient plaintext resource",
	"config":                       "access envelope handler httpclient redact rules source/preset webhook",
	"source/preset":                "",
	"source/bounded":               "",
	"source/codec":                 "envelope errortext rawjson",
	"source/sqlsource":             "source/bounded source/codec source/preset",
	"source/redissource":           "source/bounded source/codec source/preset",
	"source/redissource/redistest": "freeport",
	"source/amqpsource":            "rawjson source/bounded source/codec source/preset",
	"source/amqpsource/amqptest":   "freeport",
	"poll":                         "errortext source/preset",
	"demo":                         "engine",
	"store/clause":                 "",
	"store/health":                 "",
	"store/moving":                 "",
	"store/db":                     "store/clause store/health store/moving",
	"store/postgres":               "store/db store/clause store/health store/moving",
	"store/sqlite":                 "resource store/db store/clause store/health store/moving",
	"store/location":               "store/db store/moving store/postgres store/sqlite",
	"store/projection":             "store/db",
	"store/rows":                   "store/db store/clause",
	"store/counters":               "store/projection store/db store/clause",
	"store/groups":                 "store/projection store/db store/rows store/clause",
	"store/operations":             "store/projection store/db store/rows store/clause",
	"store/search":                 "store/projection store/db",
	"store/sources":                "store/projection store/db",
	"store/accounts":               "access store/db store/clause",
	"store/bookmark":               "store/projection store/db",
	"store/core":                   "store/projection store/db store/rows",
	"store/mirror":                 "store/core store/projection store/counters store/db store/rows store/sources",
	"store/sweep":                  "store/core store/projection store/accounts store/counters store/db store/groups store/operations store/rows",
	"store":                        "store/bookmark store/core store/mirror store/sweep store/accounts store/projection store/counters store/db store/groups store/operations store/rows store/search store/sources store/health",
	"store/transfer":               "store store/db store/health store/location store/moving",
	"store/storetest":              "access store store/db",
	"store/rawtest":                "",
	"server/view":                  "access envelope rawjson redact store store/db store/health",
	"server/limit":                 "",
	"server/compress":              "",
	"server/problem":               "access apitype rules",
	"server/web":                   "access apitype config live server/compress server/limit server/problem server/view",
	"server/api":                   "access apitype apitype/admin apitype/work envelope rawjson rules server/limit server/problem server/web webhook",
	"server/pages": "access apitype redact server/api server/compress server/problem server/view server/web web/static web/templates " +
		"web/templates/adminpage web/templates/failurepage web/templates/jobpage web/templates/listpage web/templates/operationpage web/templates/policypage web/templates/queuepage web/templates/sourcepage",
	"server":                      "access apitype config live loglimit server/api server/limit server/pages server/problem server/view server/web store/health",
	"web/static":                  "",
	"web/static/bundle":           "",
	"redact/redacttest":           "",
	"store/sqlite/sqlitetest":     "store/db store/sqlite store/health",
	"store/postgres/postgrestest": "freeport store/db store/postgres store/health",
	"store/databasetest":          "store/db store/location store/postgres/postgrestest store/sqlite/sqlitetest",
	"web/templates/format":        "",
	"web/templates/link":          "web/static",
	"web/templates":               "access web/static web/templates/format web/templates/link",
	"web/templates/adminpage":     "access web/templates web/templates/format web/templates/link",
	"web/templates/failurepage":   "access web/templates web/templates/format web/templates/link",
	"web/templates/jobpage":       "access rawjson web/templates web/templates/format web/templates/link",
	"web/templates/listpage":      "access web/templates web/templates/format web/templates/link",
	"web/templates/operationpage": "access web/templates web/templates/format web/templates/link",
	"web/templates/policypage":    "access web/templates web/templates/format web/templates/link",
	"web/templates/queuepage":     "access web/templates web/templates/format web/templates/link",
	"web/templates/sourcepage":    "access web/templates web/templates/format web/templates/link",
	"app": "access bulk config demo engine handler live loglimit resource server server/pages server/problem server/view server/web " +
		"source/amqpsource poll source/preset source/redissource source/sqlsource " +
		"store store/counters store/db store/health store/location store/search web/templates webhook",
	"app/apptest":   "app config store/databasetest",
	"cli/console":   "access",
	"cli/reach":     "access cli/console client store store/health store/location store/moving store/postgres store/sqlite",
	"cli":           "access apitype apitype/admin apitype/work app cli/console cli/reach client config demo seed source/preset store store/health store/location store/sqlite store/transfer web/templates/policypage",
	"cmd/dashboard": "cli cli/console",
	"test/rig":      "",
	"test/mill":     "app app/apptest config engine test/rig",
	"test/site":     "app app/apptest config demo store store/sqlite test/rig",
	"test/browser":  "",
	"test/process":  "store/postgres/postgrestest",

	"test/onpostgres": "store/databasetest store/postgres/postgrestest",
	"test/commands":   "",
	"test/sources":    "",
	"test/pages":      "",
	"test/bench":      "",
}

// owners lists the rooms in which a third-party module may be used.
var owners = map[string]string{
	"modernc.org/sqlite":                  "demo source/sqlsource store/sqlite store/rawtest test/rig",
	"github.com/evanw/esbuild":            "web/static/bundle",
	"github.com/pressly/goose":            "store/sqlite",
	"github.com/jackc/pgx/v5":             "source/sqlsource store/postgres store/postgres/postgrestest",
	"github.com/klauspost/compress":       "httpclient server/compress web/static",
	"github.com/andybalholm/brotli":       "httpclient server/compress web/static",
	"github.com/labstack/echo":            "server server/compress server/problem server/web server/api server/pages",
	"github.com/gorilla/websocket":        "live test/rig",
	"github.com/prometheus/client_golang": "server",
	"github.com/a-h/templ": "server/pages web/templates web/templates/link " +
		"web/templates/adminpage web/templates/failurepage web/templates/jobpage web/templates/listpage web/templates/operationpage web/templates/policypage web/templates/queuepage web/templates/sourcepage",
	"github.com/alecthomas/kong":         "cli",
	"github.com/coreos/go-systemd":       "cli",
	"github.com/expr-lang/expr":          "rules",
	"github.com/go-json-experiment/json": "rawjson",
	"github.com/go-sql-driver/mysql":     "source/sqlsource",
	"github.com/goccy/go-yaml":           "config source/preset",
	"github.com/google/uuid":             "job",
	"github.com/rabbitmq/amqp091-go":     "source/amqpsource source/amqpsource/amqptest",
	"github.com/redis/go-redis/v9":       "source/redissource source/redissource/redistest",
	"github.com/sosodev/duration":        "wire",
	"golang.org/x/crypto":                "access",
	"golang.org/x/net":                   "errortext test/site",
	"golang.org/x/text":                  "plaintext",
	"golang.org/x/sys":                   "store/postgres store/postgres/postgrestest store/sqlite test/rig",
	"golang.org/x/term":                  "cli/console",
	"golang.org/x/sync":                  "poll server server/web server/api server/pages",
	"pgregory.net/rapid":                 "store/storetest",
}

type pkg struct {
	ImportPath string
	Imports    []string
}

// packages are those of the house. They are listed once for all tests.
func packages(t *testing.T) []pkg {
	t.Helper()
	all, err := listed()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

var listed = sync.OnceValues(func() ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "redrive/...")
	cmd.Dir = ".."
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	var all []pkg
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
})

// room is the name of a package in the lists above.
func room(path string) string {
	return strings.TrimPrefix(strings.TrimPrefix(path, "redrive/"), "internal/")
}

// allowed lists what a room may import of the house; known is false for a
// package that is in no list.
func allowed(name string) (all []string, known bool) {
	if i := slices.Index(nouns, name); i >= 0 {
		return nouns[:i], true
	}
	imports, known := rooms[name]
	return append(strings.Fields(imports), nouns...), known
}

func TestImports_StayInTheirRooms(t *testing.T) {
	for _, p := range packages(t) {
		name := room(p.ImportPath)
		may, known := allowed(name)
		if !known && name != "internal" {
			t.Errorf("%s is in no room: add it to the list, with what it may import", name)
		}
		for _, path := range p.Imports {
			switch {
			case strings.HasPrefix(path, "redrive/"):
				if !slices.Contains(may, room(path)) {
					t.Errorf("%s may not import %s", name, room(path))
				}
			case strings.Contains(path, "."):
				if !owned(name, path) {
					t.Errorf("%s may not import %s", name, path)
				}
			}
		}
	}
}

// owned reports whether the room may use the third-party package.
func owned(name, path string) bool {
	for module, owner := range owners {
		if path == module || strings.HasPrefix(path, module+"/") {
			return slices.Contains(strings.Fields(owner), name)
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
		if d := depth(path); d > maxDepth {
			t.Errorf("%s is %d imports deep, at most %d are allowed", path, d, maxDepth)
		}
	}
}

// maxDepth is how many imports may follow one another.
const maxDepth = 16
