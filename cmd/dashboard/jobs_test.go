package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// failing is a configuration under which jobs of type shell.fail become dead letters
// after two attempts.
const failing = `
policy: {max_attempts: 2, strategy: constant, initial_interval: 1ms, jitter: false}
handlers: {shell.fail: {exec: {command: [/bin/false]}}}
`

func TestList_PrintsWhatTheFilterSelects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", failing)
	p := startProcess(t, dir)
	dead := p.post(`{"type":"shell.fail","payload":{"to":"\u001b[31mana"}}`)
	waits := p.post(`{"type":"other","queue":"orders"}`)
	p.until(func(now totals) bool { return now.Failed == 2 })
	list := func(args ...string) (stdout, stderr string) {
		code, stdout, stderr := finish(t, command(t, dir, append([]string{"list", "--server", p.url}, args...)...))
		if code != 0 {
			t.Fatalf("list %v: exit %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	if all, _ := list(); !strings.Contains(all, dead) || !strings.Contains(all, waits) || !strings.HasPrefix(all, "ID ") {
		t.Errorf("without a filter:\n%s", all)
	}
	if some, _ := list("state:dead_letter", "type:shell.*"); strings.Contains(some, waits) || !strings.Contains(some, dead) ||
		!strings.Contains(some, "2/2") || !strings.Contains(some, "exec.exit_1: ") {
		t.Errorf("the dead letters:\n%s", some)
	}
	lines, note := list("--json", "--limit", "1")
	var j struct{ ID string }
	if err := json.Unmarshal([]byte(lines), &j); err != nil || j.ID != waits || !strings.Contains(note, "--limit 0") {
		t.Errorf("the newest job is %s, %v, want %s; it says %q", lines, err, waits, note)
	}
}

func TestList_ReadsPageAfterPage(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := startProcess(t, dir)
	send := enqueueAt(t, p)
	send(strings.Repeat("{\"type\": \"t\"}\n", maxPage+1), "--ndjson")
	for limit, want := range map[int]int{0: maxPage + 1, maxPage + 1: maxPage + 1, maxPage: maxPage, 7: 7} {
		_, stdout, stderr := finish(t, command(t, dir, "list", "--json", "--server", p.url, "--limit", fmt.Sprint(limit)))
		if n := strings.Count(stdout, "\n"); n != want {
			t.Errorf("--limit %d lists %d jobs, want %d: %s", limit, n, want, stderr)
		}
	}
}

func TestShow_PrintsAJobWithItsAttempts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", failing)
	p := startProcess(t, dir)
	id := p.post(`{"type":"shell.fail","payload":{"to":"ana` + "\u009b" + `31m"}}`)
	p.until(func(now totals) bool { return now.Failed == 2 })
	_, text, _ := finish(t, command(t, dir, "show", id, "--server", p.url))
	for _, want := range []string{"dead_letter, attempts_exhausted", "attempts 2 of 2", "exec.exit_1", `{"to":"ana\u009b31m"}`,
		"retry in 1ms (policy:retry:1/2)", "dead_letter (policy:exhausted:2/2)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	_, line, _ := finish(t, command(t, dir, "show", id, "--json", "--server", p.url))
	var d detail
	if err := json.Unmarshal([]byte(line), &d); err != nil || len(d.Attempts) != 2 || strings.Count(line, "\n") != 1 {
		t.Errorf("%v: %s", err, line)
	}
	code, _, stderr := finish(t, command(t, dir, "show", "01890000-0000-7000-8000-000000000000", "--server", p.url))
	if code != 2 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a job that does not exist: exit %d, %s", code, stderr)
	}
}

// Of a job of a source, no attempts, times or policy are made up that the source does not tell.
func TestShow_OfASourceMakesNothingUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told := `{"uuid":"00000000-0000-4000-8000-000000000002","job":"Mail@handle","displayName":"App\\Jobs\\Mail","createdAt":1795341600,"maxTries":3,"attempts":1}`
	section := attachedShop(t, dir, "shop", []failedJob{
		{"00000000-0000-4000-8000-000000000001", "database", "orders", `{"job":"Charge@handle","displayName":"App\\Jobs\\Charge","maxTries":3}`, "App\\Declined: card 51"},
		{"00000000-0000-4000-8000-000000000002", "database", "mail", told, "App\\NoRoute: example.org"},
	})
	statement(t, filepath.Join(dir, "shop.sqlite"), "UPDATE failed_jobs SET failed_at = 'soon' WHERE queue = 'orders'")
	write(t, dir, "redrive.yaml", section)
	p := startProcess(t, dir)
	untilSource(t, p.url, "shop", "everything was read", func(s shownSource) bool { return s.Ready && s.dead() == 2 })
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := finish(t, command(t, dir, append(args, "--server", p.url)...))
		if code != 0 {
			t.Fatalf("%q: exit %d: %s", args, code, stderr)
		}
		return strings.Join(strings.Fields(stdout), " ")
	}

	list := run("list")
	for queue, wants := range map[string]struct {
		row  string
		show []string
	}{
		"orders@shop": {`App\Jobs\Charge orders@shop – seen 20`,
			[]string{"dead_letter, unknown", "Run 1, attempts – ", "Enqueued unknown Finished unknown", "RUN ATTEMPT ENDED"}},
		"mail@shop": {`App\Jobs\Mail mail@shop 2/3 died 20`,
			[]string{"dead_letter, unknown", "Run 1, attempts 2 of 3 ", "Enqueued 2026-11-22 10:00:00", "RUN ATTEMPT ENDED"}},
	} {
		shown := run("show", lettersOf(t, p.url, "shop+queue:"+queue)[0])
		if !strings.Contains(list, wants.row) {
			t.Errorf("%q is missing in\n%s", wants.row, list)
		}
		for _, want := range wants.show {
			if !strings.Contains(shown, want) {
				t.Errorf("%q is missing in\n%s", want, shown)
			}
		}
		for _, no := range []string{"0/3", "0 of 3", "0001-01-01", "2562047h", "1970-01-01", "exhausted", "Policy", "exponential"} {
			if strings.Contains(list+shown, no) {
				t.Errorf("it says %q in\n%s\n%s", no, list, shown)
			}
		}
	}
}
