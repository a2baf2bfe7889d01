package redissource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
)

// archive fills an archive of asynq with so many tasks.
func (b *bench) archive(queue string, n int) {
	b.Helper()
	b.archiveIn(b.redis, queue, n)
}

func (b *bench) archiveIn(c redis.UniversalClient, queue string, n int) {
	b.Helper()
	pipe := c.Pipeline()
	pipe.SAdd(b.Context(), "asynq:queues", queue)
	for i := range n {
		id := fmt.Sprintf("%s-%05d", queue, i)
		pipe.ZAdd(b.Context(), "asynq:{"+queue+"}:archived", redis.Z{Score: float64(i / 10), Member: id})
		pipe.HSet(b.Context(), "asynq:{"+queue+"}:t:"+id, "msg", "\x0a\x01t", "state", "archived")
	}
	_, err := pipe.Exec(b.Context())
	b.check(err)
}

func TestScan_MeetsEveryRecordInPagesOfAnySize(t *testing.T) {
	b := newBench(t, "asynq")
	for queue, n := range map[string]int{"a": 1, "b": 1203, "c": 0, "d": 77, "e": 500} {
		b.archive(queue, n)
	}
	for _, limit := range []int{7, 50, 500, 5000} {
		met := map[string]bool{}
		for _, r := range b.all(limit) {
			met[r.Key] = true
		}
		if len(met) != 1203+77+500+1 {
			t.Errorf("%d records in pages of %d", len(met), limit)
		}
	}
}

func TestScan_BeginsWithTheNewestOfEveryQueue(t *testing.T) {
	b := newBench(t, "asynq")
	b.archive("large", 1000)
	b.archive("small", 3)
	page, err := b.origin.Scan(t.Context(), "", 100)
	b.check(err)
	has := func(key string) bool {
		return slices.ContainsFunc(page.Records, func(r source.Record) bool { return r.Key == key })
	}
	if !has("large/large-00999") || !has("small/small-00002") || page.Next == "" {
		t.Errorf("%d records, next %q", len(page.Records), page.Next)
	}
}

// newest reads pages from the beginning for as long as they bring records that were not met
// before, and returns how many it met.
func (b *bench) newest(met map[string]bool) (changes int) {
	b.Helper()
	for after, more := "", true; more; {
		page, err := b.origin.Scan(b.Context(), after, 500)
		b.check(err)
		before := len(met)
		for _, r := range page.Records {
			met[r.Key] = true
		}
		changes += len(met) - before
		after, more = page.Next, len(met) > before && page.Next != ""
	}
	return changes
}

// A thousand new records of one queue are seen at once, although another queue has many old
// ones: also when what was the newest record has left, and in an archive that is cut.
func TestScan_MeetsABurstInOneOfSeveralQueuesAtOnce(t *testing.T) {
	b := newBench(t, "asynq")
	b.archive("a", 3000)
	b.archive("z", 100)
	met := map[string]bool{}
	for _, r := range b.all(500) {
		met[r.Key] = true
	}
	b.archive("z", 1100)
	if n := b.newest(met); n != 1000 {
		t.Errorf("%d of 1000 new records were met", n)
	}
	b.archive("z", 2100)
	b.check(b.redis.ZRem(t.Context(), "asynq:{z}:archived", "z-01099").Err())
	b.check(b.redis.ZRemRangeByRank(t.Context(), "asynq:{z}:archived", 0, 999).Err())
	if n := b.newest(met); n != 1000 {
		t.Errorf("%d of 1000 new records were met in an archive as large as before", n)
	}
	if n := b.newest(met); n != 0 {
		t.Errorf("%d records are new although none came", n)
	}
}

// A burst into a queue that was empty, or that there was not, is seen at once, also when the
// newest records of another queue have left at each look.
func TestScan_MeetsABurstInAnEmptyQueueBesideOneThatIsWorkedOff(t *testing.T) {
	b := newBench(t, "asynq")
	b.archive("a", 3000)
	b.archive("empty", 0)
	met := map[string]bool{}
	b.newest(met)
	for _, r := range b.all(500) {
		met[r.Key] = true
	}
	for i, queue := range []string{"empty", "newly"} {
		b.check(b.redis.ZRemRangeByRank(t.Context(), "asynq:{a}:archived", -60, -1).Err())
		b.archive(queue, 1000)
		if n := b.newest(met); n != 1000 {
			t.Errorf("look %d: %d of 1000 new records of %s were met", i, n, queue)
		}
	}
}

