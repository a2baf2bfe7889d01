package poll_test

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/redissource/redistest"
	"redrive/internal/store"
	"redrive/internal/store/databasetest"
)

// newRedisBench attaches a Redis with the records of a file below testdata.
func newRedisBench(t *testing.T, name, file string) (*bench, *redis.Client) {
	t.Helper()
	client := redistest.Start(t)
	redistest.Load(t, client, "../source/testdata", file)
	p := preset.All()[name]
	return newBenchOf(t, p, func(ctx context.Context) (source.Origin, error) {
		return redissource.Open(ctx, redistest.URL(client), p, preset.Settings{})
	}), client
}

// newBenchOf attaches a source of any kind.
func newBenchOf(t *testing.T, p *preset.Preset, open func(context.Context) (source.Origin, error)) *bench {
	t.Helper()
	b := &bench{T: t}
	b.sources = poll.New([]poll.Attached{{
		Name: "shop", Preset: p, Profile: p.Profile, Allow: []source.Kind{source.Replay, source.Discard}, Every: 20 * time.Millisecond, Open: open,
	}}, func(s string) string { return s }, slog.New(slog.NewTextHandler(os.Stderr, nil)))
	var err error
	database := databasetest.Database(t)
	b.store, err = store.Open(t.Context(), store.Options{
		Database:    database,
		OnCommit:    func(changes []job.Change) { b.sources.Changed(changes) },
		CheckSource: func(name string, w source.Request) string { return b.sources.Check(name, w) },
	})
	check(t, err)
	t.Cleanup(func() {
		check(t, b.store.Close())
		found, err := store.Examine(context.Background(), database)
		check(t, err)
		for _, f := range found {
			if f.Problem != "" {
				t.Errorf("doctor: %s: %s", f.What, f.Problem)
			}
		}
	})
	b.sources.Start(b.store.Mirror, b.store.Sources, b.store.Sources)
	t.Cleanup(b.sources.Close)
	return b
}

// failAgain is Sidekiq's worker: it takes the job from the queue and puts it back among
// the dead, with another error.
func (b *bench) failAgain(client *redis.Client, taken string) {
	b.Helper()
	again := strings.NewReplacer("card declined: 51", "card declined: 99", `"retry_count":0`, `"retry_count":1`).Replace(taken)
	check(b.T, client.ZAdd(b.Context(), "dead", redis.Z{Score: float64(time.Now().Unix()), Member: again}).Err())
}

// ofOrder is the job of the dead letter of an order.
func (b *bench) ofOrder(order string) job.Job {
	b.Helper()
	for _, l := range b.deadLetters() {
		if strings.HasSuffix(l.Job.Error.Message, "for order "+order) {
			return l.Job
		}
	}
	b.Fatal("no such job")
	return job.Job{}
}

func TestRedisSources_MirrorReplayFailAgainAndVanish(t *testing.T) {
	b, client := newRedisBench(t, "sidekiq", "sidekiq/redis-commands.json")
	b.until("all three dead jobs are mirrored", func() bool { return len(b.deadLetters()) == 3 })
	j := b.ofOrder("2")
	if j.Queue != "orders@shop" || j.Type != "Pay::ChargeJob" || j.Error.Type != "Declined" || j.Attempts != 2 {
		t.Errorf("%+v", j)
	}
	_, err := b.store.Replay(t.Context(), time.Now(), j.ID, 1, ana)
	check(t, err)
	taken := ""
	b.until("the job is in the queue", func() bool {
		taken = client.RPop(t.Context(), "queue:orders").Val()
		return taken != ""
	})
	b.until("it is no dead letter", func() bool { return b.job(j.ID).State == job.Returned })
	b.failAgain(client, taken)
	b.until("it has failed again", func() bool { return b.job(j.ID).Status() == job.StatusDeadLetter })
	if got := b.job(j.ID); got.Run != 2 || got.Error.Message != "card declined: 99 for order 2" {
		t.Errorf("run %d: %s", got.Run, got.Error.Message)
	}
	check(t, client.Del(t.Context(), "dead").Err())
	b.until("the job is gone", func() bool { return b.job(j.ID).Reason == retry.GoneAtSource })
	if n := len(b.deadLetters()); n != 0 {
		t.Errorf("%d dead letters of an empty source", n)
	}
}

func TestRedisSources_DiscardTakesTheRecordAway(t *testing.T) {
	b, client := newRedisBench(t, "sidekiq", "sidekiq/redis-commands.json")
	b.until("all three dead jobs are mirrored", func() bool { return len(b.deadLetters()) == 3 })
	_, err := b.store.Discard(t.Context(), time.Now(), b.ofOrder("1").ID, 1, ana)
	check(t, err)
	b.until("the record is gone", func() bool { return client.ZCard(t.Context(), "dead").Val() == 2 })
}

// TestRedisSources_AReplayElsewhereIsARun moves a job with one command, so that no look
// at the source sees it missing.
func TestRedisSources_AReplayElsewhereIsARun(t *testing.T) {
	b, client := newRedisBench(t, "sidekiq", "sidekiq/redis-commands.json")
	b.until("all three dead jobs are mirrored", func() bool { return len(b.deadLetters()) == 3 })
	j := b.ofOrder("2")
	const again = `local m = redis.call('ZREVRANGE', KEYS[1], 0, 0)[1]
		redis.call('ZREM', KEYS[1], m)
		return redis.call('ZADD', KEYS[1], '1795344099', (string.gsub(m, 'declined: 51', 'declined: 99')))`
	check(t, client.Eval(t.Context(), again, []string{"dead"}).Err())
	b.until("it has failed again", func() bool { return b.job(j.ID).Error.Message == "card declined: 99 for order 2" })
	if got := b.job(j.ID); got.Run != 2 || got.Status() != job.StatusDeadLetter || len(b.deadLetters()) != 3 {
		t.Errorf("run %d, %s, %d dead letters", got.Run, got.Status(), len(b.deadLetters()))
	}
}

// TestRedisSources_AJobThatDiedTwiceIsTwo has the same id in two records at once. Each
// keeps its own job, however often they are looked at.
func TestRedisSources_AJobThatDiedTwiceIsTwo(t *testing.T) {
	b, client := newRedisBench(t, "sidekiq", "sidekiq/redis-commands.json")
	b.until("all three dead jobs are mirrored", func() bool { return len(b.deadLetters()) == 3 })
	b.failAgain(client, client.ZRange(t.Context(), "dead", -1, -1).Val()[0])
	b.until("the other one is mirrored", func() bool { return len(b.deadLetters()) == 4 })
	polled := time.Now()
	for range 3 {
		b.until("another look", func() bool { return b.sources.Health()[0].Polled.After(polled) })
		polled = time.Now()
	}
	for _, l := range b.deadLetters() {
		if l.Job.Run != 1 {
			t.Errorf("%s is in run %d", l.Job.Error.Message, l.Job.Run)
		}
	}
}
