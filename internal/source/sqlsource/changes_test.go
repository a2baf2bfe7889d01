package sqlsource_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource/redistest"
)

// TestReplay_WaitsAndHasAnotherPayload asks each system for what its preset says that it
// can do, and for what it cannot.
func TestReplay_WaitsAndHasAnotherPayload(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o, p := s.origin(t, address), preset.All()[s.preset]
		a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Record: s.fit(t, o)}
		before := rows(t, address, s.work)
		for _, change := range []struct {
			can    bool
			change func(*source.Act)
		}{
			{p.Delays, func(a *source.Act) { a.Due = time.Now().Add(time.Hour) }},
			{p.Edits, func(a *source.Act) { a.Payload = []byte(`{"changed":true}`) }},
		} {
			if change.can {
				change.change(&a)
				continue
			}
			wrong := a
			change.change(&wrong)
			if got := actOne(t, o, wrong); got.State != source.Refused {
				t.Errorf("%+v", got)
			}
		}
		if got := actOne(t, o, a); got.State != source.Done {
			t.Fatalf("%+v", got)
		}
		work := strings.Join(added(before, rows(t, address, s.work), time.Now()), "\n")
		if p.Edits && !strings.Contains(work, `{"changed":true}`) {
			t.Errorf("it has not the other payload: %s", work)
		}
		if p.Delays {
			s.waits(t, address)
		}
	})
}

func actOne(t *testing.T, o interface {
	Act(context.Context, []source.Act) ([]source.Result, error)
}, a source.Act) source.Result {
	t.Helper()
	results, err := o.Act(t.Context(), []source.Act{a})
	check(t, err)
	return results[0]
}

// waits wants one job that is due in an hour, by the clock of the system.
func (s system) waits(t *testing.T, address string) {
	t.Helper()
	in := time.Now().Add(time.Hour)
	zone, err := time.LoadLocation(s.settings.Zone)
	check(t, err)
	wall := "'" + in.Add(-10*time.Minute).In(zone).Format("2006-01-02 15:04:05") + "'"
	unix := strconv.FormatInt(in.Add(-10*time.Minute).Unix(), 10)
	query := map[string]string{
		"laravel": "SELECT id FROM jobs WHERE available_at > " + unix,
		"initphp": "SELECT id FROM jobs WHERE available_at > " + wall,
		"yii2-db": "SELECT id FROM queue WHERE pushed_at + delay > " + unix,
		"daycry":  "SELECT id FROM queues WHERE queue <> 'dead' AND schedule > " + wall,
	}[s.preset]
	if waiting := rows(t, address, query); len(waiting) != 1 {
		t.Errorf("%d jobs wait for an hour", len(waiting))
	}
}

func TestWork_WaitsInRedis(t *testing.T) {
	s := twoStores[0]
	queue := redistest.Start(t)
	o := s.attachWork(t, s.load(t), redistest.URL(queue))
	r := s.fit(t, o)
	due := time.Now().Add(time.Hour)
	a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Due: due, Payload: []byte(`{"uuid":"x","attempts":2}`), Record: r}
	if got := actOne(t, o, a); got.State != source.Done {
		t.Fatalf("%+v", got)
	}
	waiting := queue.ZRangeWithScores(t.Context(), "shop_database_queues:"+r.Queue+":delayed", 0, -1).Val()
	if len(waiting) != 1 || waiting[0].Member != `{"uuid":"x","attempts":0}` || waiting[0].Score < float64(due.Unix()) || waiting[0].Score > float64(due.Unix()+1) {
		t.Errorf("%+v", waiting)
	}
}
