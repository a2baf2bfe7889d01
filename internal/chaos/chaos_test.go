//go:build linux

// Package chaos breaks the real binary while it works, and then checks what it
// promised.
//
// A producer sends jobs and replays dead letters, a service and a program carry
// them out, and all three write their own logs. Two foreign queues are attached as
// sources: jobs die in them, are replayed and discarded through the dashboard, and
// run by workers that the test brings. Meanwhile faults strike at random
// moments (faults_test.go): kill -9, also while the dashboard starts, too few
// descriptors, a full, a stalled and a busy disk, a moved database, two starts at
// once. At the end the dashboard is left alone until no job is left to run. Then
// the verdict (verdict_test.go) compares the database with the logs: it reads the
// file itself and shares no code with the store.
//
//	make chaos MINUTES=30
//
// repeats with REDRIVE_CHAOS_SEED, the seed that each run prints. The seed decides
// on the faults and their order, but not on what the machine does meanwhile.
package chaos

import (
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"testing"
	"time"
)

const (
	defaultMinutes = 2
	maxShown       = 20 // of the problems; their number is in the report
)

func TestLong_ChaosNothingIsLostOrRunTwice(t *testing.T) {
	minutes, seed := setting(t, "REDRIVE_CHAOS_MINUTES", defaultMinutes), setting(t, "REDRIVE_CHAOS_SEED", time.Now().UnixNano())
	t.Logf("%d minutes with REDRIVE_CHAOS_SEED=%d", minutes, seed)
	random := rand.New(rand.NewPCG(uint64(seed), 0))

	work, shops := startService(t), startShops(t)
	d := newDashboard(t, work.configuration()+attachedAll(shops))
	d.start()
	producers := startProducers(d, seed)
	trade := startTrade(d, shops, seed)

	end := time.Now().Add(time.Duration(minutes) * time.Minute)
	struck := map[string]int{}
	for deck := []fault(nil); time.Now().Before(end) && !t.Failed(); deck = deck[1:] {
		if len(deck) == 0 {
			deck = shuffled(t, random)
		}
		time.Sleep(upTo(random, 2*time.Second)) // work goes on for a while between two faults
		t.Logf("%s %s", time.Now().Format(time.TimeOnly), deck[0].name)
		deck[0].strike(d, random)
		struck[deck[0].name]++
		d.awaitReady()
	}
	producers.stop()
	trade.stop()
	d.awaitIdle()
	d.awaitShops(shops)
	trade.close()
	d.end()
	d.examine()

	h := history{producers: producers.log, runs: work.log(), unwritten: d.unwritten, workers: workers}
	for _, s := range shops {
		h.shops = append(h.shops, s.outcome(t))
	}
	v := judge(t, d.db, h)
	for _, problem := range v.problems[:min(len(v.problems), maxShown)] {
		t.Error(problem)
	}
	report(t, struck, d, producers.log.answers, v)
}

// setting reads a number from the environment.
func setting(t *testing.T, name string, fallback int64) int64 {
	t.Helper()
	text, ok := os.LookupEnv(name)
	if !ok || text == "" {
		return fallback
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// shuffled is every fault once, in a random order, so that even a short run meets
// each kind.
func shuffled(t *testing.T, random *rand.Rand) []fault {
	all := faults(t)
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

func upTo(random *rand.Rand, longest time.Duration) time.Duration {
	return time.Duration(random.Int64N(int64(longest)))
}

// report prints the figures of a run, as docs/reliability.md shows them.
func report(t *testing.T, struck map[string]int, d *dashboard, answers map[int]int, v verdict) {
	t.Helper()
	for _, f := range faults(t) {
		t.Logf("%6d  %s", struck[f.name], f.name)
	}
	for _, line := range []struct {
		n    int
		what string
	}{
		{d.starts, "starts"}, {d.kills, "of them ended by kill -9"}, {d.failures, "of them ended by themselves, because the disk failed"},
		{d.doors, "starts refused because the database was in use or incomplete"},
		{v.acknowledged, "jobs acknowledged"}, {answers[0], "requests whose answer never came"},
		{answers[http.StatusServiceUnavailable] + answers[http.StatusInsufficientStorage], "requests refused with 503 or 507"},
		{v.replays, "replays acknowledged"}, {v.executions, "executions seen by the service and the program"},
		{v.lost, "attempts ended as lost"}, {v.unseen, "of them claimed at the kill, their request not yet seen by the service"},
		{len(v.shops), "sources attached"}, {v.shopJobs, "dead letters at sources"}, {v.shopReplays, "replays at sources acknowledged"},
		{v.shopExecutions, "executions seen by the workers of the sources"}, {v.shopUnknown, "replays at sources of which the end is unknown"},
	} {
		t.Logf("%6d  %s", line.n, line.what)
	}
	t.Logf("%6d  violations", len(v.problems))
}
