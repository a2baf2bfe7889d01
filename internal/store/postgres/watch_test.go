package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"redrive/internal/store/health"
)

// What is seen again with the same transaction has been there all the time; what has another one by
// then has not kept anything from being cleaned up for so long.
func TestFollow_KnowsSinceWhenNothingWasCleanedUp(t *testing.T) {
	began := time.Date(2026, 3, 12, 14, 0, 0, 0, time.UTC)
	later := began.Add(time.Minute)

	for name, test := range map[string]struct {
		before, now sighting
		want        time.Time
	}{
		"the same snapshot":            {sighting{oldest: "7"}, sighting{oldest: "7"}, began},
		"a newer snapshot":             {sighting{oldest: "7"}, sighting{oldest: "8"}, later},
		"it has begun to write since":  {sighting{oldest: "7"}, sighting{own: "9", oldest: "7"}, began},
		"it writes, without snapshot":  {sighting{own: "7", oldest: "6"}, sighting{own: "7"}, began},
		"neither has one":              {sighting{own: "7"}, sighting{oldest: "7"}, later},
		"another one of the same name": {sighting{own: "7"}, sighting{own: "8"}, later},
	} {
		t.Run(name, func(t *testing.T) {
			test.before.key, test.now.key = "session 1", "session 1"
			test.before.Since, test.now.Since = began, later

			seen := follow(follow(nil, []sighting{test.before}), []sighting{test.now})
			if got := seen["session 1"].Since; !got.Equal(test.want) {
				t.Errorf("it is there since %v, want %v", got, test.want)
			}
		})
	}
}

// People are told what has lasted, the oldest first, and no longer what is gone.
func TestFollow_TellsWhatLasts(t *testing.T) {
	began := time.Date(2026, 3, 12, 14, 0, 0, 0, time.UTC)
	sighted := func(name string, after time.Duration) sighting {
		return sighting{key: name, own: name, Hindrance: health.Hindrance{Name: name, Since: began.Add(after)}}
	}
	told := func(seen map[string]sighting) (names string) {
		for _, h := range lastingSince(seen, began.Add(30*time.Second)) {
			names += h.Name + " "
		}
		return names
	}

	seen := follow(nil, []sighting{sighted("young", time.Minute), sighted("middle", 30*time.Second), sighted("old", 0)})
	if got := told(seen); got != "old middle " {
		t.Errorf("it tells of %q", got)
	}

	seen = follow(seen, []sighting{sighted("middle", time.Minute)})
	if got := told(seen); got != "middle " {
		t.Errorf("then it tells of %q", got)
	}
}

// However often a look fails, the log says so once.
func TestWatch_LogsAnErrorOnce(t *testing.T) {
	reads := pool(connector{}, 1)
	if err := reads.Close(); err != nil {
		t.Fatal(err)
	}

	log := new(bytes.Buffer)
	w := &watch{reads: reads, health: health.New(slog.New(slog.NewTextHandler(log, nil)))}
	ctx, stop := context.WithCancel(t.Context())
	tick := make(chan time.Time)
	w.stop = stop
	w.ended.Go(func() { w.run(ctx, tick) })

	for range 3 { // each is taken when the look before has failed
		tick <- time.Now()
	}

	w.close()

	if n := strings.Count(log.String(), "cannot be read"); n != 1 {
		t.Errorf("the log says so %d times: %s", n, log)
	}
}
