package redissource_test

import (
	"regexp"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

const rqFile = "rq/redis-commands.json"

var queuedAt = regexp.MustCompile(`("enqueued_at":)"[^"]+Z"`)

func TestRQ_ShowsItsFailedJobs(t *testing.T) {
	b := newBench(t, "rq", rqFile)
	b.golden("rq", recordsText(b.all(100)))
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if len(report.May) != 2 {
		t.Errorf("%+v", report)
	}
}

func TestRQ_ReplaysAsItsRequeueDoes(t *testing.T) {
	for _, mode := range []source.Mode{source.Once, source.Fresh} {
		b := newBench(t, "rq", rqFile)
		r := b.record("orders/order-2")
		b.finds(r, source.Asked)
		b.does(act(source.Replay, mode, r), source.Done)
		b.finds(r, source.Done)
		b.golden("rq-replayed", queuedAt.ReplaceAllString(
			redistest.Dump(t, b.redis, "rq:queue:orders", "rq:failed:orders", "rq:job:order-2"), `$1"NOW"`))
		if ttl := b.redis.TTL(t.Context(), "rq:job:order-2").Val(); ttl != -1 {
			t.Errorf("the queued job vanishes in %s", ttl)
		}
	}
}

func TestRQ_RefusesAJobThatDiedAgain(t *testing.T) {
	b := newBench(t, "rq", rqFile)
	seen := b.record("orders/order-1")
	b.check(b.redis.HSet(t.Context(), "rq:job:order-1", "ended_at", "2026-11-22T11:01:29.967326Z").Err())
	b.finds(seen, source.Changed)
	b.does(act(source.Replay, source.Once, seen), source.Changed)
	b.does(act(source.Discard, "", seen), source.Changed)
	b.does(act(source.Discard, "", b.record("orders/order-1")), source.Done)
	b.finds(seen, source.Gone)
	if n := b.redis.Exists(t.Context(), "rq:job:order-1", "rq:results:order-1").Val(); n != 0 {
		t.Error("the job is still there")
	}
}

func TestRQ_TwentyReplaysAtOnceAreOne(t *testing.T) {
	b := newBench(t, "rq", rqFile)
	b.race(b.record("json/order-3"))
}

func TestRQ_LeavesAJobOfAnotherQueueToRQ(t *testing.T) {
	b := newBench(t, "rq", rqFile)
	b.check(b.redis.HSet(t.Context(), "rq:job:order-1", "origin", "mail").Err())
	b.does(act(source.Replay, source.Once, b.record("orders/order-1")), source.Refused)
}
