// Package workers_test proves the sources with the real workers of the systems. Jobs
// fail permanently in them, are seen, replayed and discarded by the program that is
// released, and run in them again.
//
// A system is a program that knows three verbs: work DIR, enqueue ORDER..., and dead,
// which prints how many dead jobs the system itself counts. Its job writes its order to
// the file ran in DIR, and fails while DIR has a file broken. A job may be tried twice,
// and one worker runs one job at a time, so that the file tells what ran, how often and in
// which order.
//
// The module is one of its own, so that the product needs none of the systems' modules.
package workers_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// system is a queue and the programs that use it.
type system struct {
	name    string
	preset  string
	server  func(testing.TB) (url string)
	command []string // to which a verb is added
	probe   []string // fails where the system is missing
	install string   // what then helps

	settings string // of the source, beside its preset, address and rights
	silent   bool   // it keeps no errors

	attempts int  // of a job that has failed permanently; 0: the system does not count
	fresh    int  // executions that a replay with fresh attempts grants
	keeps    bool // jobs that have succeeded, and so tells of them

	payload string // of an order, as a format; empty: it cannot be changed
}

var systems = []system{
	{name: "Asynq", preset: "asynq", server: redisServer, command: []string{"asynq"}, attempts: 2, fresh: 2, keeps: true, payload: object},
	{name: "Sidekiq", preset: "sidekiq", server: redisServer, command: []string{ruby, "sidekiq.rb"}, attempts: 2, fresh: 2, payload: "[%q]",
		probe: []string{ruby, "-e", "require 'sidekiq'"}, install: "sudo apt-get install ruby-sidekiq"},
	{name: "RQ", preset: "rq", server: redisServer, command: []string{python, "shop_rq.py"}, fresh: 1,
		probe: []string{python, "-c", "import rq"}, install: "sudo apt-get install python3-rq"},
	{name: "Celery", preset: "celery-amqp", server: rabbitServer, command: []string{python, "shop_celery.py"}, attempts: 2, fresh: 2,
		settings: ", queues: [orders.dlq]", silent: true, payload: `[[%q], {}, {"callbacks": null, "errbacks": null, "chain": null, "chord": null}]`,
		probe: []string{python, "-c", "import celery"}, install: "sudo apt-get install python3-celery"},
	node("BullMQ 6", "bullmq", redisServer, "bullmq.mjs", "bullmq"),
	node("BullMQ 5", "bullmq", redisServer, "bullmq.mjs", "bullmq-5"),
	{name: "River", preset: "river", server: postgresDatabase, command: []string{"river"}, attempts: 2, fresh: 2, keeps: true, payload: object},
	node("graphile-worker", "graphile-worker", postgresDatabase, "graphile-worker.mjs", "graphile-worker"),
	node("pg-boss 10", "pg-boss", postgresDatabase, "pg-boss.mjs", "pg-boss"),
	node("pg-boss 12", "pg-boss", postgresDatabase, "pg-boss.mjs", "pg-boss-12"),
}

// object is a payload that names its order.
const object = `{"order":%q}`

// Debian's packages are for Debian's interpreters, which need not be the first in the path.
const (
	ruby   = "/usr/bin/ruby"
	python = "/usr/bin/python3"
)

// node is a system of a package from npm.
func node(name, preset string, server func(testing.TB) string, script, pkg string) system {
	return system{
		name: name, preset: preset, server: server, command: []string{"node", script, pkg}, attempts: 2, fresh: 2,
		keeps: preset != "graphile-worker", payload: object,
		probe:   []string{"node", "-e", "import('" + pkg + "').catch(() => process.exit(1))"},
		install: "sudo apt-get install nodejs npm, and npm ci --ignore-scripts in test/workers",
	}
}

func TestWorkers_RunWhatIsReplayed(t *testing.T) {
	for _, s := range systems {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			s.need(t)
			newBench(t, s).play()
		})
	}
}

