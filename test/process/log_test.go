package process_test

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

// A machine that reads the log finds no line in another format.
func TestServe_WritesEveryLineAsJSON(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", rig.Failing)
	cmd := rig.Command(t, dir, "--listen", "127.0.0.1:0", "--log-format", "json", "--db", "shop.db")
	p := &rig.Process{T: t, Cmd: cmd, Stderr: rig.NewTranscript()}
	var stdout bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, p.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Says("Redrive is ready")
	p.URL = lineWith(t, p.Stderr.String(), "Redrive is ready")["url"].(string)
	id := p.Post(`{"type":"shell.fail"}`)
	p.Says("A job became a dead letter")
	second := rig.Command(t, dir, "--listen", "127.0.0.1:0", "--log-format", "json", "--db", "shop.db")
	if code, out, problem := rig.Finish(t, second); code != 2 || out != "" || lineWith(t, problem, "Redrive failed")["error"] == nil {
		t.Errorf("a start that fails: exit %d, %s%s", code, out, problem)
	}
	p.Stop(syscall.SIGTERM)
	if p.Code() != 0 || stdout.Len() > 0 {
		t.Errorf("exit %d, and on the standard output: %s", p.Code(), stdout.String())
	}
	ready := lineWith(t, p.Stderr.String(), "Redrive is ready")
	if ready["version"] != "v9" || ready["database"] != "shop.db" || ready["config"] != "redrive.yaml" || ready["handlers"].([]any)[0] != "shell.fail" {
		t.Errorf("the first line is %v", ready)
	}
	if dead := lineWith(t, p.Stderr.String(), "A job became a dead letter"); dead["job"] != id || dead["error"] != "exec.exit_1" {
		t.Errorf("the dead letter is %v", dead)
	}
}

// A mistyped name of the database would otherwise look like lost jobs. An empty file is no
// database yet.
func TestServe_SaysThatTheDatabaseIsNew(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "empty.db", "")
	const made = `msg="Made a new database." path=`
	start := func(name string) (stdout, stderr string) {
		cmd := rig.Command(t, dir, "--listen", "127.0.0.1:0", "--db", name)
		p := &rig.Process{T: t, Cmd: cmd, Stderr: rig.NewTranscript()}
		var out bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, p.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		p.Says("Redrive is ready")
		p.Stop(syscall.SIGTERM)
		return out.String(), p.Stderr.String()
	}
	for _, name := range []string{"typo.db", "empty.db"} {
		if stdout, stderr := start(name); !strings.HasSuffix(stdout, ", its database is "+name+", which is new.\n") ||
			!strings.Contains(stderr, made+filepath.Join(dir, name)+"\n") {
			t.Errorf("the first start says %s%s", stdout, stderr)
		}
		if stdout, stderr := start(name); !strings.HasSuffix(stdout, ", its database is "+name+".\n") || strings.Contains(stderr, made) {
			t.Errorf("the second start says %s%s", stdout, stderr)
		}
	}
}

// Programs that read the log find lists, also empty ones.
func TestServe_TellsEmptyListsAsLists(t *testing.T) {
	dir := t.TempDir()
	cmd := rig.Command(t, dir, "--listen", "127.0.0.1:0", "--log-format", "json")
	p := &rig.Process{T: t, Cmd: cmd, Stderr: rig.NewTranscript()}
	cmd.Stderr = p.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.Says("Redrive is ready")
	p.Stop(syscall.SIGTERM)
	ready := lineWith(t, p.Stderr.String(), "Redrive is ready")
	for _, name := range []string{"handlers", "queues"} {
		if list, ok := ready[name].([]any); !ok || len(list) > 0 {
			t.Errorf("%s are %v", name, ready[name])
		}
	}
}

// lineWith is the line with a message. Each line must be JSON.
func lineWith(t *testing.T, text, message string) (found map[string]any) {
	t.Helper()
	for line := range strings.Lines(text) {
		var fields map[string]any
		if err := json.Unmarshal([]byte(line), &fields); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		if strings.HasPrefix(fields["msg"].(string), message) {
			found = fields
		}
	}
	if found == nil {
		t.Fatalf("no line says %q:\n%s", message, text)
	}
	return found
}
