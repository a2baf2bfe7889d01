package redissource_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
)

// keepers are the systems that keep what has succeeded: a record of each, and the sorted set
// to which its worker adds the job.
var keepers = []struct{ preset, file, record, set, id string }{
	{"bullmq", bull5File, "orders/1", "bull:orders:completed", "1"},
	{"bullmq", bull6File, "orders/1", "bull:orders:completed", "1"},
	{"asynq", asynqFile, "order-1", "asynq:{orders}:completed", "order-1"},
}

// succeeded are the keys of those records that have succeeded.
func (b *bench) succeeded(records ...source.Record) (keys string) {
	b.Helper()
	var returned []source.ReplayedJob
	for _, r := range records {
		returned = append(returned, source.ReplayedJob{Record: source.Record{Key: r.Key, Lineage: r.Lineage, Place: r.Place}})
	}
	all, err := b.origin.Succeeded(b.Context(), returned)
	b.check(err)
	for _, s := range all {
		keys += s.Key + " "
	}
	return keys
}

func TestSucceeded_TellsWhatTheSystemKeeps(t *testing.T) {
	for _, k := range keepers {
		b := newBench(t, k.preset, k.file)
		rules := append([]any{"ACL", "SETUSER", "op", "on", ">secret", "resetkeys"}, granted(b.preset, "look")...)
		b.check(b.redis.Do(t.Context(), append(rules, granted(b.preset, "replay")...)...).Err())
		b.origin = b.as("op")
		report, err := b.origin.Check(t.Context())
		b.check(err)
		if !report.Tells {
			t.Errorf("%s: %+v", k.file, report)
		}
		dead, r := b.all(100), b.record(k.record)
		if got := b.succeeded(dead...); got != "" {
			t.Errorf("%s: dead: %s", k.file, got)
		}
		b.does(act(source.Replay, source.Once, r), source.Done)
		if got := b.succeeded(dead...); got != "" {
			t.Errorf("%s: replayed: %s", k.file, got)
		}
		b.check(b.redis.ZAdd(t.Context(), k.set, redis.Z{Score: 1795344263750, Member: k.id}).Err())
		if got := b.succeeded(dead...); got != r.Key+" " {
			t.Errorf("%s: finished: %q", k.file, got)
		}
	}
}

// TestSucceeded_IsNoConditionForTheRest: a user who may not read successes sees the dead
// letters and replays them.
func TestSucceeded_IsNoConditionForTheRest(t *testing.T) {
	for _, k := range keepers {
		b := newBench(t, k.preset, k.file)
		b.check(b.redis.Do(t.Context(), "ACL", "SETUSER", "op", "on", ">secret", "resetkeys", "~bull:*:[^c]*", "~asynq:{*}:[^c]*",
			"~asynq:queues", "+@all").Err())
		b.origin = b.as("op")
		report, err := b.origin.Check(t.Context())
		b.check(err)
		if report.Tells || !strings.Contains(strings.Join(report.Warnings, " "), "Redrive cannot read which replayed jobs have succeeded: NOPERM") {
			t.Errorf("%s: %+v", k.file, report)
		}
		b.does(act(source.Replay, source.Once, b.record(k.record)), source.Done)
	}
}
