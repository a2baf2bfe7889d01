package sqlsource_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/source/redissource"
	"redrive/internal/source/redissource/redistest"
	"redrive/internal/source/sqlsource"
)

// twoStores are the systems whose queue is in Redis and whose dead letters are not.
var twoStores = []system{
	{"laravel-redis", "sqlite", "laravel/sqlite-dump.sql", nil, shopPrefix, "", nil},
	{"laravel-redis", "postgres", "laravel/postgres-dump.sql", []string{"UPDATE failed_jobs SET connection = 'redis'"}, shopPrefix, "", nil},
	{"laravel-redis", "mysql", "", nil, shopPrefix, "", nil},
}

var shopPrefix = preset.Settings{Zone: "Europe/Berlin", Values: map[string]string{"prefix": "shop_database_"}}

// attachWork opens a database with a queue in Redis.
func (s system) attachWork(t *testing.T, address, redisURL string) *sqlsource.Origin {
	t.Helper()
	o := s.origin(t, address)
	w, err := redissource.OpenWork(t.Context(), redisURL, preset.All()[s.preset], s.settings)
	check(t, err)
	o.SendTo(w)
	return o
}

func eachTwo(t *testing.T, do func(t *testing.T, s system, address string, queue *redis.Client)) {
	for _, s := range twoStores {
		t.Run(s.engine, func(t *testing.T) {
			address := s.load(t)
			do(t, s, address, redistest.Start(t))
		})
	}
}

func TestWork_ReplaysFromTheDatabaseToRedis(t *testing.T) {
	eachTwo(t, func(t *testing.T, s system, address string, queue *redis.Client) {
		o := s.attachWork(t, address, redistest.URL(queue))
		report, err := o.Check(t.Context())
		check(t, err)
		if len(report.May) != 2 {
			t.Errorf("%+v", report)
		}
		r := s.fit(t, o)
		if got := act(t, o, source.Replay, source.Once, r); got.State != source.Done {
			t.Fatalf("%+v", got)
		}
		if got := act(t, o, source.Replay, source.Once, r); got.State != source.Gone {
			t.Fatalf("the second time: %+v", got)
		}
		pushed := queue.LRange(t.Context(), "shop_database_queues:"+r.Queue, 0, -1).Val()
		if len(pushed) != 1 || !strings.Contains(pushed[0], `"uuid":"`+r.Key+`"`) || strings.Contains(pushed[0], `"attempts":1`) {
			t.Errorf("in the queue: %q", pushed)
		}
		if n := queue.LLen(t.Context(), "shop_database_queues:"+r.Queue+":notify").Val(); n != 1 {
			t.Errorf("workers were told %d times", n)
		}
	})
}

func TestWork_EightReplaysAtOnceAreOne(t *testing.T) {
	eachTwo(t, func(t *testing.T, s system, address string, queue *redis.Client) {
		r := s.fit(t, s.origin(t, address))
		states := make(chan source.State, 8)
		var all sync.WaitGroup
		for range 8 {
			o := s.attachWork(t, address, redistest.URL(queue))
			all.Go(func() {
				results, err := o.Act(t.Context(), []source.Act{{ID: 1, Kind: source.Replay, Mode: source.Once, Record: r}})
				if err != nil {
					t.Error(err)
					return
				}
				states <- results[0].State
			})
		}
		all.Wait()
		close(states)
		count := map[source.State]int{}
		for state := range states {
			count[state]++
		}
		if n := queue.LLen(t.Context(), "shop_database_queues:"+r.Queue).Val(); n != 1 || count[source.Done] != 1 {
			t.Errorf("%d jobs in the queue, %v", n, count)
		}
	})
}

// TestWork_ANewTryPushesNothing loses the commit, by a push that fails after it has pushed:
// the row is still there, and the job is in the queue. The act is found undone, is repeated,
// and there is one job.
func TestWork_ANewTryPushesNothing(t *testing.T) {
	eachTwo(t, func(t *testing.T, s system, address string, queue *redis.Client) {
		o := s.origin(t, address)
		w, err := redissource.OpenWork(t.Context(), redistest.URL(queue), preset.All()[s.preset], s.settings)
		check(t, err)
		broken := &brokenWork{Work: w}
		o.SendTo(broken)
		r := s.fit(t, o)
		a := source.Act{ID: 7, Kind: source.Replay, Mode: source.Once, Record: r}
		if _, err := o.Act(t.Context(), []source.Act{a}); !errors.Is(err, errLost) {
			t.Fatalf("%v", err)
		}
		found, err := o.Find(t.Context(), []source.Act{a})
		check(t, err)
		if found[0].State != source.Asked || queue.LLen(t.Context(), "shop_database_queues:"+r.Queue).Val() != 1 {
			t.Fatalf("%+v", found)
		}
		if got := act(t, o, a.Kind, a.Mode, a.Record); got.State != source.Done {
			t.Fatalf("%+v", got)
		}
		if n := queue.LLen(t.Context(), "shop_database_queues:"+r.Queue).Val(); n != 1 {
			t.Errorf("%d jobs in the queue", n)
		}
	})
}

var errLost = errors.New("the answer was lost")

// brokenWork loses the answer to its first push.
type brokenWork struct {
	*redissource.Work
	pushed bool
}

func (b *brokenWork) Push(ctx context.Context, queue, id string, job []byte, at time.Time) error {
	err := b.Work.Push(ctx, queue, id, job, at)
	if !b.pushed {
		b.pushed = true
		return errors.Join(errLost, err)
	}
	return err
}

