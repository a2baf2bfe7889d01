package poll_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"redrive/internal/poll"
	"redrive/internal/source"
)

// TestReplace_AnotherDatabaseUnderTheSameNameIsNotUsed: its records have the keys of those of
// the old one, and a replay that was requested before is of the old one.
func TestReplace_AnotherDatabaseUnderTheSameNameIsNotUsed(t *testing.T) {
	b, d := newBench(t), newDoors(t)
	other, otherDB := laravel(t)
	shop := func(path, fingerprint, address, movedFrom string) poll.Attached {
		a := d.shop("shop", path, fingerprint, source.Replay, source.Discard)
		a.Address, a.MovedFrom = address, movedFrom
		return a
	}
	const before, now = "db1.internal/shop, table failed_jobs", "db2.internal/shop, table failed_jobs"
	b.sources.Replace([]poll.Attached{shop(b.path, "1", before, "")})
	b.until("the shop is read", func() bool { return b.sources.Health()[0].Ready && len(b.deadLetters()) == 6 })

	// A replay is requested while the database is away.
	away := shop(b.path, "2", before, "")
	away.Open = func(context.Context) (source.Origin, error) { return nil, errors.New("connection refused") }
	b.sources.Replace([]poll.Attached{away})
	b.until("the shop is away", func() bool { return b.sources.Health()[0].Problem != "" })
	j := b.deadLetters()[5].Job
	_, err := b.store.Replay(t.Context(), time.Now(), j.ID, 1, ana)
	check(t, err)

	opened, _ := d.times("shop")
	b.sources.Replace([]poll.Attached{shop(other, "3", now, "")})
	b.until("the other database is refused", func() bool { return b.sources.Health()[0].Standing(time.Now()) == source.Moved })
	h := b.sources.Health()[0]
	for _, want := range []string{"from " + before, "names " + now, `moved_from: "` + before + `"`} {
		if !strings.Contains(h.Problem, want) {
			t.Errorf("the problem is %q, without %q", h.Problem, want)
		}
	}
	if why := b.sources.Check("shop", source.Request{Kind: source.Replay}); !strings.Contains(why, "names another place") {
		t.Errorf("another replay is refused with %q", why)
	}
	if again, _ := d.times("shop"); again != opened {
		t.Error("the other database was opened")
	}
	if n := count(t, otherDB); n != 6 || len(b.deadLetters()) != 5 {
		t.Errorf("%d jobs have failed in the other database, and %d dead letters are shown", n, len(b.deadLetters()))
	}

	// It is the old database after all, at another address.
	b.sources.Replace([]poll.Attached{shop(b.path, "4", now, before)})
	b.until("the replay is carried out", func() bool { return count(t, b.db) == 5 })
	b.until("it is settled", func() bool { return b.job(j.ID).Worker == "shop" })

	b.sources.Replace([]poll.Attached{shop(b.path, "5", before, "")})
	b.until("the old address is another one by now", func() bool { return b.sources.Health()[0].Moved })
}
