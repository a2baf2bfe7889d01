package sqlsource_test

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource/redistest"
)

// edited are the payloads of systems that want another one than any object.
var edited = map[string]string{
	"good-job": `[{"changed":true}]`, "solid-queue": `[{"changed":true}]`, "laravel": `{"job":"Charge@handle","data":{"changed":true}}`,
}

// TestReplay_WaitsAndHasAnotherPayload asks each system for what its preset says that it
// can do, and for what it cannot. The rows are then those that the system itself writes.
func TestReplay_WaitsAndHasAnotherPayload(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o, p := s.origin(t, address), preset.All()[s.preset]
		a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Record: s.fit(t, o)}
		before, began := rows(t, address, s.work), time.Now()
		for _, change := range []struct {
			can    bool
			change func(*source.Act)
		}{
			{p.Delays, func(a *source.Act) { a.Due = time.Now().Add(time.Hour) }},
			{p.Edits, func(a *source.Act) { a.Payload = []byte(cmp.Or(edited[s.preset], `{"changed":true}`)) }},
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
		work := strings.Join(added(before, rows(t, address, s.work), began), "\n") + "\n"
		if p.Edits && !strings.Contains(strings.ReplaceAll(work, ": ", ":"), `{"changed":true}`) {
			t.Errorf("it has not the other payload: %s", work)
		}
		golden(t, work)
	})
}

// TestReplay_APayloadThatItsSystemCannotReadIsRefused leaves the record where it is.
func TestReplay_APayloadThatItsSystemCannotReadIsRefused(t *testing.T) {
	each(t, func(t *testing.T, s system, address string) {
		o := s.origin(t, address)
		a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Fresh, Record: s.fit(t, o)}
		before := rows(t, address, s.work)
		for _, wrong := range []string{`{"n":`, ""} {
			a.Payload = []byte(wrong)
			if got := actOne(t, o, a); got.State != source.Refused || got.Why == "" {
				t.Errorf("%q: %+v", wrong, got)
			}
		}
		if after := rows(t, address, s.work); !slices.Equal(before, after) {
			t.Errorf("the queue changed: %q", after)
		}
	})
}

// TestReplay_KeepsWhatWasChangedInPlace holds that a replay which is not edited writes no
// payload: what someone has corrected at the source since it was read stays.
func TestReplay_KeepsWhatWasChangedInPlace(t *testing.T) {
	s := systemOf("river", "postgres")
	address := s.load(t)
	o := s.origin(t, address)
	r := s.fit(t, o)
	execute(t, address, `UPDATE river_job SET args = '{"corrected": true}' WHERE id = `+r.Key)
	if got := act(t, o, source.Replay, source.Fresh, r); got.State != source.Done {
		t.Fatalf("%+v", got)
	}
	if got := rows(t, address, "SELECT args FROM river_job WHERE id = "+r.Key); !slices.Equal(got, []string{`args={"corrected": true}`}) {
		t.Errorf("%q", got)
	}
}

// TestReplay_OfGoodJobTellsItsWorkersWhen listens as they do: without the time they would
// look at once, and then only when they look anyway.
func TestReplay_OfGoodJobTellsItsWorkersWhen(t *testing.T) {
	s := systemOf("good-job", "postgres")
	address := s.load(t)
	worker, err := pgx.Connect(t.Context(), address)
	check(t, err)
	defer worker.Close(context.Background())
	_, err = worker.Exec(t.Context(), "LISTEN good_job")
	check(t, err)
	o := s.origin(t, address)
	asked := time.Now()
	due := asked.Add(time.Hour)
	if got := actOne(t, o, source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Due: due, Record: s.fit(t, o)}); got.State != source.Done {
		t.Fatalf("%+v", got)
	}
	told, err := worker.WaitForNotification(t.Context())
	check(t, err)
	var state struct {
		ScheduledAt time.Time `json:"scheduled_at"`
	}
	check(t, json.Unmarshal([]byte(told.Payload), &state))
	if state.ScheduledAt.Before(due) || state.ScheduledAt.After(time.Now().Add(time.Hour)) {
		t.Errorf("%s is not an hour after %s, when it was asked for", told.Payload, asked)
	}
}

func actOne(t *testing.T, o interface {
	Act(context.Context, []source.Act) ([]source.Result, error)
}, a source.Act) source.Result {
	t.Helper()
	results, err := o.Act(t.Context(), []source.Act{a})
	check(t, err)
	return results[0]
}

func TestWork_WaitsInRedis(t *testing.T) {
	s := twoStores[0]
	queue := redistest.Start(t)
	o := s.attachWork(t, s.load(t), redistest.URL(queue))
	r := s.fit(t, o)
	due := time.Now().Add(time.Hour)
	a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Due: due, Payload: []byte(`{"uuid":"x","job":"y","attempts":2}`), Record: r}
	if got := actOne(t, o, a); got.State != source.Done {
		t.Fatalf("%+v", got)
	}
	waiting := queue.ZRangeWithScores(t.Context(), "shop_database_queues:"+r.Queue+":delayed", 0, -1).Val()
	if len(waiting) != 1 || waiting[0].Member != `{"uuid":"x","job":"y","attempts":0}` || waiting[0].Score < float64(due.Unix()) || waiting[0].Score > float64(due.Unix()+1) {
		t.Errorf("%+v", waiting)
	}
}
