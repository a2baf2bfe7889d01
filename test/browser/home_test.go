package browser_test

import (
	"os/exec"
	"strings"
	"testing"

	"redrive/internal/store/databasetest"
	"redrive/test/rig"
)

// home is where a dashboard has its configuration and its jobs, from one start to the next. The
// jobs are in the kind of database that the tests run on.
type home struct {
	t       *testing.T
	dir, db string
}

func newHome(t *testing.T, configuration ...string) home {
	t.Helper()
	h := home{t, t.TempDir(), databasetest.New(t)}
	rig.Write(t, h.dir, "redrive.yaml", strings.Join(configuration, "\n")+"\n")
	return h
}

func (h home) command(args ...string) *exec.Cmd {
	return rig.Command(h.t, h.dir, append(args, "--db", h.db)...)
}

// start starts the dashboard, and startAt does so at the address of an earlier one.
func (h home) start(args ...string) *rig.Process {
	h.t.Helper()
	return rig.Await(h.t, h.command(append([]string{"--listen", "127.0.0.1:0"}, args...)...))
}

func (h home) startAt(url string) *rig.Process {
	h.t.Helper()
	return rig.Await(h.t, h.command("--listen", strings.TrimPrefix(url, "http://")))
}

// addUser adds a user before the dashboard is started.
func (h home) addUser(name, role, password string) {
	h.t.Helper()
	code, _, stderr := rig.WithInput(h.t, h.dir, password, nil, "user", "add", name, "--role", role, "--db", h.db)
	if code != 0 {
		h.t.Fatalf("exit %d: %s", code, stderr)
	}
}

// newToken makes a token before the dashboard is started.
func (h home) newToken(name, role string) (token string) {
	h.t.Helper()
	code, token, stderr := rig.WithInput(h.t, h.dir, "", nil, "token", "create", "--name", name, "--role", role, "--db", h.db)
	if code != 0 {
		h.t.Fatalf("exit %d: %s", code, stderr)
	}
	return strings.TrimSpace(token)
}
