package redissource_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/redissource/redistest"
)

const (
	bull5File = "bullmq/redis-commands-v5.json"
	bull6File = "bullmq/redis-commands-v6.json"
)

// bullState writes what a replay leaves behind of a job.
func (b *bench) bullState(id string) string {
	b.Helper()
	q := "bull:orders:"
	state := redistest.Dump(b.T, b.redis, q+"wait", q+"paused", q+"marker", q+id)
	last := b.redis.XRevRangeN(b.Context(), q+"events", "+", "-", 1).Val()
	if len(last) != 1 || last[0].Values["event"] != "waiting" || last[0].Values["jobId"] != id {
		b.Errorf("the last event is %v", last)
	}
	return state
}

func TestBullMQ_ShowsItsFailedJobs(t *testing.T) {
	for version, file := range map[string]string{"5": bull5File, "6": bull6File} {
		b := newBench(t, "bullmq", file)
		b.golden("bullmq-"+version, recordsText(b.all(100)))
		report, err := b.origin.Check(t.Context())
		b.check(err)
		if len(report.May) != 2 || !strings.HasPrefix(report.Version, "bullmq:"+version) {
			t.Errorf("%+v", report)
		}
	}
}

// A page whose errors are large ends early, although its payloads are small.
func TestBullMQ_APageEndsWhenItsErrorsAreLarge(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	long := strings.Repeat("declined ", 40_000)
	const n = 60
	for i := range n {
		id := fmt.Sprint("large-", i)
		b.check(b.redis.HSet(t.Context(), "bull:orders:"+id, "name", "charge", "data", "{}", "failedReason", long).Err())
		b.check(b.redis.ZAdd(t.Context(), "bull:orders:failed", redis.Z{Score: 2e12 + float64(i), Member: id}).Err())
	}
	page, err := b.origin.Scan(t.Context(), "", 500)
	b.check(err)
	if len(page.Records) >= n || page.Next == "" {
		t.Errorf("%d records of %d bytes each in a page, and after it %q", len(page.Records), len(long), page.Next)
	}
}

func TestBullMQ_ReplaysAsItsButtonDoes(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	r := b.record("orders/1")
	b.finds(r, source.Asked)
	b.does(act(source.Replay, source.Once, r), source.Done)
	b.finds(r, source.Done)
	b.golden("bullmq-once", b.bullState("1"))
}

func TestBullMQ_ReplaysWithFreshAttempts(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	b.does(act(source.Replay, source.Fresh, b.record("orders/1")), source.Done)
	b.golden("bullmq-fresh", b.bullState("1"))
}

func TestBullMQ_APausedQueueKeepsTheJobWhereItsVersionDoes(t *testing.T) {
	for file, list := range map[string]string{bull5File: "bull:orders:paused", bull6File: "bull:orders:wait"} {
		b := newBench(t, "bullmq", file)
		b.check(b.redis.HSet(t.Context(), "bull:orders:meta", "paused", "1").Err())
		b.does(act(source.Replay, source.Once, b.record("orders/4")), source.Done)
		if got := b.redis.LRange(t.Context(), list, 0, -1).Val(); len(got) != 1 || got[0] != "4" {
			t.Errorf("%s: %v in %s", file, got, list)
		}
		if b.redis.Exists(t.Context(), "bull:orders:marker").Val() != 0 {
			t.Error("a worker of a paused queue was woken")
		}
	}
}

func TestBullMQ_PutsALastInFirstOutJobAtTheHead(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	b.check(b.redis.HSet(t.Context(), "bull:orders:4", "opts", `{"lifo":true}`).Err())
	b.check(b.redis.LPush(t.Context(), "bull:orders:wait", "other").Err())
	b.does(act(source.Replay, source.Once, b.record("orders/4")), source.Done)
	if got := b.redis.LRange(t.Context(), "bull:orders:wait", 0, -1).Val(); got[len(got)-1] != "4" {
		t.Errorf("%v", got)
	}
}

func TestBullMQ_LeavesTheDiscardOfAChildToBullMQ(t *testing.T) {
	b := newBench(t, "bullmq", bull5File)
	child := b.record("orders/a119a585-83d5-4d33-bfa8-a100cc0191a9")
	b.does(act(source.Discard, "", child), source.Refused)
	b.does(act(source.Replay, source.Once, child), source.Done)
	parent := "bull:orders:ffb6664c-c55b-4726-a033-c9a9a5eda36f:dependencies"
	if got := b.redis.SMembers(t.Context(), parent).Val(); len(got) != 1 || got[0] != "bull:orders:a119a585-83d5-4d33-bfa8-a100cc0191a9" {
		t.Errorf("the parent waits for %v", got)
	}
}

func TestBullMQ_RefusesAJobThatDiedAgain(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	seen := b.record("orders/1")
	b.check(b.redis.HSet(t.Context(), "bull:orders:1", "finishedOn", "1795344263750").Err())
	b.finds(seen, source.Changed)
	b.does(act(source.Replay, source.Once, seen), source.Changed)
	b.does(act(source.Discard, "", seen), source.Changed)
	b.does(act(source.Discard, "", b.record("orders/1")), source.Done)
	b.finds(seen, source.Gone)
	if n := b.redis.Exists(t.Context(), "bull:orders:1").Val(); n != 0 {
		t.Error("the hash is still there")
	}
}

// A hash that is as it was when the job failed, and in no list, is left over: the job is not
// under way. One that ran and ended since has another time of its end.
func TestBullMQ_KnowsWhatIsLeftOverFromWhatRan(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	r := b.record("orders/1")
	b.check(b.redis.ZRem(t.Context(), "bull:orders:failed", "1").Err())
	b.finds(r, source.Gone)
	b.check(b.redis.HSet(t.Context(), "bull:orders:1", "finishedOn", "1795344263750").Err())
	b.finds(r, source.Done)
	b.check(b.redis.HDel(t.Context(), "bull:orders:1", "finishedOn").Err())
	b.finds(r, source.Done)
}

func TestBullMQ_TwentyReplaysAtOnceAreOne(t *testing.T) {
	for _, file := range []string{bull5File, bull6File} {
		b := newBench(t, "bullmq", file)
		b.race(b.record("orders/1"))
	}
}

func TestBullMQ_RefusesAnotherVersion(t *testing.T) {
	b := newBench(t, "bullmq", bull6File)
	b.check(b.redis.HSet(t.Context(), "bull:old:meta", "version", "bullmq:4.18.2").Err())
	_, err := b.origin.Check(t.Context())
	if err == nil || !strings.Contains(err.Error(), `of bull:old:meta, and found "bullmq:4.18.2"`) {
		t.Error(err)
	}
}
