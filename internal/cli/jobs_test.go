package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/apitype"
	"redrive/internal/apitype/work"
	"redrive/test/rig"
)

func TestList_PrintsWhatTheFilterSelects(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", rig.Failing)
	p := rig.Start(t, dir)
	dead := p.Post(`{"type":"shell.fail","payload":{"to":"\u001b[31mana"}}`)
	waits := p.Post(`{"type":"other","queue":"orders"}`)
	p.Until(func(now rig.Totals) bool { return now.Failed == 2 })
	list := func(args ...string) (stdout, stderr string) {
		code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, append([]string{"list", "--server", p.URL}, args...)...))
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
	p := rig.Start(t, dir)
	send := enqueueAt(t, p)
	send(strings.Repeat("{\"type\": \"t\"}\n", maxPage+1), "--ndjson")
	for limit, want := range map[int]int{0: maxPage + 1, maxPage + 1: maxPage + 1, maxPage: maxPage, 7: 7} {
		_, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "list", "--json", "--server", p.URL, "--limit", fmt.Sprint(limit)))
		if n := strings.Count(stdout, "\n"); n != want {
			t.Errorf("--limit %d lists %d jobs, want %d: %s", limit, n, want, stderr)
		}
	}
}

func TestShow_PrintsAJobWithItsAttempts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", rig.Failing)
	p := rig.Start(t, dir)
	id := p.Post(`{"type":"shell.fail","payload":{"to":"ana` + "\u009b" + `31m"}}`)
	p.Until(func(now rig.Totals) bool { return now.Failed == 2 })
	_, text, _ := rig.Finish(t, rig.Command(t, dir, "show", id, "--server", p.URL))
	for _, want := range []string{"dead_letter, attempts_exhausted", "attempts 2 of 2", "exec.exit_1", `{"to":"ana\u009b31m"}`,
		"retry in 1ms (policy:retry:1/2)", "dead_letter (policy:exhausted:2/2)"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	_, line, _ := rig.Finish(t, rig.Command(t, dir, "show", id, "--json", "--server", p.URL))
	var d rig.Detail
	if err := json.Unmarshal([]byte(line), &d); err != nil || len(d.Attempts) != 2 || strings.Count(line, "\n") != 1 {
		t.Errorf("%v: %s", err, line)
	}
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "show", "01890000-0000-7000-8000-000000000000", "--server", p.URL))
	if code != 2 || strings.Count(stderr, "\n") != 1 {
		t.Errorf("a job that does not exist: exit %d, %s", code, stderr)
	}
}

// Of a job of a source, no attempts, times or policy are made up that the source does not tell.
func TestShow_OfASourceMakesNothingUp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	told := `{"uuid":"00000000-0000-4000-8000-000000000002","job":"Mail@handle","displayName":"App\\Jobs\\Mail","createdAt":1795341600,"maxTries":3,"attempts":1}`
	section := rig.AttachedShop(t, dir, "shop", []rig.FailedJob{
		{UUID: "00000000-0000-4000-8000-000000000001", Connection: "database", Queue: "orders", Payload: `{"job":"Charge@handle","displayName":"App\\Jobs\\Charge","maxTries":3}`, Exception: "App\\Declined: card 51"},
		{UUID: "00000000-0000-4000-8000-000000000002", Connection: "database", Queue: "mail", Payload: told, Exception: "App\\NoRoute: example.org"},
	})
	rig.Statement(t, filepath.Join(dir, "shop.sqlite"), "UPDATE failed_jobs SET failed_at = 'soon' WHERE queue = 'orders'")
	rig.Write(t, dir, "redrive.yaml", section)
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 2 })
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, append(args, "--server", p.URL)...))
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
		"orders@shop": {`App\Jobs\Charge orders@shop – added 20`,
			[]string{"dead_letter, unknown", "Run 1, attempts – ", "Enqueued unknown Finished unknown", "RUN ATTEMPT ENDED"}},
		"mail@shop": {`App\Jobs\Mail mail@shop 2/3 added 20`,
			[]string{"dead_letter, unknown", "Run 1, attempts 2 of 3 ", "Enqueued 2026-11-22 10:00:00", "RUN ATTEMPT ENDED"}},
	} {
		shown := run("show", rig.DeadLettersOf(t, p.URL, "shop+queue:"+queue)[0])
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

// A list of all jobs has the jobs of a source in the order of the time that it shows, also
// when a look reads so many that they come in several parts, the newest first.
func TestList_JobsOfASourceAreInTheOrderOfTheirTimes(t *testing.T) {
	t.Parallel()
	const records = 1100
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", rig.AttachedShop(t, dir, "shop", nil))
	rig.Statement(t, filepath.Join(dir, "shop.sqlite"), fmt.Sprintf(`
		WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO failed_jobs (uuid, connection, queue, payload, exception, failed_at)
			SELECT printf('%%08d-0000-4000-8000-000000000000', i), 'database', 'orders', '{"displayName":"Charge"}', 'Declined: 51',
				datetime('2026-03-12 12:00:00', i || ' seconds') FROM n`, records))
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == records })

	code, list, stderr := rig.Finish(t, rig.Command(t, dir, "list", "--limit", "0", "--server", p.URL))
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	times := regexp.MustCompile(`\d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`).FindAllString(list, -1)
	if len(times) != records {
		t.Fatalf("the list has %d times, want %d", len(times), records)
	}
	slices.Reverse(times)
	if !slices.IsSorted(times) {
		t.Errorf("the times from the last to the first are not in order: %q", times)
	}
}

