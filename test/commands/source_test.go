package commands_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/source/redissource/redistest"
	"redrive/test/rig"
)

func TestSourceCheck_SaysWhatItSeesAndWouldDo(t *testing.T) {
	dir := t.TempDir()
	path := rig.ShopDatabase(t, dir)
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rig.Write(t, dir, "redrive.yaml", "sources: {shop: {preset: laravel, url: 'sqlite://"+path+"', allow: [replay], zone: Europe/Berlin}}\n")
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "source", "check"))
	if code != 0 || stderr != "" {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"shop: Laravel (database queue)\n", "  Sees      6 dead letters\n",
		`2026-11-22 10:49:33 UTC orders App\Jobs\Until App\Jobs\Declined: card declined: 51 for order 13`,
		"  Does      replay, when", "  Refuses   discard, because allow", "  Hazard    A unique job",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("it does not say %q", want)
		}
	}
	if t.Failed() {
		t.Log(stdout)
	}
	if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
		t.Errorf("the database has changed, %v", err)
	}
}

func TestSourceCheck_FailsWhenOneCannotBeAttached(t *testing.T) {
	dir := t.TempDir()
	path := rig.ShopDatabase(t, dir)
	rig.Write(t, dir, "redrive.yaml", "sources:\n  a: {preset: initphp, url: 'sqlite://"+path+"'}\n  b: {preset: laravel, url: 'sqlite://"+path+"'}\n")
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "source", "check", "redrive.yaml"))
	if code != 1 || !strings.Contains(stderr, "1 of 2 sources cannot be attached") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if !strings.Contains(stdout, "Cannot be attached: this is not InitPHP Queue (PDO)") || !strings.Contains(stdout, "6 dead letters") {
		t.Errorf("%s", stdout)
	}
}

func TestSourceCheck_WithoutSources(t *testing.T) {
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "{}\n")
	if code, _, stderr := rig.Finish(t, rig.Command(t, dir, "source", "check")); code != 2 || !strings.Contains(stderr, "has no section sources") {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

func TestSourceDiscover_NamesThePresetThatFits(t *testing.T) {
	dir := t.TempDir()
	path := rig.ShopDatabase(t, dir)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "source", "discover", "sqlite://"+path))
	if code != 0 || !strings.HasPrefix(stdout, "laravel: ") || strings.Contains(stdout, "initphp") || !strings.Contains(stdout, "preset: laravel") {
		t.Errorf("exit %d: %s%s", code, stdout, stderr)
	}
	rig.Write(t, dir, "empty.sqlite", "")
	code, _, stderr = rig.Finish(t, rig.Command(t, dir, "source", "discover", "sqlite://"+filepath.Join(dir, "empty.sqlite")))
	if code != 1 || !strings.Contains(stderr, "no preset fits") {
		t.Errorf("exit %d: %s", code, stderr)
	}
	if code, _, stderr = rig.Finish(t, rig.Command(t, dir, "source", "discover", "ftp://x")); code != 2 {
		t.Errorf("exit %d: %s", code, stderr)
	}
}

// The presets that see something come first, with their sections; the others are one line.
func TestSourceDiscover_OffersWhatIsThere(t *testing.T) {
	dir := t.TempDir()
	queue := redistest.Start(t)
	address := redistest.URL(queue)
	code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "source", "discover", address))
	if code != 1 || stdout != "" || !strings.Contains(stderr, "no preset fits") || !strings.Contains(stderr, "Nothing found for: asynq, ") {
		t.Errorf("an empty Redis: exit %d: %s%s", code, stdout, stderr)
	}

	redistest.Load(t, queue, "../../internal/source/testdata/sidekiq/redis-commands.json")
	code, stdout, stderr = rig.Finish(t, rig.Command(t, dir, "source", "discover", address))
	if code != 0 || !strings.HasPrefix(stdout, "sidekiq: Sidekiq\n") || strings.Count(stdout, "preset: ") != 1 {
		t.Errorf("a Redis of Sidekiq: exit %d: %s%s", code, stdout, stderr)
	}
	if !strings.Contains(stderr, "Nothing found for: asynq, babelqueue-redis, bullmq, ") {
		t.Errorf("a Redis of Sidekiq: %s", stderr)
	}

	// One that is there without dead letters comes after it, although its name comes before.
	if err := queue.SAdd(t.Context(), "asynq:queues", "default").Err(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = rig.Finish(t, rig.Command(t, dir, "source", "discover", address))
	if code != 0 || !strings.HasPrefix(stdout, "sidekiq: Sidekiq\n") || !strings.Contains(stdout, "\nasynq: Asynq\n") {
		t.Errorf("a Redis of Sidekiq and Asynq: exit %d: %s%s", code, stdout, stderr)
	}

	// A list that another program filled is of no system that is known.
	if err := queue.FlushAll(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	if err := queue.RPush(t.Context(), "orders:failed", "no envelope").Err(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = rig.Finish(t, rig.Command(t, dir, "source", "discover", address))
	if code != 1 || stdout != "" {
		t.Errorf("a Redis of another program: exit %d: %s%s", code, stdout, stderr)
	}
}

func TestSourceDiscover_SaysThatThereIsNoConnection(t *testing.T) {
	dir := t.TempDir()
	port := redistest.FreePort(t)
	for address, want := range map[string]string{
		"redis://127.0.0.1:" + port:                     "cannot connect to 127.0.0.1:" + port + ": connection refused",
		"postgres://u:hunter2@127.0.0.1:" + port + "/x": "cannot connect to 127.0.0.1:" + port + ": connection refused",
		"mysql://u:hunter2@127.0.0.1:" + port + "/x":    "cannot connect to 127.0.0.1:" + port + ": connection refused",
		"amqp://127.0.0.1:" + port + "/?queues=dead":    "cannot connect to 127.0.0.1:" + port + ": connection refused",
		"sqlite://data/x.db":                            "data/x.db: no such file: write the path from the root, with three slashes, as in sqlite:///srv/data/x.db",
		"sqlite:///no/x.db":                             "/no/x.db: no such file",
	} {
		code, stdout, stderr := rig.Finish(t, rig.Command(t, dir, "source", "discover", address))
		if code != 1 || stdout != "" || !strings.Contains(stderr, want) || strings.Contains(stderr, "hunter2") || strings.Contains(stderr, "no preset fits") {
			t.Errorf("%s: exit %d: %s%s", address, code, stdout, stderr)
		}
	}
}