// need skips the test where the system is not installed, which in CI is a failure.
func (s system) need(t *testing.T) {
	t.Helper()
	if s.probe == nil {
		return
	}
	cmd := exec.Command(s.probe[0], s.probe[1:]...)
	cmd.Dir = "testdata"
	if out, err := cmd.CombinedOutput(); err != nil {
		missing(t, "%s is missing: %s (%v %s)", s.name, s.install, err, out)
	}
}

// bench is a system at work, and a dashboard that is attached to it.
type bench struct {
	testing.TB
	system
	env       []string
	dir       string // the shop's
	dashboard *dashboard
}

func newBench(t testing.TB, s system) *bench {
	t.Helper()
	url := s.server(t)
	b := &bench{TB: t, system: s, dir: t.TempDir()}
	b.env = append(os.Environ(), "REDIS_URL="+url, "DATABASE_URL="+url, "AMQP_URL="+url, "PYTHONDONTWRITEBYTECODE=1")
	b.breakShop()
	b.run("enqueue") // nothing: the system makes its tables
	b.dashboard = startDashboard(t, fmt.Sprintf("sources: {shop: {preset: %s, url: %q, allow: [replay, discard], every: 1s%s}}\n",
		s.preset, url, s.settings))
	return b
}

// orders are the jobs of the story, by what becomes of them.
var orders = []string{"failing", "fresh", "discarded", "raced", "mended", "later"}

// order is the one of a dead letter: of its error or, where the system keeps none, of its
// payload.
func (b *bench) order(l deadLetter) string {
	b.Helper()
	if b.silent {
		payload := b.dashboard.payload(l.Job.ID)
		i := slices.IndexFunc(orders, func(order string) bool { return strings.Contains(payload, strconv.Quote(order)) })
		if i < 0 {
			b.Fatalf("the payload of %+v is %s", l, payload)
		}
		return orders[i]
	}
	order, ok := strings.CutPrefix(l.Job.Error.Message, "card declined: order ")
	if !ok {
		b.Fatalf("the error of %+v", l)
	}
	return order
}

// play is the whole story.
func (b *bench) play() {
	b.run(append([]string{"enqueue"}, orders...)...)
	b.startWorker()
	b.until("six dead letters are shown", func() bool { return len(b.dashboard.deadLetters()) == 6 })
	first := map[string]deadLetter{}
	for _, l := range b.dashboard.deadLetters() {
		first[b.order(l)] = l
		if l.Job.Run != 1 || l.Job.Attempts != b.attempts || !strings.HasSuffix(l.Job.Queue, "@shop") {
			b.Errorf("%+v", l)
		}
	}
	b.counts(6, map[string]int{"failing": 2, "fresh": 2, "discarded": 2, "raced": 2, "mended": 2, "later": 2})

	b.dashboard.act(first["failing"], "replay", `{"run": 1}`)
	b.failsAgain(first["failing"], 3)
	b.dashboard.act(first["fresh"], "replay", `{"run": 1, "mode": "fresh"}`)
	b.failsAgain(first["fresh"], 2+b.fresh)
	b.dashboard.act(first["discarded"], "discard", `{"run": 1}`)
	b.until("the discard is done", func() bool { return b.dashboard.ended("discard", "done") == 1 })

	b.mendShop()
	b.race(first["raced"])
	b.until("the raced job has run", func() bool { return b.ran("raced") == 3 })
	b.dashboard.act(first["mended"], "replay", `{"run": 1}`)
	b.until("the mended job has run", func() bool { return b.ran("mended") == 3 })
	b.later(first["later"])
	b.until("all replays are done", func() bool { return b.dashboard.ended("replay", "done") == 5 })
	b.counts(2, map[string]int{"failing": 3, "fresh": 2 + b.fresh, "discarded": 2, "raced": 3, "mended": 3})
	for _, order := range []string{"raced", "mended", "later"} {
		b.ends(first[order])
	}
	b.dashboard.examine()
}

