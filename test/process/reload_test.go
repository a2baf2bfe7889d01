package process_test

import (
	"database/sql"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source/redissource/redistest"
	"redrive/test/rig"
)

const beforeReload = `
policy: {max_attempts: 1}
handlers: {shell.fail: {exec: {command: [/bin/false]}}}
`

const afterReload = `
policy: {max_attempts: 2, strategy: constant, initial_interval: 1ms, jitter: false}
handlers: {shell.fail: {exec: {command: [/bin/false]}}, shell.new: {exec: {command: [/bin/true]}}}
hosts: [redrive.example]
`

func TestReload_TakesEffectWithoutARestart(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", beforeReload)
	p := rig.Start(t, dir)
	waits := p.Post(`{"type":"shell.new"}`)
	rig.Write(t, dir, "redrive.yaml", afterReload)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "reload"))
	const want = "Reloaded: handlers, policy.\nThese take effect after a restart: hosts.\n"
	if code != 0 || stdout != want {
		t.Fatalf("exit %d: %s%s, want %s", code, stdout, stderr, want)
	}
	p.Until(func(now rig.Totals) bool { return now.Succeeded == 1 })
	if d := rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+waits); d.Job.State != "completed" {
		t.Errorf("the job that waited for its handler is %s", d.Job.State)
	}
	p.Post(`{"type":"shell.fail"}`)
	p.Until(func(now rig.Totals) bool { return now.Failed == 2 })
	rig.Write(t, dir, "redrive.yaml", beforeReload)
	if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.Says(`changed="[handlers policy]" needs_restart=[]`)
}

func TestReload_OfAFileThatIsWrongChangesNothing(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", beforeReload)
	p := rig.Start(t, dir)
	for text, want := range map[string]string{
		"":                                     "is empty",
		"sources: {a: {preset: nosuch}}\n":     "sources.a.preset: is not a preset",
		afterReload + "hadnlers: {}\nttr: 5\n": "did you mean handlers?",
		afterReload + "queues: {a: {policy: nosuch}}\n":                                           `there is no policy "nosuch"`,
		"sources: {a: {preset: laravel, url_env: REDRIVE_NOTHING}}\n":                             "restart it with the variable",
		strings.ReplaceAll(afterReload, "/bin/true", "/bin/none"):                                 "handlers.shell.new.exec.command: cannot be run",
		strings.ReplaceAll(afterReload, "exec: {command: [/bin/true]}", "http: {url: 'ftp://x'}"): "handlers.shell.new.http.url: ",
	} {
		rig.Write(t, dir, "redrive.yaml", text)
		if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, want) {
			t.Errorf("exit %d: %s; want %q", code, stderr, want)
		}
	}
	if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.Says("The configuration was not reloaded.")
	if err := os.Remove(filepath.Join(dir, "redrive.yaml")); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "no such file") {
		t.Errorf("without the file: exit %d, %s", code, stderr)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "redrive.yaml"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "not a regular file") {
		t.Errorf("of a pipe: exit %d, %s", code, stderr)
	}
	p.Post(`{"type":"shell.fail"}`)
	p.Until(func(now rig.Totals) bool { return now.Failed == 1 && now.States["discarded"] == 1 })
	if now := p.Until(func(rig.Totals) bool { return true }); now.Failed != 1 {
		t.Errorf("%d attempts failed, want the 1 of the first configuration", now.Failed)
	}
}

