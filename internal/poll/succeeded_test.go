package poll_test

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/sqlsource"
)

var zscores = regexp.MustCompile(`cmdstat_zscore:calls=(\d+)`)

// TestSources_PollWhatHasSucceeded attaches BullMQ, which keeps what has succeeded in a sorted
// set. It is not asked for anything as long as nothing was replayed.
func TestSources_PollWhatHasSucceeded(t *testing.T) {
	b, client := newRedisBench(t, "bullmq", "bullmq/redis-commands-v6.json")
	b.until("the failed jobs are mirrored", func() bool { return b.sources.Health()[0].Ready && len(b.deadLetters()) > 2 })
	asked := func() string { return zscores.FindString(client.Info(t.Context(), "commandstats").Val()) }
	before, polled := asked(), time.Now()
	for range 3 {
		b.until("another look", func() bool { return b.sources.Health()[0].Polled.After(polled) })
		polled = time.Now()
	}
	if after := asked(); before == "" || after != before {
		t.Errorf("before anything was replayed: %s, then %s", before, after)
	}
	var replayed []job.Job
	for _, l := range b.deadLetters()[:2] {
		_, err := b.store.Replay(t.Context(), time.Now(), l.Job.ID, 1, ana)
		check(t, err)
		b.until("BullMQ has the job", func() bool { return b.job(l.Job.ID).Worker == "shop" })
		replayed = append(replayed, l.Job)
	}
	d, err := b.store.Job(t.Context(), replayed[0].ID)
	check(t, err)
	id := regexp.MustCompile(`[^/]+$`).FindString(d.Mirrored.Key)
	check(t, client.LRem(t.Context(), "bull:orders:wait", 0, id).Err())
	check(t, client.ZAdd(t.Context(), "bull:orders:completed", redis.Z{Score: float64(time.Now().UnixMilli()), Member: id}).Err())
	b.until("the job has succeeded", func() bool { return b.job(replayed[0].ID).State == job.Completed })
	if got := b.job(replayed[1].ID); got.State != job.Returned {
		t.Errorf("the other one is %s", got.State)
	}
	b.until("it is counted", func() bool { return b.sources.Health()[0].Succeeded == 1 })
}

// TestSources_PollAllInTurn has more jobs at the source than it is asked for in one look.
func TestSources_PollAllInTurn(t *testing.T) {
	path := filepath.Join(t.TempDir(), "solid.sqlite")
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
	check(t, err)
	t.Cleanup(func() { check(t, db.Close()) })
	dump, err := os.ReadFile("../source/testdata/written/solid-queue-sqlite.sql")
	check(t, err)
	const jobs = 501
	for _, statement := range []string{string(dump), "DELETE FROM solid_queue_failed_executions",
		fmt.Sprintf(`INSERT INTO solid_queue_jobs (id, queue_name, class_name, arguments, active_job_id, created_at, updated_at)
			WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
			SELECT 1000 + i, 'mail', 'MailJob', '{"arguments":[]}', 'many-' || i, '2026-11-22 09:00:00', '2026-11-22 09:00:00' FROM n`, jobs),
		`INSERT INTO solid_queue_failed_executions (job_id, error, created_at)
			SELECT id, '{"exception_class":"E","message":"m"}', '2026-11-22 10:00:00' FROM solid_queue_jobs WHERE id > 1000`} {
		_, err := db.Exec(statement)
		check(t, err)
	}
	p := preset.All()["solid-queue"]
	b := newBenchOf(t, p, func(ctx context.Context) (source.Origin, error) {
		return sqlsource.Open(ctx, "sqlite://"+path, p, preset.Settings{})
	})
	b.until("all are mirrored", func() bool { return b.sources.Health()[0].Ready })
	list, err := b.store.DeadLetters(t.Context(), filter.Filter{Status: job.StatusDeadLetter}, filter.Cursor{}, jobs)
	check(t, err)
	if len(list.DeadLetters) != jobs {
		t.Fatalf("%d dead letters of %d", len(list.DeadLetters), jobs)
	}
	first := list.DeadLetters[0].Job.ID
	for _, d := range list.DeadLetters {
		_, err := b.store.Replay(t.Context(), time.Now(), d.Job.ID, 1, ana)
		check(t, err)
	}

	b.until("the source has all", func() bool {
		n := 0
		check(t, db.QueryRow("SELECT count(*) FROM solid_queue_failed_executions").Scan(&n))
		return n == 0
	})
	d, err := b.store.Job(t.Context(), first)
	check(t, err)
	_, err = db.Exec("UPDATE solid_queue_jobs SET finished_at = '2026-11-22 12:00:00' WHERE id = ?", d.Mirrored.Key)
	check(t, err)
	b.until("the job that it took first has succeeded", func() bool { return b.job(first).State == job.Completed })
}
