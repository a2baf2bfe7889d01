package main

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestSource_KillsLoseAndDoubleNothing replays six hundred jobs at their source in an
// operation, and kills the program three times meanwhile. Each job comes to work once, the
// ledger says so of all but those that had begun at a kill, and nothing stays under way.
func TestSource_KillsLoseAndDoubleNothing(t *testing.T) {
	t.Parallel()
	const all, kills, atOnce = 600, 3, 100
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	dir := t.TempDir()
	write(t, dir, "redrive.yaml", attachedShop(t, dir, "shop", bulkFailed(all)))
	shop := openBeside(t, filepath.Join(dir, "shop.sqlite"))
	pushed := func() int { return count(t, shop, `SELECT count(*) FROM jobs WHERE queue = 'bulk'`) }

	p := startProcess(t, dir)
	untilSource(t, p.url, "shop", "everything was read", func(s shownSource) bool { return s.Ready && s.dead() == all })
	watching := command(t, dir, "replay", "--server", p.url, "--filter", "source:shop", "--rate", "300/s", "--canary", "0", "--yes")
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	for n := range kills {
		late := time.Now().Add(3 * time.Minute)
		before := pushed()
		for enough := before + 1 + random.IntN(atOnce); pushed() < min(enough, all); time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("after %d kills, %d of %d jobs came to work, and no more come", n, pushed(), all)
			}
		}
		if p.stop(syscall.SIGKILL); n == 0 {
			_ = watching.Wait() // it ends because the dashboard is gone
		}
		p = startProcess(t, dir)
	}
	own := openBeside(t, filepath.Join(dir, "redrive.db"))
	open := func() int { return count(t, own, `SELECT count(*) FROM source_acts WHERE state IN ('asked', 'begun')`) }
	untilSource(t, p.url, "shop", "every job has left, and the ledger says how", func(s shownSource) bool {
		return count(t, shop, `SELECT count(*) FROM failed_jobs`) == 0 && s.dead() == 0 && open() == 0
	})

	different := count(t, shop, `SELECT count(DISTINCT json_extract(payload, '$.uuid')) FROM jobs WHERE queue = 'bulk'`)
	if pushed() != all || different != all {
		t.Errorf("%d jobs came to work, %d different ones", pushed(), different)
	}
	done := count(t, own, `SELECT count(*) FROM source_acts WHERE state = 'done'`)
	unknown := count(t, own, `SELECT count(*) FROM source_acts WHERE state = 'unknown'`)
	if done+unknown != all || unknown > kills*atOnce {
		t.Errorf("of %d acts the ledger calls %d done and %d unknown", all, done, unknown)
	}
	p.stop(syscall.SIGTERM)
	if code, out, _ := finish(t, command(t, dir, "doctor")); code != 0 {
		t.Errorf("doctor: %s", out)
	}
}

// bulkFailed are so many failed jobs of Laravel's queue "bulk".
func bulkFailed(n int) []failedJob {
	failed := make([]failedJob, n)
	for i := range failed {
		uuid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		failed[i] = failedJob{uuid, "database", "bulk", `{"uuid":"` + uuid + `","displayName":"App\\Jobs\\Bulk","maxTries":1,"attempts":1}`, "App\\Declined: no"}
	}
	return failed
}

func count(t *testing.T, db *sql.DB, query string) (n int) {
	t.Helper()
	if err := db.QueryRow(query).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