// A quiet look at a queue whose records are so large that its share takes several pages reads
// no more than the share.
func TestScan_AQuietLookReadsItsShare(t *testing.T) {
	b := newBench(t, "babelqueue-redis")
	pipe := b.redis.Pipeline()
	for i := range 1200 {
		pipe.RPush(t.Context(), "orders.dlq", fmt.Sprintf(`{"job":"a","data":"%d %s"}`, i, strings.Repeat("x", 60_000)))
	}
	_, err := pipe.Exec(t.Context())
	b.check(err)
	for look := range 2 {
		records, after := 0, ""
		for page := 0; page == 0 || strings.HasSuffix(after, "500"); page++ { // within the first level
			p, err := b.origin.Scan(t.Context(), after, 500)
			b.check(err)
			records, after = records+len(p.Records), p.Next
		}
		if records != 500 || !strings.HasSuffix(after, "\n0\n0\n0") {
			t.Errorf("look %d reads %d records and goes on at %q", look, records, after)
		}
	}
}

func TestScan_GoesOnWithANewConnection(t *testing.T) {
	b := newBench(t, "asynq")
	b.archive("a", 120)
	page, err := b.origin.Scan(t.Context(), "", 100)
	b.check(err)
	page, err = b.open().Scan(t.Context(), page.Next, 100)
	b.check(err)
	rest, err := b.open().Scan(t.Context(), page.Next, 100)
	b.check(err)
	if len(page.Records) != 100 || len(rest.Records) != 20 || rest.Next != "" {
		t.Errorf("%d and %d records", len(page.Records), len(rest.Records))
	}
	b.archive("b", 120)
	page, err = b.origin.Scan(t.Context(), "", 1)
	b.check(err)
	page, err = b.open().Scan(t.Context(), page.Next, 1)
	b.check(err)
	if len(page.Records) != 1 || page.Records[0].Key != "b/b-00119" {
		t.Errorf("the newest record of the second queue is not met: %+v", page.Records)
	}
}

func TestScan_FindsQueuesAmongManyKeys(t *testing.T) {
	b := newBench(t, "babelqueue-redis")
	pipe := b.redis.Pipeline()
	for i := range 30000 {
		pipe.Set(t.Context(), fmt.Sprintf("other:%d.dlq", i), "", 0) // of another type
	}
	pipe.RPush(t.Context(), "orders.dlq", `{"job":"a","data":{}}`)
	_, err := pipe.Exec(t.Context())
	b.check(err)
	if all := b.all(10); len(all) == 0 || all[0].Queue != "orders" {
		t.Fatalf("%+v", all)
	}
	b.check(b.redis.RPush(t.Context(), "mail.dlq", `{"job":"b","data":{}}`).Err())
	for range 10 {
		if all := b.all(10); len(all) == 2 && all[0].Queue == "mail" {
			return
		}
	}
	t.Error("a new queue is not found")
}

// TestScan_ChangesNothing reads with a user who may only read, and compares all data
// before and after.
func TestScan_ChangesNothing(t *testing.T) {
	for name, file := range genuine {
		b := newBench(t, name, file)
		b.check(b.redis.Do(t.Context(), slices.Concat([]any{"ACL", "SETUSER", "reader", "on", ">secret", "resetkeys"}, granted(b.preset, "look"))...).Err())
		b.origin = b.as("reader")
		before := b.everything()
		report, err := b.origin.Check(t.Context())
		b.check(err)
		all := b.all(100)
		for _, r := range all {
			b.finds(r, source.Asked)
		}
		if len(all) == 0 || len(report.May) != 0 || b.everything() != before {
			t.Errorf("%s: %d records, may %v, before:\n%q\nafter:\n%q", name, len(all), report.May, before, b.everything())
		}
		if r := b.does(act(source.Discard, "", all[0]), source.Refused); !strings.HasPrefix(r.Why, "NOPERM") {
			t.Errorf("%s: %s", name, r.Why)
		}
	}
}
