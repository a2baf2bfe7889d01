package sources_test

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"redrive/test/rig"
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
	rig.Write(t, dir, "redrive.yaml", rig.AttachedShop(t, dir, "shop", bulkFailed(all)))
	shop := rig.OpenBeside(t, filepath.Join(dir, "shop.sqlite"))
	pushed := func() int { return count(t, shop, `SELECT count(*) FROM jobs WHERE queue = 'bulk'`) }

	p := rig.Start(t, dir)
	rig.UntilSource(t, p.URL, "shop", "everything was read", func(s rig.ShownSource) bool { return s.Ready && s.Dead() == all })
	watching := rig.Command(t, dir, "replay", "--server", p.URL, "--filter", "source:shop", "--rate", "300/s", "--canary", "0", "--yes")
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
		if p.Stop(syscall.SIGKILL); n == 0 {
			_ = watching.Wait() // it ends because the dashboard is gone
		}
		p = rig.Start(t, dir)
	}
	own := rig.OpenBeside(t, filepath.Join(dir, "redrive.db"))
	open := func() int { return count(t, own, `SELECT count(*) FROM source_acts WHERE state IN ('asked', 'begun')`) }
	rig.UntilSource(t, p.URL, "shop", "every job has left, and the ledger says how", func(s rig.ShownSource) bool {
		return count(t, shop, `SELECT count(*) FROM failed_jobs`) == 0 && s.Dead() == 0 && open() == 0
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
	p.Stop(syscall.SIGTERM)
	if code, out, _ := rig.Finish(t, rig.Command(t, dir, "doctor")); code != 0 {
		t.Errorf("doctor: %s", out)
	}
}

// bulkFailed are so many failed jobs of Laravel's queue "bulk".
func bulkFailed(n int) []rig.FailedJob {
	failed := make([]rig.FailedJob, n)
	for i := range failed {
		uuid := fmt.Sprintf("00000000-0000-4000-8000-%012d", i)
		failed[i] = rig.FailedJob{UUID: uuid, Connection: "database", Queue: "bulk", Payload: `{"uuid":"` + uuid + `","displayName":"App\\Jobs\\Bulk","maxTries":1,"attempts":1}`, Exception: "App\\Declined: no"}
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
