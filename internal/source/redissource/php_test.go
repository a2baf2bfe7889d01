package redissource_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/redissource/redistest"
)

const (
	daycryFile = "daycry-jobs/redis-commands.json"
	yiiFile    = "yii2-queue/redis-commands.json"
)

func TestDaycry_ShowsItsDeadLetterQueue(t *testing.T) {
	b := newBench(t, "daycry-redis", daycryFile)
	b.golden("daycry", recordsText(b.all(100)))
}

func TestDaycry_ReplaysToTheQueueThatTheJobNames(t *testing.T) {
	b := newBench(t, "daycry-redis", daycryFile)
	named := b.all(100)[0]
	b.finds(named, source.Asked)
	b.does(act(source.Replay, source.Once, named), source.Done)
	b.finds(named, source.Gone)
	b.does(act(source.Replay, source.Once, named), source.Gone)
	b.golden("daycry-replayed", redistest.Dump(t, b.redis, "jobs:orders-waiting", "jobs:dead-waiting"))
}

// TestDaycry_AsksForAQueueWhereNothingNamesIt has a job of which only the configuration
// can tell where it goes.
func TestDaycry_AsksForAQueueWhereNothingNamesIt(t *testing.T) {
	b := newBench(t, "daycry-redis", daycryFile)
	nameless := b.all(100)[1]
	if r := b.does(act(source.Replay, source.Once, nameless), source.Refused); !strings.Contains(r.Why, "default_queue") {
		t.Errorf("%q", r.Why)
	}
	o, err := redissource.Open(t.Context(), redistest.URL(b.redis), b.preset, preset.Settings{Names: map[string]string{"default_queue": "mail"}})
	b.check(err)
	defer o.Close()
	b.origin = o
	if nameless = b.all(100)[1]; nameless.Queue != "mail" {
		t.Errorf("it goes to %q", nameless.Queue)
	}
	b.does(act(source.Replay, source.Once, nameless), source.Done)
	if got := b.redis.LRange(t.Context(), "jobs:mail-waiting", 0, -1).Val(); len(got) != 1 || !strings.Contains(got[0], `"queue":"mail"`) {
		t.Errorf("%q", got)
	}
}

