package redissource_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
)

// dead adds a task to an archive whose message has so many bytes.
func (b *bench) dead(queue, id string, bytes int) {
	b.Helper()
	msg := "\x0a\x01t\x12" + strings.Repeat("x", bytes) // a type, and a payload that is cut
	b.check(b.redis.SAdd(b.Context(), "asynq:queues", queue).Err())
	b.check(b.redis.ZAdd(b.Context(), "asynq:{"+queue+"}:archived", redis.Z{Score: 1, Member: id}).Err())
	b.check(b.redis.HSet(b.Context(), "asynq:{"+queue+"}:t:"+id, "msg", msg, "state", "archived").Err())
}

// TestSource_LargeHashesAreReadInFewAtOnce has more in each queue than fits into one answer.
// Every record comes once, those that are too large are told, and all of the others are
// found where they are.
func TestSource_LargeHashesAreReadInFewAtOnce(t *testing.T) {
	b := newBench(t, "asynq")
	var want []string
	for i := range 12 {
		id := fmt.Sprintf("mid-%02d", i)
		b.dead("orders", id, 3_000_000)
		want = append(want, "orders/"+id)
	}
	for i := range 60 {
		id := fmt.Sprintf("low-%02d", i)
		b.dead("orders", id, 10)
		want = append(want, "orders/"+id)
	}
	b.dead("orders", "huge-0", 9_000_000)
	b.dead("orders", "huge-1", 20_000_000)

	var acts []source.Act
	met, refused := map[string]bool{}, map[string]bool{}
	for after, n := "", 0; n == 0 || after != ""; n++ {
		page, err := b.origin.Scan(t.Context(), after, 500)
		b.check(err)
		bytes := 0
		for _, r := range page.Records {
			bytes += len(r.Raw)
			if !met[r.Key] {
				acts = append(acts, act(source.Replay, source.Once, r))
			}
			met[r.Key] = true
		}
		for _, r := range page.Refused {
			refused[r.Key] = true
		}
		if bytes > 16_000_000 {
			t.Errorf("a page has %d bytes", bytes)
		}
		after = page.Next
	}
	missing := slices.DeleteFunc(want, func(key string) bool { return met[key] })
	if len(missing) > 0 || len(met) != 72 || len(refused) != 2 || !refused["orders/huge-0"] || !refused["orders/huge-1"] {
		t.Errorf("%d are met, not %q; refused are %v", len(met), missing, refused)
	}

	found, err := b.origin.Find(t.Context(), acts)
	b.check(err)
	for i, r := range found {
		if r.State != source.Asked {
			t.Errorf("%s: %+v", acts[i].Key, r)
		}
	}
	if len(found) != len(acts) {
		t.Errorf("%d of %d are found", len(found), len(acts))
	}
}
