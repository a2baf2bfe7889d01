package retention_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"redrive/internal/job"
	"redrive/internal/retention"
)

func TestLimits_AgeIsSaidByTheExactTypeThenAPrefixThenTheQueue(t *testing.T) {
	l := retention.Limits{
		Ages:   retention.Ages{retention.Completed: 4 * days, retention.Cancelled: 9 * days},
		Queues: map[string]retention.Ages{"q": {retention.Completed: 3 * days}, "for-ever": {retention.Completed: 0}},
		Types:  map[string]retention.Ages{"a.*": {retention.Completed: 2 * days}, "a.b.*": {retention.Completed: days}, "a.b.c": {retention.Completed: 0}},
	}
	for _, test := range []struct {
		kind       retention.Kind
		queue, typ string
		want       time.Duration
	}{
		{retention.Completed, "x", "y", 4 * days}, {retention.Completed, "q", "y", 3 * days}, {retention.Completed, "for-ever", "y", 0},
		{retention.Completed, "for-ever", "a.x", 2 * days}, {retention.Completed, "q", "a.b.x", days}, {retention.Completed, "q", "a.b.c", 0},
		{retention.Cancelled, "q", "a.b.c", 9 * days}, {retention.DeadLetters, "q", "y", 0},
	} {
		if got := l.Age(test.kind, test.queue, test.typ); got != test.want {
			t.Errorf("%s of %s in %s: %v, want %v", test.kind, test.typ, test.queue, got, test.want)
		}
	}
	if got := l.Different(retention.Completed); !slices.Equal(got, []time.Duration{days, 2 * days, 3 * days, 4 * days}) {
		t.Errorf("different ages %v", got)
	}
}

func TestLimits_AnnouncedAreThoseThatAPersonWroteDown(t *testing.T) {
	l := retention.Limits{
		Ages: retention.Ages{retention.Completed: days, retention.Cancelled: days, retention.DeadLetters: days},
		Said: map[retention.Kind]bool{retention.Cancelled: true},
	}
	got := l.WithoutDefaults()
	if got.Ages[retention.Completed] != 0 || got.Ages[retention.Cancelled] != days || got.Ages[retention.DeadLetters] != days || l.Ages[retention.Completed] != days {
		t.Errorf("announced %v of %v", got.Ages, l.Ages)
	}
}

func TestPruned_NamesTheQueuesThatLostMost(t *testing.T) {
	p := retention.Pruned{Jobs: map[retention.Part]int64{{Kind: retention.Trash, Queue: "z"}: 7}}
	for i := range 12 {
		p.Jobs[retention.Part{Kind: retention.Completed, Queue: fmt.Sprintf("q%02d", i)}] = int64(i + 1)
	}
	want := "completed: 78 (q11 12, q10 11, q09 10, q08 9, q07 8, q06 7, q05 6, q04 5, q03 4, q02 3, and 2 more queues); trash: 7 (z 7)"
	if got := p.String(); got != want || p.Total() != 85 {
		t.Errorf("%d jobs: %s\nwant %s", p.Total(), got, want)
	}
}

func TestRemoved_IsNotFoundAndSaysWhatIsKnown(t *testing.T) {
	r := &retention.Removed{ID: "x", Kind: retention.Cancelled, EnqueuedAt: noon, RemovedAt: noon.Add(days)}
	if !errors.Is(r, job.ErrNotFound) || !strings.Contains(r.Error(), "removed the job x at 2026-03-13 12:00:00 UTC (cancelled); it was enqueued at 2026-03-12 12:00:00 UTC") {
		t.Error(r)
	}
}