// A worker of daycry/jobs takes a job out of its list, and loses it when it cannot read it.
func TestDaycry_RefusesAJobThatPHPCannotRead(t *testing.T) {
	b := newBench(t, "daycry-redis", daycryFile)
	const head = `{"id":"1","time":1795206827,"data":{"job":"mail","queue":"dead","payload":{"_dlq_metadata":{"original_queue":"mail"},"n":`
	for name, body := range map[string]string{
		"half a character": `"\ud800"}}}`, "half a character around it": `1}},"note":"\udc00"}`,
		"too deep": strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}}}`, "cut": `1}}`,
	} {
		b.check(b.redis.Del(t.Context(), "jobs:dead-waiting").Err())
		b.check(b.redis.LPush(t.Context(), "jobs:dead-waiting", head+body).Err())
		r := b.all(100)[0]
		if got := b.does(act(source.Replay, source.Once, r), source.Refused); !strings.Contains(got.Why, "would lose the job") {
			t.Errorf("%s: %q", name, got.Why)
		}
		if len(r.Warnings) == 0 || b.redis.LLen(t.Context(), "jobs:dead-waiting").Val() != 1 || b.redis.Exists(t.Context(), "jobs:mail-waiting").Val() != 0 {
			t.Errorf("%s: warnings %q", name, r.Warnings)
		}
	}
}

func TestDaycry_TwentyReplaysAtOnceAreOne(t *testing.T) {
	b := newBench(t, "daycry-redis", daycryFile)
	b.race(b.all(100)[0])
}

// keepFailed does what the listener of the documents does to a job that failed permanently.
func keepFailed(b *bench, id string) {
	b.Helper()
	ctx := b.Context()
	message, err := b.redis.HGet(ctx, "queue.messages", id).Result()
	b.check(err)
	b.check(b.redis.HSet(ctx, "queue.failed."+id, "message", message, "attempt", b.redis.HGet(ctx, "queue.attempts", id).Val(),
		"exception", "RuntimeException", "error", "Payment gateway timeout", "failed_at", "1795206827.250000").Err())
	b.check(b.redis.ZAdd(ctx, "queue.failed", redis.Z{Score: 1795206827.25, Member: id}).Err())
	b.check(b.redis.ZRem(ctx, "queue.reserved", id).Err()) // and this is what yii2-queue does then
	b.check(b.redis.HDel(ctx, "queue.attempts", id).Err())
	b.check(b.redis.HDel(ctx, "queue.messages", id).Err())
}

func TestYii_ShowsWhatItsListenerKeeps(t *testing.T) {
	b := newBench(t, "yii2-redis", yiiFile)
	keepFailed(b, "1")
	b.golden("yii2", recordsText(b.all(100)))
}

func TestYii_PushesTheJobAgainAsANewOne(t *testing.T) {
	b := newBench(t, "yii2-redis", yiiFile)
	keepFailed(b, "1")
	r := b.all(100)[0]
	b.finds(r, source.Asked)
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.finds(r, source.Gone)
	b.does(act(source.Discard, "", r), source.Gone)
	b.golden("yii2-replayed", redistest.Dump(t, b.redis, "queue.failed", "queue.failed.1", "queue.message_id", "queue.messages", "queue.waiting"))
}

func TestYii_ChangesOnlyWhatWasSeen(t *testing.T) {
	b := newBench(t, "yii2-redis", yiiFile)
	keepFailed(b, "1")
	r := b.all(100)[0]
	b.check(b.redis.HSet(t.Context(), "queue.failed.1", "failed_at", "1795206999.000000").Err())
	b.finds(r, source.Changed)
	b.does(act(source.Replay, source.Once, r), source.Changed)
	b.does(act(source.Discard, "", r), source.Changed)
	b.does(act(source.Discard, "", b.all(100)[0]), source.Done)
	if n := b.redis.Exists(t.Context(), "queue.failed", "queue.failed.1").Val(); n != 0 {
		t.Error("the record is still there")
	}
}

func TestYii_TwentyReplaysAtOnceAreOne(t *testing.T) {
	b := newBench(t, "yii2-redis", yiiFile)
	keepFailed(b, "1")
	b.race(b.all(100)[0])
}

func TestYii_RefusesAReplayThatItsWorkersCannotRead(t *testing.T) {
	b := newBench(t, "yii2-redis", yiiFile)
	keepFailed(b, "1")
	message := b.redis.HGet(t.Context(), "queue.failed.1", "message").Val()
	for _, poison := range []string{"", "300", "300;", "300;garbage", ";" + message, "soon;" + message, "-1" + message, message[:len(message)-1], `300;{"class":`, "300;[]"} {
		b.check(b.redis.HSet(t.Context(), "queue.failed.1", "message", poison).Err())
		before := redistest.Dump(t, b.redis, "queue.failed", "queue.failed.1", "queue.message_id", "queue.messages", "queue.waiting")
		r := b.all(100)[0]
		got := b.does(act(source.Replay, source.Once, r), source.Refused)
		if !strings.Contains(got.Why, "a worker of yii2-queue could not read it") || !strings.Contains(strings.Join(r.Warnings, "\n"), "It cannot be replayed: ") {
			t.Errorf("%q: %q, and warns %q", poison, got.Why, r.Warnings)
		}
		if redistest.Dump(t, b.redis, "queue.failed", "queue.failed.1", "queue.message_id", "queue.messages", "queue.waiting") != before {
			t.Errorf("%q: something has changed", poison)
		}
	}
	b.check(b.redis.HSet(t.Context(), "queue.failed.1", "message", `300;{"class":"app\\jobs\\ChargeJob"}`).Err())
	b.does(act(source.Replay, source.Once, b.all(100)[0]), source.Done)
}

func TestInitPHP_RefusesAReplayThatItsWorkersCannotRead(t *testing.T) {
	b := newBench(t, "initphp-redis", "initphp-queue/redis-dump.json")
	for _, poison := range []string{`{"job":"urn:p","data":{"n":"\ud800"}}`, "{\"job\":\"urn:p\",\"data\":[\"caf\xe9\"]}", `{"job":"urn:p","data":{}`} {
		b.check(b.redis.Del(t.Context(), "orders:failed").Err())
		b.check(b.redis.RPush(t.Context(), "orders:failed", poison).Err())
		r := b.all(100)[0]
		got := b.does(act(source.Replay, source.Once, r), source.Refused)
		if !strings.Contains(got.Why, "a worker of InitPHP Queue would lose it") || !strings.Contains(strings.Join(r.Warnings, "\n"), "It cannot be replayed: ") {
			t.Errorf("%q: %q, and warns %q", poison, got.Why, r.Warnings)
		}
	}
}
