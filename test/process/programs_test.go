package process_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"

	"redrive/test/rig"
)

// beating is a program whose first attempt writes a line every few milliseconds,
// itself or by what it starts, until another process ends it. Each line says the attempt
// and the process. A later attempt works for a while and succeeds.
const beating = `#!/bin/sh
log=$1 way=$2 attempt=${3:-$REDRIVE_JOB_ATTEMPT}
trap '' TERM
line() { [ -e "$log" ] && echo "$attempt $$" >> "$log"; }
beat() { while line; do sleep 0.01; done; }
if [ "$attempt" != 1 ]; then
	line; sleep 0.5; line; exit
fi
case $way in
itself) beat ;;
child) (beat) & wait ;;
session) setsid "$0" "$log" itself 1 & wait ;;
esac
`

// beats are the lines that the attempts wrote, in their order: the number of the attempt and
// the process of its program.
func beats(t *testing.T, log string) (attempts, processes []string) {
	t.Helper()
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		attempt, process, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		if !ok {
			t.Fatalf("%q", line)
		}
		attempts, processes = append(attempts, attempt), append(processes, process)
	}
	return attempts, processes
}

// startBeating starts a dashboard and a job that beats, and returns when it does.
func startBeating(t *testing.T, dir, way string) (p *rig.Process, log string) {
	t.Helper()
	script := filepath.Join(dir, "beating")
	log = filepath.Join(dir, "log")
	for name, text := range map[string]string{script: beating, log: "", filepath.Join(dir, "redrive.yaml"): fmt.Sprintf(
		"handlers: {beat: {exec: {command: [%q, %q, %s]}}}\npolicy: {strategy: immediate, max_attempts: 3}\n", script, log, way)} {
		if err := os.WriteFile(name, []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p = rig.Start(t, dir)
	p.Post(`{"type":"beat"}`)
	rig.Eventually(t, "the program beats", func() bool { attempts, _ := beats(t, log); return len(attempts) >= 3 })
	return p, log
}

// The dashboard is killed while a program runs, and started again at once.
func TestPrograms_NeverRunTwiceAtOnce(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux tells which processes a program has started")
	}
	for _, way := range []string{"itself", "child", "session"} {
		t.Run(way, func(t *testing.T) {
			dir := t.TempDir()
			p, log := startBeating(t, dir, way)
			p.Stop(syscall.SIGKILL)
			p = rig.Start(t, dir)
			p.Until(func(now rig.Totals) bool { return now.Succeeded == 1 })

			attempts, _ := beats(t, log)
			later := slices.IndexFunc(attempts, func(attempt string) bool { return attempt != "1" })
			if later < 0 || len(attempts)-later != 2 || slices.Contains(attempts[later:], "1") {
				t.Errorf("the attempts wrote %v, want two lines of a later one after all of the first", attempts)
			}
			var outcomes []string
			type history struct{ Attempts []struct{ Outcome string } }
			id := rig.Get[struct{ Jobs []struct{ ID string } }](t, p.URL+"/api/v1/jobs").Jobs[0].ID
			for _, a := range rig.Get[history](t, p.URL+"/api/v1/jobs/"+id).Attempts {
				outcomes = append(outcomes, a.Outcome)
			}
			if slices.Sort(outcomes); !slices.Equal(outcomes, []string{"lost", "succeeded"}) {
				t.Errorf("its attempts are %v", outcomes)
			}
			if way == "session" { // the others can be dead before the dashboard looks
				p.Says("is ended before its job runs again")
				if strings.Contains(p.Stderr.String(), "pid=-") {
					t.Errorf("the log names no process: %s", p.Stderr)
				}
			}
		})
	}
}

// The programs die even if no one starts the dashboard again.
func TestPrograms_DieWithTheDashboard(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux kills programs with their parent")
	}
	dir := t.TempDir()
	p, log := startBeating(t, dir, "itself")
	p.Stop(syscall.SIGKILL)
	_, processes := beats(t, log)
	rig.Eventually(t, "the program has ended", func() bool {
		stat, err := os.ReadFile("/proc/" + processes[0] + "/stat") // PID (NAME) STATE …
		_, state, _ := strings.Cut(string(stat), ") ")
		return err != nil || strings.HasPrefix(state, "Z")
	})
}

func TestPrograms_TheLogSaysThatTheyRunAsRoot(t *testing.T) {
	const warning = "The dashboard runs as root"
	for handlers, runs := range map[string]bool{
		"handlers: {t: {exec: {command: [/bin/true]}}}":          true,
		"handlers: {t: {http: {url: \"http://127.0.0.1:1/x\"}}}": false,
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "redrive.yaml"), []byte(handlers), 0o600); err != nil {
			t.Fatal(err)
		}
		p := rig.Start(t, dir).Stop(syscall.SIGKILL) // after its start, which says what there is to say
		if said := strings.Contains(p.Stderr.String(), warning); said != (runs && os.Geteuid() == 0) {
			t.Errorf("%s: it was said: %t, by the user %d: %s", handlers, said, os.Geteuid(), p.Stderr)
		}
	}
}