// later replays a job that waits first, where a replay can, and then runs another order
// where its payload can be changed.
func (b *bench) later(l deadLetter) {
	b.Helper()
	order, body, ran := "later", `{"run": 1, "delay": "PT3S"}`, 3
	if b.payload != "" {
		order, ran = "corrected", 1
		body = fmt.Sprintf(`{"run": 1, "delay": "PT3S", "payload": %s}`, fmt.Sprintf(b.payload, order))
	}
	due := time.Now().Add(3 * time.Second)
	b.dashboard.act(l, "replay", body)
	b.until("the delayed job has run", func() bool { return b.ran(order) == ran })
	if now := time.Now(); now.Before(due) {
		b.Errorf("the delayed job ran at %s or before, and was due at %s", now, due)
	}
}

// ends waits for what the dashboard says of a replayed job that has run: that it succeeded,
// if the system keeps it then, and else that the system has it.
func (b *bench) ends(l deadLetter) {
	b.Helper()
	want := "returned"
	if b.keeps {
		want = "completed"
	}
	b.until("the replayed job is "+want, func() bool {
		j := b.dashboard.job(l.Job.ID)
		return j.Run == 2 && j.State == want
	})
}

// failsAgain waits for the next failure of a replayed job, which has then run so often.
func (b *bench) failsAgain(l deadLetter, ran int) {
	b.Helper()
	b.until("the replayed job has failed again", func() bool {
		again := b.dashboard.deadLetters()
		i := slices.IndexFunc(again, func(a deadLetter) bool { return a.Job.ID == l.Job.ID && a.Job.Run == 2 })
		return i >= 0 && again[i].Job.Error.Message == l.Job.Error.Message
	})
	if order := b.order(l); b.ran(order) != ran {
		b.Errorf("%s ran %d times, not %d", order, b.ran(order), ran)
	}
}

// race replays one job twenty times at once, of which one succeeds.
func (b *bench) race(l deadLetter) {
	b.Helper()
	const racers = 20
	var won, lost atomic.Int64
	start, done := make(chan struct{}), make(chan struct{})
	for range racers {
		go func() {
			defer func() { done <- struct{}{} }()
			<-start
			switch status := b.dashboard.post("/api/v1/jobs/"+l.Job.ID+"/replay", `{"run": 1}`); status {
			case 200:
				won.Add(1)
			case 409:
				lost.Add(1)
			default:
				b.Errorf("a replay in the race answered %d", status)
			}
		}()
	}
	close(start)
	for range racers {
		<-done
	}
	if won.Load() != 1 || lost.Load() != racers-1 {
		b.Errorf("%d replays won and %d lost", won.Load(), lost.Load())
	}
}

// counts compares how many dead jobs the system and the dashboard have, and what ran.
func (b *bench) counts(dead int, ran map[string]int) {
	b.Helper()
	if out := strings.TrimSpace(b.run("dead")); out != fmt.Sprint(dead) {
		b.Errorf("the system counts %s dead jobs, not %d", out, dead)
	}
	if n := len(b.dashboard.deadLetters()); n != dead {
		b.Errorf("the dashboard has %d dead letters, not %d", n, dead)
	}
	for order, times := range ran {
		if n := b.ran(order); n != times {
			b.Errorf("%s ran %d times, not %d", order, n, times)
		}
	}
}

// ran counts the executions of an order.
func (b *bench) ran(order string) (n int) {
	b.Helper()
	text, err := os.ReadFile(filepath.Join(b.dir, "ran"))
	b.check(err)
	for ran := range strings.FieldsSeq(string(text)) {
		if ran == order {
			n++
		}
	}
	return n
}

func (b *bench) breakShop() {
	b.Helper()
	b.check(os.WriteFile(filepath.Join(b.dir, "broken"), nil, 0o600))
}

func (b *bench) mendShop() {
	b.Helper()
	b.check(os.Remove(filepath.Join(b.dir, "broken")))
}

func (b *bench) check(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// until waits for something that takes a worker or a look at the source.
func (b *bench) until(what string, is func() bool) {
	b.Helper()
	for end := time.Now().Add(3 * time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			b.Fatalf("not after three minutes: %s", what)
		}
	}
}