// A job that its source has is said to be there in the words of the pages: in lists and on its
// own, with what it may still report.
func TestShow_SaysThatASourceHasTheJob(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", rig.AttachedShop(t, dir, "shop", []rig.FailedJob{
		{UUID: "00000000-0000-4000-8000-000000000001", Connection: "database", Queue: "orders", Payload: `{"job":"Charge@handle","displayName":"Charge"}`, Exception: "Declined: 51"},
	}))
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 1 })
	id := rig.DeadLettersOf(t, p.URL, "shop")[0]
	run := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, append(args, "--server", p.URL)...))
		if code != 0 {
			t.Fatalf("%q: exit %d: %s", args, code, stderr)
		}
		return strings.Join(strings.Fields(stdout), " ")
	}
	_, place, _ := strings.Cut(run("list"), " added ")

	if got := run("replay", id); got != "Replayed, run 2: on its way to shop" {
		t.Errorf("replay says %q", got)
	}
	rig.UntilSource(t, p.URL, "shop", "it was handed over", func(s rig.ShownSource) bool { return len(s.Acts) == 1 && s.Acts[0].State == "done" })

	shown, listed := run("show", id), run("list")
	for _, want := range []string{"State at shop ", " Handed over 20", "; shop reports only failures: if the job is not back by 20", "Z, it counts as returned "} {
		if !strings.Contains(shown, want) {
			t.Errorf("show does not say %q: %s", want, shown)
		}
	}
	if want := id + " at shop Charge orders@shop – added " + place[:len("2006-01-02 15:04:05Z")]; !strings.Contains(listed, want) {
		t.Errorf("list does not say %q: %s", want, listed)
	}
	if strings.Contains(shown+listed, "returning") {
		t.Errorf("the job is called returning in\n%s\n%s", shown, listed)
	}
}

// What is said of a job that its source has depends on what the source reports, and on whether
// more is expected of it.
func TestShownJob_SaysWhatItsSourceMayReport(t *testing.T) {
	at := time.Date(2026, 3, 12, 12, 0, 0, 0, time.UTC)
	answered := func(j work.Job) shownJob { return shownJob{work.FullJob{Job: j}} }
	there := answered(work.Job{
		Queue: "orders@shop", Status: "returned", AtSource: true, ChangedAt: apitype.At(at), ReturnedUntil: apitype.At(at.Add(10 * time.Minute)),
	})
	returned := there
	returned.Returned, returned.ReturnedUntil = true, apitype.Time{}
	for _, tt := range []struct {
		job                  shownJob
		reports, state, fate string
	}{
		{there, "failures", "at shop",
			"2026-03-12 12:00:00Z; shop reports only failures: if the job is not back by 2026-03-12 12:10:00Z, it counts as returned"},
		{there, "failures and successes", "at shop",
			"2026-03-12 12:00:00Z; shop reports failures and successes: if neither is known by 2026-03-12 12:10:00Z, the job counts as returned"},
		{there, "", "at shop", "2026-03-12 12:00:00Z"},
		{returned, "failures", "returned", "2026-03-12 12:00:00Z, and not back: it succeeded there, still waits, or was removed"},
		{answered(work.Job{Queue: "orders", Status: "available"}), "", "available", "-"},
	} {
		if got := tt.job.state(); got != tt.state {
			t.Errorf("the state is %q, want %q", got, tt.state)
		}
		if got := tt.job.heldBySource(tt.reports); got != tt.fate {
			t.Errorf("a source that reports %q is said to have it since %q, want %q", tt.reports, got, tt.fate)
		}
	}
}

// A page can be empty although others follow: the search of a large database gives it when its
// time is over.
func TestList_GoesOnAfterAnEmptyPage(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.FormValue("after") == "" {
			_, _ = io.WriteString(w, `{"jobs":[],"next":"there"}`)
			return
		}
		_, _ = io.WriteString(w, `{"jobs":[{"id":"the-only-one","type":"mail","queue":"orders","state":"available","status":"available"}]}`)
	}))
	t.Cleanup(s.Close)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, t.TempDir(), "list", "--server", s.URL, "--limit", "0"))
	if code != 0 || !strings.Contains(stdout, "the-only-one") || stderr != "" {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
}
