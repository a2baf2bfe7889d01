package redissource_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

const sidekiqFile = "sidekiq/redis-commands.json"

// stamps takes the moment of a replay out of a job.
var stamps = regexp.MustCompile(`(enqueued_at\\":)[0-9.]+`)

func TestSidekiq_ShowsItsDeadSet(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	b.golden("sidekiq", recordsText(b.all(100)))
	report, err := b.origin.Check(t.Context())
	b.check(err)
	if len(report.May) != 2 || report.Sees[1] != "3 dead letters in the key dead" {
		t.Errorf("%+v", report)
	}
}

func TestSidekiq_ReplaysAsItsButtonDoes(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	r := b.record("84aa00c0b4f43ea65f51a423")
	b.finds(r, source.Asked)
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.finds(r, source.Gone)
	b.golden("sidekiq-once", stamps.ReplaceAllString(redistest.Dump(t, b.redis, "queues", "queue:orders"), "${1}NOW"))
	if n := b.redis.ZCard(t.Context(), "dead").Val(); n != 2 {
		t.Errorf("%d jobs are dead", n)
	}
}

func TestSidekiq_ReplaysWithFreshRetries(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	b.does(act(source.Replay, source.Fresh, b.record("a99b0320d762724bf4ba6b57")), source.Done)
	b.golden("sidekiq-fresh", stamps.ReplaceAllString(redistest.Dump(t, b.redis, "queue:orders"), "${1}NOW"))
}

func TestSidekiq_KnowsAJobByItsBytes(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	seen := b.record("1590ce296c3f9fae6c31b07e")
	again := bytes.Replace(seen.Raw, []byte(`"retry_count":0`), []byte(`"retry_count":1`), 1)
	b.check(b.redis.ZRem(t.Context(), "dead", seen.Raw).Err())
	b.check(b.redis.ZAdd(t.Context(), "dead", redis.Z{Score: 1795344099.5, Member: again}).Err())
	b.finds(seen, source.Gone)
	b.does(act(source.Replay, source.Once, seen), source.Gone)
	b.does(act(source.Discard, "", seen), source.Gone)
	now := b.record("1590ce296c3f9fae6c31b07e")
	if now.Key == seen.Key || now.Lineage != seen.Lineage {
		t.Errorf("it died again: %s of %s was %s of %s", now.Key, now.Lineage, seen.Key, seen.Lineage)
	}
	b.does(act(source.Discard, "", now), source.Done)
	if n := b.redis.ZCard(t.Context(), "dead").Val(); n != 2 {
		t.Errorf("%d jobs are dead", n)
	}
}

func TestSidekiq_TwentyReplaysAtOnceAreOne(t *testing.T) {
	b := newBench(t, "sidekiq", sidekiqFile)
	b.race(b.record("84aa00c0b4f43ea65f51a423"))
	if n := b.redis.LLen(t.Context(), "queue:orders").Val(); n != 1 {
		t.Errorf("%d jobs in the queue", n)
	}
}

func TestSidekiq_ShowsRawWhatItCannotRead(t *testing.T) {
	b := newBench(t, "sidekiq")
	for i, member := range []string{"\x00\xff not JSON", `{"queue":"a","queue":"b"}`, `["an array"]`, `{"class":"NoQueue","args":[]}`} {
		b.check(b.redis.ZAdd(t.Context(), "dead", redis.Z{Score: float64(i), Member: member}).Err())
	}
	all := b.all(2)
	if len(all) != 4+2 { // the first page of two comes again in the pass
		t.Fatalf("%d records", len(all))
	}
	for _, r := range all {
		if r.Type != "NoQueue" && (len(r.Warnings) != 1 || !bytes.Equal(r.Payload, r.Raw)) {
			t.Errorf("%+v", r)
		}
		b.does(act(source.Replay, source.Once, r), source.Refused)
	}
	b.does(act(source.Discard, "", all[3]), source.Done)
	if n := b.redis.ZCard(t.Context(), "dead").Val(); n != 3 {
		t.Errorf("%d jobs are dead", n)
	}
}

func TestSidekiq_RefusesAnotherSystem(t *testing.T) {
	b := newBench(t, "sidekiq")
	b.check(b.redis.RPush(t.Context(), "dead", "x").Err())
	_, err := b.origin.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), "expected the key dead to be a zset, and found a list") {
		t.Error(err)
	}
}
