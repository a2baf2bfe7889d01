package redissource_test

import (
	"strings"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

const (
	initphpFile = "initphp-queue/redis-dump.json"
	babelFile   = "babelqueue-go/redis-dump.json"
)

func TestInitPHP_ShowsItsFailedLists(t *testing.T) {
	b := newBench(t, "initphp-redis", initphpFile)
	b.golden("initphp", recordsText(b.all(100)))
	if got := b.all(3); len(got) < 12 {
		t.Errorf("%d records in pages of three", len(got))
	}
}

func TestInitPHP_ReplaysFromTheBeginning(t *testing.T) {
	for _, mode := range []source.Mode{source.Once, source.Fresh} {
		b := newBench(t, "initphp-redis", initphpFile)
		r := b.record("orders/29bb2cf0-b735-4da2-91bf-11d3fe2a7c87")
		b.finds(r, source.Asked)
		b.does(act(source.Replay, mode, r), source.Done)
		b.finds(r, source.Gone)
		b.golden("initphp-replayed", redistest.Dump(t, b.redis, "orders", "orders:failed"))
	}
}

func TestInitPHP_TakesAFrameApartThatItsWorkerDoesNotKnow(t *testing.T) {
	b := newBench(t, "initphp-redis")
	b.check(b.redis.RPush(t.Context(), "orders:failed", `{"__bq_frame":1,"headers":{"traceparent":"00-1"},"body":"{\"job\":\"urn:a\",\"trace_id\":\"t\",\"data\":{\"n\":1.0},\"meta\":{\"id\":\"m\",\"schema_version\":1},\"attempts\":2}","attempts":0,"dead_letter":{"reason":"missing_urn","error":null,"exception":null,"failed_at":1795206566270,"original_queue":"orders","attempts":0,"lang":"php"}}`).Err())
	r := b.record("orders/m")
	b.golden("initphp-frame", recordsText([]source.Record{r}))
	b.does(act(source.Replay, source.Once, r), source.Done)
	const want = `{"job":"urn:a","trace_id":"t","data":{"n":1.0},"meta":{"id":"m","schema_version":1},"attempts":0}`
	if got := b.redis.LRange(t.Context(), "orders", 0, -1).Val(); len(got) != 1 || got[0] != want {
		t.Errorf("%s", got)
	}
}

func TestInitPHP_RefusesWhatHasLostItsBody(t *testing.T) {
	b := newBench(t, "initphp-redis", initphpFile)
	for _, r := range b.all(100) {
		if r.Queue == "q4" {
			b.does(act(source.Replay, source.Once, r), source.Refused)
			b.does(act(source.Discard, "", r), source.Done)
			return
		}
	}
	t.Error("no record in q4")
}

func TestInitPHP_KnowsAMessageByItsBytes(t *testing.T) {
	b := newBench(t, "initphp-redis", initphpFile)
	seen := b.record("orders/29bb2cf0-b735-4da2-91bf-11d3fe2a7c87")
	b.check(b.redis.LSet(t.Context(), "orders:failed", 0, strings.Replace(string(seen.Raw), `"failed_at":1`, `"failed_at":2`, 1)).Err())
	b.finds(seen, source.Gone)
	b.does(act(source.Replay, source.Once, seen), source.Gone)
	b.does(act(source.Discard, "", seen), source.Gone)
	if n := b.redis.LLen(t.Context(), "orders").Val(); n != 0 {
		t.Error("it was replayed")
	}
}

func TestInitPHP_TwentyReplaysAtOnceAreOne(t *testing.T) {
	b := newBench(t, "initphp-redis", initphpFile)
	b.race(b.record("orders/29bb2cf0-b735-4da2-91bf-11d3fe2a7c87"))
	if n := b.redis.LLen(t.Context(), "orders").Val(); n != 1 {
		t.Errorf("%d messages in the queue", n)
	}
}

func TestInitPHP_TheSameBytesTwiceAreOneRecord(t *testing.T) {
	b := newBench(t, "initphp-redis")
	b.check(b.redis.RPush(t.Context(), "a:failed", `{"job":"x","data":{}}`, `{"job":"x","data":{}}`).Err())
	all := b.all(100)
	if len(all) != 1 {
		t.Fatalf("%d records", len(all))
	}
	b.does(act(source.Replay, source.Once, all[0]), source.Done)
	b.finds(all[0], source.Asked)
}

func TestBabelQueue_ShowsItsDeadLetterLists(t *testing.T) {
	b := newBench(t, "babelqueue-redis", babelFile)
	b.golden("babelqueue", recordsText(b.all(100)))
}

func TestBabelQueue_ReplaysFromTheBeginning(t *testing.T) {
	b := newBench(t, "babelqueue-redis", babelFile)
	r := b.record("orders/3497fa84-e5bd-4a59-bd78-39ffeda38c7c")
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.golden("babelqueue-replayed", redistest.Dump(t, b.redis, "orders", "orders.dlq"))
}

func TestBabelQueue_KeepsTheFrame(t *testing.T) {
	b := newBench(t, "babelqueue-redis", babelFile)
	framed := b.redis.LRange(t.Context(), "q9", 0, 0).Val()[0]
	dead := strings.Replace(framed, `\"attempts\":0}`, `\"attempts\":3,\"dead_letter\":{\"reason\":\"failed\",\"error\":\"boom\",\"failed_at\":1795206328516,\"original_queue\":\"q9\",\"attempts\":3}}`, 1)
	b.check(b.redis.RPush(t.Context(), "q9.dlq", dead).Err())
	b.check(b.redis.Del(t.Context(), "q9").Err())
	r := b.record("q9/a59491b4-f84d-468d-992a-3ced29dcbc47")
	b.golden("babelqueue-frame", recordsText([]source.Record{r}))
	b.does(act(source.Replay, source.Fresh, r), source.Done)
	if got := b.redis.LRange(t.Context(), "q9", 0, -1).Val(); len(got) != 1 || got[0] != framed {
		t.Errorf("%s, not %s", got, framed)
	}
	b.does(act(source.Discard, "", r), source.Gone)
}