// A configuration that is in effect is never reported as refused, also while nothing can
// be written.
func TestReload_TakesEffectWhileTheDatabaseIsBusy(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", beforeReload)
	p := rig.Start(t, dir)
	waits := p.Post(`{"type":"shell.new"}`)
	other, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "redrive.db")+"?_txlock=immediate&_pragma=busy_timeout(60000)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	lock, err := other.Begin()
	if err != nil {
		t.Fatal(err)
	}
	rig.Write(t, dir, "redrive.yaml", afterReload)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "reload"))
	const want = "Reloaded: handlers, policy.\nThese take effect after a restart: hosts.\n"
	if code != 0 || stdout != want {
		t.Errorf("exit %d: %s%s, want %s", code, stdout, stderr, want)
	}
	p.Says("The jobs that waited for a handler could not be freed. Redrive will try again.")
	p.Says("A reload could not be recorded in the audit log.")
	if err := lock.Rollback(); err != nil {
		t.Fatal(err)
	}
	p.Until(func(now rig.Totals) bool { return now.Succeeded == 1 })
	if d := rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+waits); d.Job.State != "completed" {
		t.Errorf("the job that waited for its handler is %s", d.Job.State)
	}
	if strings.Contains(p.Stderr.String(), "was not reloaded") {
		t.Errorf("the log says\n%s", p.Stderr)
	}
}

// The first configuration takes effect without a restart, too.
func TestReload_ReadsAFileThatWasNotThereAtTheStart(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload"))
	if want := filepath.Join(dir, "redrive.yaml") + ": no such file"; code != 2 || !strings.Contains(stderr, want) {
		t.Errorf("without a file: exit %d, %s, want %q", code, stderr, want)
	}
	waits := p.Post(`{"type":"shell.new"}`)
	rig.Write(t, dir, "redrive.yaml", afterReload)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "reload"))
	if want := "Reloaded: handlers, policy.\nThese take effect after a restart: hosts.\n"; code != 0 || stdout != want {
		t.Fatalf("exit %d: %s%s, want %s", code, stdout, stderr, want)
	}
	p.Until(func(now rig.Totals) bool { return now.Succeeded == 1 })
	if d := rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+waits); d.Job.State != "completed" {
		t.Errorf("the job that waited for its handler is %s", d.Job.State)
	}
	type log struct{ Entries []struct{ Subject string } }
	if all := rig.Get[log](t, p.URL+"/api/v1/audit?action=config.reload").Entries; len(all) != 1 || all[0].Subject != "redrive.yaml" {
		t.Errorf("the audit log has %+v", all)
	}
}

// Editors and people find the place of each error on a line of its own.
func TestReload_PrintsEachErrorOnItsLine(t *testing.T) {
	dir := t.TempDir()
	p := rig.Start(t, dir)
	rig.Write(t, dir, "redrive.yaml", "hadnlers: {}\nworkers: 0\n")
	code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload"))
	lines := strings.Split(stderr, "\n")
	if code != 2 || len(lines) != 3 || !strings.HasPrefix(lines[0], "dashboard: redrive.yaml:1: hadnlers: no such field") ||
		!strings.HasPrefix(lines[1], "dashboard: redrive.yaml:2: workers: 0 is not") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if err := p.Cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	p.Says("; redrive.yaml:2: workers: 0 is not") // a record of the log is one line
}

func TestReload_NeedsADashboard(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "no such file") {
		t.Errorf("without a database: exit %d, %s", code, stderr)
	}
	p := rig.Start(t, dir)
	p.Stop(syscall.SIGTERM)
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "reload")); code != 2 || !strings.Contains(stderr, "no dashboard has redrive.db open") {
		t.Errorf("without a dashboard: exit %d, %s", code, stderr)
	}
}