// TestWork_RefusesWhatTheUserOfRedisMayNot takes a right away: the row stays.
func TestWork_RefusesWhatTheUserOfRedisMayNot(t *testing.T) {
	s := twoStores[0]
	queue := redistest.Start(t)
	check(t, queue.Do(t.Context(), "ACL", "SETUSER", "op", "on", ">secret", "allkeys", "+@all", "-rpush").Err())
	o := s.attachWork(t, s.load(t), "redis://op:secret@"+queue.Options().Addr)
	report, err := o.Check(t.Context())
	check(t, err)
	if len(report.May) != 1 || report.May[0] != source.Discard {
		t.Errorf("%+v", report)
	}
	r := s.fit(t, o)
	if got := act(t, o, source.Replay, source.Once, r); got.State != source.Refused || !strings.Contains(got.Why, "may not run RPUSH") {
		t.Errorf("%+v", got)
	}
	if got := act(t, o, source.Discard, "", r); got.State != source.Done {
		t.Errorf("%+v", got)
	}
	if keys := queue.Keys(t.Context(), "*").Val(); len(keys) != 0 {
		t.Errorf("in Redis: %q", keys)
	}
}

// TestWork_GrantsAreEnough has the rights of the preset's grants in Redis, and a queue that is not
// in its first database, so that Redis has to select one.
func TestWork_GrantsAreEnough(t *testing.T) {
	s := twoStores[0]
	s.settings.Values = nil
	queue := redistest.Start(t)
	p := preset.All()[s.preset]
	_, list, _ := strings.Cut(p.Grants[1], "to replay: ")
	rules := []any{"ACL", "SETUSER", "op", "on", ">secret", "resetkeys"}
	for _, rule := range strings.Fields(list) {
		rules = append(rules, rule)
	}
	check(t, queue.Do(t.Context(), rules...).Err())
	o := s.attachWork(t, s.load(t), "redis://op:secret@"+queue.Options().Addr+"/3")
	report, err := o.Check(t.Context())
	check(t, err)
	if got := act(t, o, source.Replay, source.Once, s.fit(t, o)); got.State != source.Done || len(report.May) != 2 {
		t.Errorf("%+v, %+v", got, report)
	}
}

// Laravel's own queue:retry deletes a row by its uuid. Each row is replayed from here at the
// same time: one of the two finds no row, and neither is ended by a deadlock.
func TestWork_AReplayNeverEndsARetryOfLaravelByADeadlock(t *testing.T) {
	const jobs = 300
	for _, preset := range []string{"laravel-redis", "laravel"} {
		t.Run(preset, func(t *testing.T) {
			s := system{preset: preset, engine: "mysql"}
			connection, address := "database", ""
			var o *sqlsource.Origin
			if preset == "laravel-redis" {
				connection = "redis"
				address = upgradedLaravel(t, "mysql", connection)
				o = s.attachWork(t, address, redistest.URL(redistest.Start(t)))
			} else {
				address = upgradedLaravel(t, "mysql", connection)
				o = s.origin(t, address)
			}
			execute(t, address, fmt.Sprintf(`INSERT INTO failed_jobs (uuid, connection, queue, payload, exception)
				SELECT uuid(), '%s', 'mail', '{"job":"Mail@handle"}', 'E: no' FROM seq_1_to_%d`, connection, jobs))
			laravel := open(t, address)
			defer laravel.Close()

			var retried atomic.Int64
			for i, r := range scan(t, o, 500) {
				if len(r.Key) < 32 {
					continue
				}
				// Both start together, and the retry deletes a little later each time.
				var start, end sync.WaitGroup
				start.Add(1)
				end.Go(func() {
					start.Wait()
					_, err := laravel.Exec("DO SLEEP(?)", float64(i)*10e-6)
					if err != nil {
						t.Error(err)
					}
					result, err := laravel.Exec("DELETE FROM failed_jobs WHERE uuid = ?", r.Key)
					if err != nil {
						t.Errorf("queue:retry of %s: %v", r.Key, err)
						return
					}
					n, err := result.RowsAffected()
					if err != nil {
						t.Error(err)
					}
					retried.Add(n)
				})
				start.Done()
				if got := act(t, o, source.Replay, source.Once, r); got.State == source.Done {
					retried.Add(1)
				}
				end.Wait()
			}
			if n := retried.Load(); n != jobs+1 { // one of the table's first rows has a uuid, too
				t.Errorf("%d of %d jobs were retried once", n, jobs+1)
			}
		})
	}
}

// A job that is pushed with another prefix than the application's is never run.
func TestCheck_WarnsOfAPrefixThatNoQueueHas(t *testing.T) {
	s := twoStores[0]
	queue := redistest.Start(t)
	o := s.attachWork(t, s.load(t), redistest.URL(queue))
	warning := func() string {
		report, err := o.Check(t.Context())
		check(t, err)
		if len(report.May) != 2 {
			t.Errorf("%+v", report)
		}
		for _, w := range report.Warnings {
			if strings.HasPrefix(w, "Redis has no key that begins with shop_database_queues:. ") {
				return w
			}
		}
		return ""
	}

	// All queues are empty: a mark that a push has left is no queue.
	check(t, queue.Set(t.Context(), "shop_database_queues:orders:redrive:u:1", "1", 0).Err())
	if w := warning(); !strings.Contains(w, "The queues are empty, or the prefix is not that of the application") {
		t.Errorf("with no queue: %q", w)
	}

	// The application has another prefix, and then the same.
	check(t, queue.RPush(t.Context(), "app_queues:orders", "{}").Err())
	if w := warning(); !strings.Contains(w, "set the field prefix to app_,") {
		t.Errorf("with a queue of another prefix: %q", w)
	}
	check(t, queue.ZAdd(t.Context(), "shop_database_queues:orders:delayed", redis.Z{Member: "{}"}).Err())
	if w := warning(); w != "" {
		t.Errorf("with a queue: %q", w)
	}
}
