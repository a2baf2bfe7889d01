package process_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"redrive/internal/store/postgres/postgrestest"
	"redrive/test/rig"
)

// trouble is what can keep a process from its database.
type trouble struct {
	says, code string // on /readyz, and in an answer of the API
	begin, end func()
}

// A start waits for a server that cannot be used yet, and says what it waits for.
func TestPostgres_AStartWaitsForItsServer(t *testing.T) {
	for name, of := range map[string]func(t *testing.T) (dsn string, what trouble){
		"it is away": func(t *testing.T) (string, trouble) {
			proxy := postgrestest.NewProxy(t, postgrestest.New(t))
			return proxy.DSN, trouble{"storage_unreachable: the server of the database ", "storage_unreachable",
				proxy.Refuse, func() { proxy.Return(t) }}
		},
		"it has no connection left": func(t *testing.T) (string, trouble) {
			dsn, role := postgrestest.NewRole(t)
			return dsn, trouble{"busy: the server of the database ", "busy",
				func() { postgrestest.Admin(t, "ALTER ROLE "+role+" CONNECTION LIMIT 0") },
				func() { postgrestest.Admin(t, "ALTER ROLE "+role+" CONNECTION LIMIT -1") }}
		},
	} {
		t.Run(name, func(t *testing.T) {
			dsn, what := of(t)
			what.begin()

			p, url := standingBy(t, t.TempDir(), dsn)
			p.Says("the database cannot be used")

			status, body := statusOf(t, url+"/readyz")
			if status != http.StatusServiceUnavailable || !strings.HasPrefix(body, what.says) || !strings.Contains(body, "; that began at ") {
				t.Errorf("it answers %d: %s", status, body)
			}

			if status, body := statusOf(t, url+"/healthz"); status != http.StatusOK || body != "standby\n" {
				t.Errorf("it is not healthy: %d: %s", status, body)
			}

			var answer struct{ Error struct{ Code string } }
			status, body = statusOf(t, url+"/api/v1/jobs")
			err := json.Unmarshal([]byte(body), &answer)
			if err != nil || status != http.StatusServiceUnavailable || answer.Error.Code != what.code {
				t.Errorf("the API answers %d: %s: %v", status, body, err)
			}

			what.end()
			p.Says("Redrive is ready.")

			p.URL = url
			if p.Post(`{"type":"t"}`) == "" {
				t.Error("it takes no job")
			}

			if p.Stop(syscall.SIGTERM); p.Code() != 0 {
				t.Errorf("exit %d: %s", p.Code(), p.Stderr)
			}
		})
	}
}

// The name of a container, for example, does not exist before that has started.
func TestPostgres_AStartWaitsForANameThatDoesNotExist(t *testing.T) {
	p, url := standingBy(t, t.TempDir(), "postgres://redrive:hidden@db..invalid/jobs")

	const says = "storage_unreachable: the name of the host of the database jobs is not known; "
	status, body := statusOf(t, url+"/readyz")
	if status != http.StatusServiceUnavailable || !strings.HasPrefix(body, says) || strings.Contains(body, "db..invalid") {
		t.Errorf("it answers %d: %s", status, body)
	}

	if p.Stop(syscall.SIGTERM); p.Code() != 0 || strings.Contains(p.Stderr.String(), "hidden") {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
}

// A start that waits for its server can be stopped.
func TestPostgres_AStartThatWaitsCanBeStopped(t *testing.T) {
	proxy := postgrestest.NewProxy(t, postgrestest.New(t))
	proxy.Freeze(t)

	p, _ := standingBy(t, t.TempDir(), proxy.DSN)
	if p.Stop(syscall.SIGTERM); p.Code() != 0 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
}

// A server that answers and does not let the program in was named wrongly: the start says so, and
// ends.
func TestPostgres_AStartThatIsRefusedEnds(t *testing.T) {
	dsn := postgrestest.New(t)
	database := postgrestest.Query(t, dsn, `SELECT current_database()`)

	for name, test := range map[string]struct{ dsn, says string }{
		"no such role":     {strings.Replace(dsn, "postgres@", "stranger@", 1), `role "stranger" does not exist`},
		"no such database": {strings.Replace(dsn, database, "elsewhere", 1), `database "elsewhere" does not exist`},
		"no TLS":           {strings.Replace(dsn, "sslmode=disable", "sslmode=require", 1), "offers no TLS"},
	} {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), "--listen", "127.0.0.1:0", "--db", test.dsn))
			if code != 1 || !strings.Contains(stderr, test.says) || !strings.Contains(stderr, "correct the address of the database") {
				t.Errorf("exit %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// A server that begins to refuse a process that waits is waited for. What the server says is for
// those who read the log: pages need no login meanwhile.
func TestPostgres_AStartThatIsRefusedWhileItWaitsSaysWhyInItsLog(t *testing.T) {
	dsn, role := postgrestest.NewRole(t)
	postgrestest.Admin(t, "ALTER ROLE "+role+" CONNECTION LIMIT 0")
	p, url := standingBy(t, t.TempDir(), dsn)
	p.Says("has no connection or memory left")

	postgrestest.Admin(t, "ALTER ROLE "+role+" NOLOGIN CONNECTION LIMIT -1")
	said := `role "` + role + `" is not permitted to log in`
	p.Says(strings.ReplaceAll(said, `"`, `\"`))

	for _, path := range []string{"/readyz", "/", "/api/v1/jobs"} {
		status, body := statusOf(t, url+path)
		if status != http.StatusServiceUnavailable || !strings.Contains(body, "refuses this program; correct the address") ||
			strings.Contains(body, role) || strings.Contains(body, "log in") {
			t.Errorf("%s answers %d: %s", path, status, body)
		}
	}

	postgrestest.Admin(t, "ALTER ROLE "+role+" LOGIN")
	p.Says("Redrive is ready.")
	if p.Stop(syscall.SIGTERM); p.Code() != 0 {
		t.Errorf("exit %d: %s", p.Code(), p.Stderr)
	}
}

// A start that fails leaves the tables that it has made on a server, and says so.
func TestPostgres_AStartThatFailsLeavesItsTables(t *testing.T) {
	dsn, _ := postgrestest.Bare(t, "")

	// Without a user it listens on this machine only, which it finds out when it has the database.
	code, stdout, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), "--listen", "0.0.0.0:0", "--db", dsn))
	if code != 2 || !strings.Contains(stderr, "Left the new tables in the database") || strings.Contains(stderr, "Removed") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}

	if n := postgrestest.Query(t, dsn, `SELECT count(*) FROM jobs`); n != "0" {
		t.Errorf("%s jobs are there", n)
	}
}