// Sources come, change and go with a reload, and those that the file names as before keep
// their connections.
func TestReload_ReplacesSources(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	kept, gone := redistest.Start(t), redistest.Start(t)
	for _, client := range []*redis.Client{kept, gone} {
		redistest.Load(t, client, filepath.Join("..", "..", "internal", "source", "testdata", "initphp-queue", "redis-dump.json"))
	}
	queue := func(name string, client *redis.Client) string {
		return "  " + name + ": {preset: initphp-redis, url: '" + redistest.URL(client) + "', allow: [replay], every: 1s}\n"
	}
	shop := func(name, path, allow string) string {
		return "  " + name + ": {preset: laravel, url: 'sqlite://" + path + "', allow: [" + allow + "], every: 1s}\n"
	}
	first, second := rig.ShopDatabase(t, dir), rig.ShopDatabase(t, t.TempDir())
	ownKept, ownGone := connections(t, kept, nil), connections(t, gone, nil) // of this test
	rig.Write(t, dir, "redrive.yaml", "sources:\n"+queue("kept", kept)+queue("gone", gone)+shop("shop", first, "discard"))
	p := rig.Start(t, dir)
	for _, name := range []string{"kept", "gone", "shop"} {
		rig.UntilSource(t, p.URL, name, "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() > 0 })
	}
	connected := connections(t, kept, ownKept)
	ids, left := rig.DeadLettersOf(t, p.URL, "shop"), rig.DeadLettersOf(t, p.URL, "gone")
	if why := refused(p, ids[0], "replay"); !strings.Contains(why, "does not allow a replay") {
		t.Errorf("before the reload, a replay is answered with %s", why)
	}
	page := rig.OpenLive(t, p.URL)

	rig.Write(t, dir, "redrive.yaml", "sources:\n"+queue("kept", kept)+shop("shop", first, "replay")+shop("outlet", second, "replay"))
	reloaded(t, dir, "Reloaded: sources.\n")
	p.Says(`msg="The configuration was reloaded." config=redrive.yaml changed=[sources] needs_restart=[]`)
	if all := sourceNames(p); !slices.Equal(all, []string{"kept", "outlet", "shop"}) {
		t.Errorf("the sources are %q", all)
	}
	if why := refused(p, ids[0], "discard"); !strings.Contains(why, "does not allow a discard") {
		t.Errorf("after the reload, a discard is answered with %s", why)
	}
	rig.ActAtSource(t, p.URL, "shop", ids[0], "replay")
	rig.UntilSource(t, p.URL, "outlet", "the new source is mirrored", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 6 })
	rig.UntilRedrawn(t, page)

	// The dead letters of a source that was taken out stay, and no one is connected with it.
	for late := time.Now().Add(3 * time.Minute); len(connections(t, gone, ownGone)) > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(late) {
			t.Fatalf("%q are still connected", connections(t, gone, ownGone))
		}
	}
	if after := rig.DeadLettersOf(t, p.URL, "gone"); len(after) == 0 || !slices.Equal(after, left) {
		t.Errorf("of the dead letters %q there are %q", left, after)
	}
	if why := refused(p, left[0], "replay"); !strings.Contains(why, "the source gone is not attached") {
		t.Errorf("a replay at a source that was taken out is answered with %s", why)
	}
	if metrics := rig.Text(t, p.URL+"/metrics"); strings.Contains(metrics, `source="gone"`) || !strings.Contains(metrics, `redrive_source_up{source="outlet"} 1`) {
		t.Error("the metrics do not follow")
	}
	if now := connections(t, kept, ownKept); !slices.Contains(now, connected[0]) {
		t.Errorf("the connections %q are now %q", connected, now)
	}
	if _, stdout, _ := rig.Finish(t, rig.Command(t, dir, "reload")); stdout != "The configuration has not changed.\n" {
		t.Errorf("of the same file: %s", stdout)
	}
}

// connections are the ids of the connections with a Redis, without those of others.
func connections(t *testing.T, client *redis.Client, others []string) (all []string) {
	t.Helper()
	list, err := client.ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(list) {
		id, _, _ := strings.Cut(strings.TrimPrefix(line, "id="), " ")
		if !slices.Contains(others, id) {
			all = append(all, id)
		}
	}
	return all
}

