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
	failed := make([]failedJob, all)
	for i := range failed {
		uuid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		failed[i] = failedJob{uuid, "database", "bulk", `{"uuid":"` + uuid + `","displayName":"App\\Jobs\\Bulk","maxTries":1,"attempts":1}`, "App\\Declined: no"}
	}
	write(t, dir, "redrive.yaml", attachedShop(t, dir, "shop", failed))
	shop, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "shop.sqlite")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	count := func(query string) (n int) {
		if err := shop.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}

	pushed := func() int { return count(`SELECT count(*) FROM jobs WHERE queue = 'bulk'`) }

	p := startProcess(t, dir)
	untilSource(t, p.url, "shop", "everything was read", func(s shownSource) bool { return s.Ready && s.dead() == all })
	watching := command(t, dir, "replay", "--server", p.url, "--filter", "source:shop", "--rate", "300/s", "--canary", "0", "--yes")
	if err := watching.Start(); err != nil {
		t.Fatal(err)
	}
	for n := range kills {
		late := time.Now().Add(3 * time.Minute)
		for before := pushed(); pushed() == before && before < all; time.Sleep(time.Millisecond) {
			if time.Now().After(late) {
				t.Fatalf("after %d kills, %d of %d jobs came to work, and no more come", n, before, all)
			}
		}
		time.Sleep(time.Duration(random.Int64N(int64(300 * time.Millisecond))))
		if p.stop(syscall.SIGKILL); n == 0 {
			_ = watching.Wait() // it ends because the dashboard is gone
		}
		p = startProcess(t, dir)
	}
	own, err := sql.Open("sqlite", "file:"+filepath.Join(dir, "redrive.db")+"?mode=ro&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	untilSource(t, p.url, "shop", "every job has left, and the ledger says how", func(s shownSource) bool {
		open := 0
		if err := own.QueryRow(`SELECT count(*) FROM source_acts WHERE state IN ('asked', 'begun')`).Scan(&open); err != nil {
			t.Fatal(err)
		}
		return count(`SELECT count(*) FROM failed_jobs`) == 0 && s.dead() == 0 && open == 0
	})

	different := count(`SELECT count(DISTINCT json_extract(payload, '$.uuid')) FROM jobs WHERE queue = 'bulk'`)
	if pushed() != all || different != all {
		t.Errorf("%d jobs came to work, %d different ones", pushed(), different)
	}
	states := map[string]int{}
	rows, err := own.Query(`SELECT state, count(*) FROM source_acts GROUP BY state`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var state string
		var n int
		if err := rows.Scan(&state, &n); err != nil {
			t.Fatal(err)
		}
		states[state] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	if states["done"]+states["unknown"] != all || states["unknown"] > kills*atOnce {
		t.Errorf("the ledger says %v", states)
	}
	p.stop(syscall.SIGTERM)
	if code, out, _ := finish(t, command(t, dir, "doctor")); code != 0 {
		t.Errorf("doctor: %s", out)
	}
}
