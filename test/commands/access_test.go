// Package commands_test runs the commands of the built program.
package commands_test

import (
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"

	"redrive/test/rig"
)

// Users and tokens are made without a server, and then through the one that
// runs: it is found by the database, and asks who it is.
func TestAccess_CommandsWithAndWithoutAServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	run := func(want int, input string, env []string, args ...string) (stdout string) {
		t.Helper()
		code, stdout, stderr := rig.WithInput(t, dir, input, env, args...)
		if code != want {
			t.Fatalf("dashboard %v: exit %d, want %d: %s%s", args, code, want, stdout, stderr)
		}
		return stdout + stderr
	}
	run(2, rig.BoPassword, nil, "user", "add", "bo", "--role", "viewer")
	run(2, "", nil, "user", "add", "ana", "--role", "admin")
	run(2, "   \n", nil, "user", "add", "ana", "--role", "admin")
	run(2, rig.AnaPassword, nil, "user", "add", "ana", "--role", "root")
	run(0, rig.AnaPassword+"\n", nil, "user", "add", "ana", "--role", "admin")
	lines := strings.Fields(run(0, "", nil, "token", "create", "--name", "root", "--role", "admin", "--expires", "1h"))
	var token string
	for _, word := range lines {
		if strings.HasPrefix(word, "redrive_") {
			token = word
		}
	}
	p := rig.Start(t, dir)
	if said := run(0, "", nil, "user", "list"); !strings.Contains(said, strconv.Itoa(p.Cmd.Process.Pid)) || !strings.Contains(said, "ana") {
		t.Errorf("without a token it says %s", said)
	}
	if said := run(2, "", nil, "user", "list", "--server", p.URL); !strings.Contains(said, "REDRIVE_TOKEN") {
		t.Errorf("without a token, to an address, it says %s", said)
	}
	run(2, "", []string{"REDRIVE_TOKEN= "}, "user", "list")
	run(2, "", []string{"REDRIVE_TOKEN=" + token + "x"}, "user", "list")
	admin := []string{"REDRIVE_TOKEN=" + token}
	run(0, rig.BoPassword, admin, "user", "add", "bo", "--role", "viewer")
	run(0, "", admin, "user", "role", "bo", "--role", "operator")
	if said := run(0, "", admin, "user", "list"); !strings.Contains(said, "bo    operator") {
		t.Errorf("the users are\n%s", said)
	}
	run(0, "", admin, "enqueue", "t", "1", "--server", p.URL)
	run(2, "", nil, "enqueue", "t", "1", "--server", p.URL)
	run(2, "", admin, "user", "remove", "ana")
	run(0, "", admin, "user", "remove", "bo")
	id := strings.Split(token, "_")[1]
	run(0, "", admin, "token", "revoke", id)
	run(2, "", admin, "token", "list")
}

// On a running dashboard that requires no login, the first user takes effect at
// once.
func TestAccess_FirstUserOnARunningServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := rig.Start(t, dir)
	if code, _, stderr := rig.WithInput(t, dir, rig.AnaPassword, nil, "user", "add", "ana", "--role", "admin"); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	response, err := http.Get(p.URL + "/api/v1/jobs")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("the API answers %d, want 401", response.StatusCode)
	}
}

// With a user the dashboard may be reached from the network, without the flag
// and without the banner.
func TestAccess_NetworkNeedsAUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "--listen", "0.0.0.0:0")); code != 2 || !strings.Contains(stderr, "dashboard user add") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr := rig.WithInput(t, dir, rig.AnaPassword, nil, "user", "add", "ana", "--role", "admin"); code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	p := rig.Start(t, dir, "--listen", "0.0.0.0:0")
	response, err := http.Get("http://127.0.0.1:" + p.URL[strings.LastIndex(p.URL, ":")+1:] + "/queues")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.Contains(string(body), "Log in to Redrive") || strings.Contains(string(body), "Anyone on this network") {
		t.Errorf("%v: %s", err, body)
	}
}

// An empty setting is an error, never permission.
func TestAccess_EmptySettingsDoNotStart(t *testing.T) {
	t.Parallel()
	for name, settings := range map[string]string{
		"no networks":    "access: {proxy: {user_header: X-User, role: admin}}",
		"no list":        "access: {proxy: {networks: [], user_header: X-User, role: admin}}",
		"everybody":      "access: {proxy: {networks: [0.0.0.0/0], user_header: X-User, role: admin}}",
		"no header":      "access: {proxy: {networks: [10.0.0.0/8], user_header: '', role: admin}}",
		"no role":        "access: {proxy: {networks: [10.0.0.0/8], user_header: X-User}}",
		"blank role":     "access: {proxy: {networks: [10.0.0.0/8], user_header: X-User, role: ' '}}",
		"empty group":    "access: {proxy: {networks: [10.0.0.0/8], user_header: X-User, role_header: X-Groups, roles: {'': admin}}}",
		"no groups":      "access: {proxy: {networks: [10.0.0.0/8], user_header: X-User, role_header: X-Groups, roles: {}}}",
		"a role alone":   "access: {proxy: {networks: [10.0.0.0/8], role: admin}}",
		"groups alone":   "access: {proxy: {networks: [10.0.0.0/8], role_header: X-Groups, roles: {sre: admin}}}",
		"nothing at all": "access: {proxy: }",
	} {
		dir := t.TempDir()
		if err := os.WriteFile(dir+"/redrive.yaml", []byte(settings), 0o600); err != nil {
			t.Fatal(err)
		}
		if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "--listen", "127.0.0.1:0")); code != 2 || !strings.Contains(stderr, "access.proxy") {
			t.Errorf("%s: exit %d: %s", name, code, stderr)
		}
	}
}

// A proxy that logs no one in does not make a login of its own.
func TestAccess_AProxyThatLogsNoOneInNeedsAUser(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "access: {proxy: {networks: [10.0.0.0/8]}}")
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "--listen", "0.0.0.0:0"))
	if code != 2 || !strings.Contains(stderr, "user add") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// A command with a mistyped name of the database makes no new one.
func TestAccess_CommandsMakeNoDatabaseByMistake(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, args := range [][]string{
		{"user", "list"}, {"user", "role", "ana", "--role", "viewer"}, {"user", "password", "ana"}, {"user", "remove", "ana"},
		{"token", "list"}, {"token", "revoke", "x"},
	} {
		code, _, stderr := rig.WithInput(t, dir, rig.AnaPassword, nil, append(args, "--db", "typo.db")...)
		if code != 2 || !strings.Contains(stderr, "typo.db") {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}

// What a signal cuts short leaves nothing behind.
func TestSeed_InterruptedLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd := rig.Command(t, dir, "seed", "--db", "crowd.db")
	person, terminal := rig.Terminal(t) // where alone the progress is drawn
	cmd.Stderr = terminal
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := person.Read(make([]byte, 1)); err != nil { // it is under way
		t.Fatal(err)
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, person) // a full terminal would keep the program from ending
	if err := cmd.Wait(); err == nil {
		t.Error("it says that it is done")
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("%v, %v are left", left, err)
	}
}