// refused is what the answer says to an act on the first run of a job.
func refused(p *rig.Process, id, kind string) string {
	p.T.Helper()
	response, err := http.Post(p.URL+"/api/v1/jobs/"+id+"/"+kind, "application/json", strings.NewReader(`{"run": 1}`))
	if err != nil {
		p.T.Fatal(err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode == http.StatusOK {
		p.T.Fatalf("the %s is answered with %s, %v", kind, response.Status, err)
	}
	return string(data)
}

// sourceNames are the names of the attached sources.
func sourceNames(p *rig.Process) (names []string) {
	p.T.Helper()
	type list struct{ Sources []struct{ Name string } }
	for _, s := range rig.Get[list](p.T, p.URL+"/api/v1/sources").Sources {
		names = append(names, s.Name)
	}
	return names
}

// A dead letter that is discarded while its source is not attached is given up here alone. The
// source still has it, so it is back when the source is.
func TestReload_WhatASourceStillHasComesBackWithIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	attached := "sources:\n  shop: {preset: laravel, url: 'sqlite://" + rig.ShopDatabase(t, dir) + "', allow: [discard], every: 1s}\n"
	rig.Write(t, dir, "redrive.yaml", attached)
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 6 })
	before := rig.DeadLettersOf(t, p.URL, "shop")

	discard := func(want string) {
		t.Helper()
		code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "discard", "--server", p.URL, "--filter", "source:shop state:dead_letter", "--dry-run"))
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("a discard of all: exit %d, %s%s", code, stdout, stderr)
		}
	}
	discard("Of these, 6 are deleted at the source shop and cannot be restored.\n")
	rig.Write(t, dir, "redrive.yaml", "{}\n")
	reloaded(t, dir, "Reloaded: sources.\n")
	discard("Of these, 6 are discarded in Redrive only: the source shop is not attached, so it is not told")
	response, err := http.Post(p.URL+"/api/v1/jobs/"+before[0]+"/discard", "application/json", strings.NewReader(`{"run": 1}`))
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != http.StatusOK {
		t.Fatalf("a discard is answered with %s", response.Status)
	}
	if all := rig.Text(t, p.URL+"/api/v1/sources"); !strings.Contains(all, `"unattached":[{"name":"shop","dead_letters":5,"waiting":0}]`) {
		t.Errorf("the sources are %s", all)
	}

	rig.Write(t, dir, "redrive.yaml", attached)
	reloaded(t, dir, "Reloaded: sources.\n")
	rig.UntilSource(t, p.URL, "shop", "the discarded dead letter is back", func(s rig.ShownSource) bool { return s.Dead() == 6 })
	if after := rig.DeadLettersOf(t, p.URL, "shop"); !slices.Equal(after, before) {
		t.Errorf("the dead letters %q are now %q", before, after)
	}
}

// A URL that names another database under the same name is not used, and the same database
// under another address is when the file says so.
func TestReload_AnotherDatabaseUnderTheNameOfASource(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old := rig.ShopDatabase(t, dir)
	other := rig.ShopDatabase(t, t.TempDir())
	attached := func(path, more string) string {
		return "sources:\n  shop: {preset: laravel, url: 'sqlite://" + path + "', every: 1s" + more + "}\n"
	}
	rig.Write(t, dir, "redrive.yaml", attached(old, ""))
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 6 })
	before := rig.DeadLettersOf(t, p.URL, "shop")

	rig.Write(t, dir, "redrive.yaml", attached(other, ""))
	reloaded(t, dir, "Reloaded: sources.\n")
	const moved = `"state":"moved"`
	for end := time.Now().Add(time.Minute); !strings.Contains(rig.Text(t, p.URL+"/api/v1/sources/shop"), moved); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("the other database is not refused: %s", rig.Text(t, p.URL+"/api/v1/sources/shop"))
		}
	}
	if page := rig.Text(t, p.URL+"/sources/shop"); !strings.Contains(page, "names another place") || !strings.Contains(page, old+", table failed_jobs") {
		t.Errorf("the page does not say what is wrong: %s", page)
	}

	rig.Write(t, dir, "redrive.yaml", attached(other, ", moved_from: '"+old+", table failed_jobs'"))
	reloaded(t, dir, "Reloaded: sources.\n")
	rig.UntilSource(t, p.URL, "shop", "it is read at its new address", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == 6 })
	if after := rig.DeadLettersOf(t, p.URL, "shop"); !slices.Equal(after, before) {
		t.Errorf("the dead letters %q are now %q", before, after)
	}
}

// reloaded has the dashboard of a directory read its configuration again, and checks what
// the command says.
func reloaded(t *testing.T, dir, want string) {
	t.Helper()
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "reload"))
	if code != 0 || stdout != want {
		t.Fatalf("exit %d: %s%s", code, stdout, stderr)
	}
}
