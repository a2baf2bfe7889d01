package redissource_test

import (
	"fmt"
	"testing"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource/redistest"
)

// newOwn opens keys that redrive.yaml describes, in a Redis with these records.
func newOwn(t *testing.T, names map[string]string, commands ...[]any) *bench {
	b := &bench{T: t, redis: redistest.Start(t), preset: preset.All()["keys"], settings: preset.Settings{Names: names}}
	for _, c := range commands {
		b.check(b.redis.Do(t.Context(), c...).Err())
	}
	b.origin = b.open()
	return b
}

const ownJob = `{"id":"7","job":"mail.send","to":"orders","body":{"n":1.0,"big":12345678901234567890},"tries":3,"why":"refused","died":1795206827}`

// owns are systems that people made on their own.
var owns = map[string]struct {
	names    map[string]string
	commands [][]any
	keys     []string // that an act can change
}{
	"list-of-json": {
		map[string]string{
			"list": "{queue}:dead", "work": "{queue}", "thread": "id", "type": "job", "payload": "body", "attempts": "tries", "error": "why",
			"failed_at": "died",
		},
		[][]any{{"RPUSH", "mail:dead", ownJob}, {"RPUSH", "mail", "first"}, {"SET", "other:dead", "x"}},
		[]string{"mail", "mail:dead"},
	},
	"list-newest-first": {
		map[string]string{"list": "dead", "newest": "first", "work": "work:{queue}", "push": "left", "queue": "to", "payload": "body", "attempts": "tries"},
		[][]any{{"LPUSH", "dead", `{"to":"a","body":1}`, ownJob}, {"RPUSH", "work:orders", "first"}},
		[]string{"work:orders", "dead"},
	},
	"sorted-set-of-text": {
		map[string]string{"sorted_set": "dead", "work": "work", "default_queue": "main"},
		[][]any{{"ZADD", "dead", "1", "older", "2", "no JSON"}},
		[]string{"work", "dead"},
	},
	"sorted-set-of-hashes": {
		map[string]string{
			"sorted_set": "dead:{queue}", "hash": "job:{queue}:{id}", "work": "work:{queue}", "witness": "died", "payload": "body", "type": "job",
			"error": "why", "attempts": "tries", "failed_at": "died", "created_at": "made",
		},
		[][]any{
			{"ZADD", "dead:mail", "1", "7"},
			{"HSET", "job:mail:7", "body", `{"n":1}`, "job", "mail.send", "why", "refused", "tries", "3", "died", "2026-11-20 20:33:47", "made", "2026-11-20T20:00:00Z"},
		},
		[]string{"work:mail", "dead:mail", "job:mail:7"},
	},
}

func TestOwn_ShowsReplaysAndDiscards(t *testing.T) {
	for name, tt := range owns {
		t.Run(name, func(t *testing.T) {
			b := newOwn(t, tt.names, tt.commands...)
			report, err := b.origin.Check(t.Context())
			b.check(err)
			if len(report.May) != 2 {
				t.Errorf("%+v", report)
			}
			all := b.all(100)
			shown := recordsText(all)
			b.finds(all[0], source.Asked)
			b.does(act(source.Replay, source.Once, all[0]), source.Done)
			b.finds(all[0], source.Gone)
			b.does(act(source.Replay, source.Fresh, all[0]), source.Gone)
			b.golden("own-"+name, shown+redistest.Dump(t, b.redis, tt.keys...))

			b = newOwn(t, tt.names, tt.commands...)
			b.does(act(source.Discard, "", all[0]), source.Done)
			b.does(act(source.Discard, "", all[0]), source.Gone)
			b.race(b.again(tt.commands))
		})
	}
}

// again fills the Redis once more and returns the newest record.
func (b *bench) again(commands [][]any) source.Record {
	b.Helper()
	b.check(b.redis.FlushAll(b.Context()).Err())
	for _, c := range commands {
		b.check(b.redis.Do(b.Context(), c...).Err())
	}
	return b.all(100)[0]
}

func TestOwn_ChangesOnlyWhatWasSeen(t *testing.T) {
	tt := owns["sorted-set-of-hashes"]
	b := newOwn(t, tt.names, tt.commands...)
	seen := b.all(100)[0]
	b.check(b.redis.HSet(t.Context(), "job:mail:7", "died", "2026-11-21 08:00:00").Err())
	b.finds(seen, source.Changed)
	b.does(act(source.Replay, source.Once, seen), source.Changed)
	b.does(act(source.Discard, "", seen), source.Changed)
	b.check(b.redis.Del(t.Context(), "job:mail:7").Err())
	bare := b.all(100)[0]
	b.does(act(source.Replay, source.Once, bare), source.Refused)
	b.does(act(source.Discard, "", bare), source.Done)
}

// TestOwn_MeetsEveryRecordOfLargeLists has more records than a page.
func TestOwn_MeetsEveryRecordOfLargeLists(t *testing.T) {
	for _, newest := range []string{"first", "last"} {
		b := newOwn(t, map[string]string{"list": "{queue}.failed", "newest": newest})
		pipe := b.redis.Pipeline()
		for i := range 620 {
			pipe.RPush(t.Context(), "a.failed", fmt.Sprint("a", i))
			pipe.RPush(t.Context(), "b.failed", fmt.Sprint("b", i))
		}
		_, err := pipe.Exec(t.Context())
		b.check(err)
		met := map[string]bool{}
		for _, r := range b.all(100) {
			met[r.Key] = true
		}
		page, err := b.origin.Scan(t.Context(), "", 2)
		b.check(err)
		want := map[string]string{"first": "a0", "last": "a619"}[newest]
		if len(met) != 1240 || string(page.Records[0].Raw) != want {
			t.Errorf("newest %s: %d records, the first is %s", newest, len(met), page.Records[0].Raw)
		}
	}
}
