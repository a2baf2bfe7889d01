package redissource_test

import (
	"regexp"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

const asynqFile = "asynq/redis-commands.json"

var since = regexp.MustCompile(`("pending_since":)"\d+"`)

// asynqTask writes what a replay leaves behind.
func (b *bench) asynqTask(queue, id string) string {
	b.Helper()
	q := "asynq:{" + queue + "}:"
	return since.ReplaceAllString(redistest.Dump(b.T, b.redis, q+"pending", q+"t:"+id), `$1"NOW"`)
}

func TestAsynq_ShowsItsArchive(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	b.golden("asynq", recordsText(b.all(100)))
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if len(report.May) != 2 || report.Sees[1] != "5 dead letters in 2 queues" {
		t.Errorf("%+v", report)
	}
}

func TestAsynq_ReplaysAsItsButtonDoes(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	r := b.record("order-1")
	b.finds(r, source.Asked)
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.finds(r, source.Done)
	b.golden("asynq-once", b.asynqTask("orders", "order-1"))
}

func TestAsynq_ReplaysWithFreshRetries(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	b.does(act(source.Replay, source.Fresh, b.record("order-1")), source.Done)
	b.golden("asynq-fresh", b.asynqTask("orders", "order-1"))
}

func TestAsynq_TakesAwayADeadlineThatHasPassed(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	b.does(act(source.Replay, source.Once, b.record("deadline-1")), source.Done)
	b.golden("asynq-deadline", b.asynqTask("orders", "deadline-1"))
}

func TestAsynq_RefusesATaskThatDiedAgain(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	seen := b.record("bin-1")
	key := "asynq:{default}:t:bin-1"
	msg := b.redis.HGet(t.Context(), key, "msg").Val()
	b.check(b.redis.HSet(t.Context(), key, "msg", msg+"\x30\x01").Err())
	b.finds(seen, source.Changed)
	b.does(act(source.Replay, source.Once, seen), source.Changed)
	b.does(act(source.Discard, "", seen), source.Changed)
	b.does(act(source.Discard, "", b.record("bin-1")), source.Done)
	if n := b.redis.Exists(t.Context(), key, "asynq:{default}:archived").Val(); n != 0 {
		t.Error("the task is still there")
	}
	b.finds(seen, source.Gone)
}

func TestAsynq_TwentyReplaysAtOnceAreOne(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	b.race(b.record("order-4"))
}

func TestAsynq_DoesNotReplayWhatANewerTaskExcludes(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	r := b.record("order-2")
	lock := b.redis.HGet(t.Context(), "asynq:{orders}:t:order-2", "unique_key").Val()
	b.check(b.redis.Set(t.Context(), lock, "order-9", 0).Err())
	b.does(act(source.Replay, source.Once, r), source.Replaced)
	b.check(b.redis.Set(t.Context(), lock, "order-2", 0).Err())
	b.does(act(source.Discard, "", r), source.Done)
	if n := b.redis.Exists(t.Context(), lock).Val(); n != 0 {
		t.Error("the lock was kept")
	}
}

func TestAsynq_ShowsNamesWithoutATask(t *testing.T) {
	b := newBench(t, "asynq", asynqFile)
	b.check(b.redis.ZAdd(t.Context(), "asynq:{orders}:archived", redis.Z{Score: 1, Member: "lost\x00\xff"}).Err())
	var r source.Record
	for _, one := range b.all(100) {
		if len(one.Raw) == 0 {
			r = one
		}
	}
	if r.Key != `orders/"lost\x00\xff"` || len(r.Warnings) != 1 {
		t.Fatalf("%+v", r)
	}
	b.finds(r, source.Asked)
	b.does(act(source.Replay, source.Once, r), source.Refused)
	b.does(act(source.Discard, "", r), source.Done)
	b.finds(r, source.Gone)
}
