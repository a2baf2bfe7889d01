// Package sources_test attaches the built program to the queues of other programs.
package sources_test

import (
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"redrive/internal/source/redissource/redistest"
	"redrive/test/rig"
)

// TestSource_AReplayIsChangedFromTheCommandLineAndTheForm asks for a time to come, for
// another payload and for a new message, and for what the source does not know.
func TestSource_AReplayIsChangedFromTheCommandLineAndTheForm(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t)
	redistest.Load(t, client, filepath.Join("..", "..", "internal", "source", "testdata", "initphp-queue", "redis-dump.json"))
	first := client.LIndex(t.Context(), "orders:failed", 0).Val()
	client.RPush(t.Context(), "orders:failed", strings.Replace(first, `"id":"29bb2cf0`, `"id":"39bb2cf0`, 1))
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "sources: {php: {preset: initphp-redis, url: '"+redistest.URL(client)+"', allow: [replay], every: 1s}}\n")
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "php", "everything was read", func(s rig.ShownSource) bool { return s.Ready })
	ids := rig.DeadLettersOf(t, p.URL, "php+queue:orders@php")
	if len(ids) < 2 {
		t.Fatalf("%d dead letters in orders", len(ids))
	}
	waiting := client.ZCard(t.Context(), "orders:delayed").Val()

	args := []string{"replay", ids[0], "--server", p.URL, "--mode", "new", "--in", "1h", "--payload", `{"n":"<7>"}`}
	if code, out, problems := rig.Finish(t, rig.Command(t, dir, args...)); code != 0 || !strings.HasPrefix(out, "Replayed, run 2: on its way to php") {
		t.Fatalf("exit %d: %s%s", code, out, problems)
	}
	rig.UntilSource(t, p.URL, "php", "it was handed over", func(rig.ShownSource) bool {
		return client.ZCard(t.Context(), "orders:delayed").Val() == waiting+1
	})
	if got := client.ZRange(t.Context(), "orders:delayed", -1, -1).Val()[0]; !strings.Contains(got, `"data":{"n":"<7>"}`) {
		t.Errorf("in the schedule: %s", got)
	}

	// What the system does not take is refused at once, and not by the ledger later.
	code, _, problems := rig.Finish(t, rig.Command(t, dir, "replay", ids[1], "--server", p.URL, "--payload", "7"))
	if code != 2 || !strings.Contains(problems, "its payload there must be a JSON object or array") {
		t.Fatalf("a number as the payload: exit %d, %s", code, problems)
	}

	form := url.Values{
		"changes": {"1"}, "run": {"1"}, "payload": {`{"n":8}`}, "mode": {"once"},
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, p.URL+"/jobs/"+ids[1]+"/replay", strings.NewReader(form.Encode()))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	rig.UntilSource(t, p.URL, "php", "it was handed over", func(rig.ShownSource) bool { return client.LLen(t.Context(), "orders").Val() == 1 })
	if got := client.LIndex(t.Context(), "orders", 0).Val(); !strings.Contains(got, `"data":{"n":8}`) {
		t.Errorf("in the queue: %s", got)
	}

	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--mode", "later"}, 2, "use once, fresh or new"},
		{[]string{"--payload", "{"}, 2, "is not JSON"},
		{[]string{"--filter", "type:a"}, 2, "has only the flags"},
	} {
		code, _, problems := rig.Finish(t, rig.Command(t, dir, append([]string{"replay", ids[1], "--server", p.URL}, tt.args...)...))
		if code != tt.code || !strings.Contains(problems, tt.want) {
			t.Errorf("%q: exit %d, %s", tt.args, code, problems)
		}
	}
}

// TestSource_RefusesAChangeThatItDoesNotKnow before anything happens. The keys are those of
// RQ, described in the configuration, which has no words for a schedule.
func TestSource_RefusesAChangeThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	client := redistest.Start(t)
	redistest.Load(t, client, filepath.Join("..", "..", "internal", "source", "testdata", "rq", "redis-commands.json"))
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", "sources: {py: {preset: keys, url: '"+redistest.URL(client)+"', allow: [replay], every: 1s, "+
		"sorted_set: 'rq:failed:{queue}', hash: 'rq:job:{id}', witness: ended_at, payload: description, work: 'rq:queue:{queue}'}}\n")
	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "py", "everything was read", func(s rig.ShownSource) bool { return s.Ready })
	id := rig.DeadLettersOf(t, p.URL, "py")[0]
	for _, tt := range []struct{ flag, value, want string }{
		{"--mode", "new", "it has no mode new"}, {"--in", "5m", "it has no delay for that"}, {"--payload", `"x"`, "its payload cannot be changed there"},
	} {
		code, _, problems := rig.Finish(t, rig.Command(t, dir, "replay", id, "--server", p.URL, tt.flag, tt.value))
		if code != 2 || !strings.Contains(problems, tt.want) {
			t.Errorf("%s: exit %d, %s", tt.flag, code, problems)
		}
	}
	if d := rig.Get[rig.Detail](t, p.URL+"/api/v1/jobs/"+id); d.Job.Run != 1 {
		t.Errorf("it is in run %d", d.Job.Run)
	}
}
