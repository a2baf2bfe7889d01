package poll_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/poll"
	"redrive/internal/retry"
	"redrive/internal/source"
	"redrive/internal/source/preset"
	"redrive/internal/store/db"
)

var errAway = errors.New("connection refused")

// guest is a queue that can be away and can be slow.
type guest struct {
	*queue
	mu    sync.Mutex
	away  bool
	slow  time.Duration // each answer takes so long
	asked int           // how often something was
	warns string        // what a check says
}

func (g *guest) Check(context.Context) (source.Report, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return source.Report{Warnings: []string{g.warns}}, nil
}

func (g *guest) warn(what string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.warns = what
}

// answer is what every call begins with.
func (g *guest) answer(ctx context.Context) error {
	g.mu.Lock()
	g.asked++
	slow, away := g.slow, g.away
	g.mu.Unlock()
	if slow > 0 { // with no time to wait, the race detector sometimes fails in the timer of a bubble
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(slow):
		}
	}
	if away {
		return errAway
	}
	return nil
}

func (g *guest) leave(away bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.away = away
}

// tries is how often something was asked since the last call.
func (g *guest) tries() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	defer func() { g.asked = 0 }()
	return g.asked
}

func (g *guest) open(ctx context.Context) (source.Origin, error) { return g, g.answer(ctx) }

func (g *guest) Scan(ctx context.Context, after string, limit int) (source.Page, error) {
	if err := g.answer(ctx); err != nil {
		return source.Page{}, err
	}
	return g.queue.Scan(ctx, after, limit)
}

func (g *guest) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	if err := g.answer(ctx); err != nil {
		return source.NotAttempted(acts), err
	}
	return g.queue.Act(ctx, acts)
}

func (g *guest) Find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	if err := g.answer(ctx); err != nil {
		return nil, err
	}
	return g.queue.Find(ctx, acts)
}

// visited runs a test in fake time whose source is a guest.
func visited(t *testing.T, test func(t *testing.T, l *life, g *guest, now *poll.Sources)) {
	t.Helper()
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		g := &guest{queue: l.queue}
		l.open = g.open
		now := l.process(&crash{})
		defer now.Close()
		test(t, l, g, now)
	})
}

// replay asks for a replay of the job of a key.
func (l *life) replay(key string) {
	l.Helper()
	_, err := l.store.Replay(l.Context(), time.Now(), l.all()["charge "+key].ID, 1, ana)
	check(l.T, err)
}

// A source is away for an hour. What was asked for meanwhile is done once it is back, what
// changed there is seen then, and it is tried once a minute at most.
func TestSources_AnHourAwayLosesNothing(t *testing.T) {
	visited(t, func(t *testing.T, l *life, g *guest, now *poll.Sources) {
		g.leave(true)
		g.tries()
		l.replay("k1")
		l.replay("k2")
		time.Sleep(30 * time.Minute)
		g.die("k0", "2")
		g.die("k3", "1")
		g.take("k2")
		time.Sleep(30 * time.Minute)

		h := now.Health()[0]
		if n := g.tries(); n < 60 || n > 70 {
			t.Errorf("%d tries in an hour", n)
		}
		if away := time.Since(h.Since); h.Problem != errAway.Error() || away < 59*time.Minute || away > time.Hour {
			t.Errorf("the source is away for %s: %q", away, h.Problem)
		}
		if all := l.all(); len(all) != 3 || all["charge k0"].Run != 1 || all["charge k1"].State != job.Returning || all["charge k2"].State != job.Returning {
			t.Errorf("while the source is away: %+v", all)
		}

		g.leave(false)
		time.Sleep(2 * time.Minute)
		if h := now.Health()[0]; h.Problem != "" || !h.Since.IsZero() {
			t.Errorf("the source is back: %q since %s", h.Problem, h.Since)
		}
		if dead, work := g.now(); dead != 2 || !maps.Equal(work, map[string]int{"k1": 1}) {
			t.Errorf("%d are dead and %v came to work, want k0 and k3, and k1 once", dead, work)
		}
		all := l.all()
		for key, want := range map[string]string{
			"k0": "dead_letter in run 2: attempts_exhausted", "k1": "returned in run 2: ",
			"k2": "discarded in run 2: " + string(retry.GoneAtSource), "k3": "dead_letter in run 1: attempts_exhausted",
		} {
			j := all["charge "+key]
			if got := fmt.Sprintf("%s in run %d: %s", j.Status(), j.Run, j.Reason); got != want {
				t.Errorf("%s is %s, not %s", key, got, want)
			}
		}
	})
}

// What changes at a source while it is attached, such as a right that is taken away, is
// said within ten minutes.
func TestSources_AreCheckedAgain(t *testing.T) {
	visited(t, func(t *testing.T, _ *life, g *guest, now *poll.Sources) {
		g.warn("The user may not replay.")
		time.Sleep(10*time.Minute + 2*time.Second) // and a look
		if got := now.Health()[0].Report.Warnings; !slices.Equal(got, []string{"The user may not replay."}) {
			t.Errorf("the page warns %q", got)
		}
	})
}

// A worker runs a job and lets it fail again between the page and the click: the replay
// does nothing, and the job is shown with its new failure, in one run more.
func TestSources_AJobThatDiedAgainBetweenPageAndClickHasOneRunMore(t *testing.T) {
	visited(t, func(t *testing.T, l *life, g *guest, _ *poll.Sources) {
		l.replay("k1")
		g.die("k0", "2")
		g.die("k2", "2")
		l.replay("k0")
		_, err := l.store.Discard(t.Context(), time.Now(), l.all()["charge k2"].ID, 1, ana)
		check(t, err)
		time.Sleep(10 * time.Second)
		for _, key := range []string{"k0", "k2"} {
			if j := l.all()["charge "+key]; j.Status() != job.StatusDeadLetter || j.Run != 2 {
				t.Errorf("the job of %s is %s in run %d", key, j.Status(), j.Run)
			}
		}
		if dead, work := g.now(); dead != 2 || !maps.Equal(work, map[string]int{"k1": 1}) {
			t.Errorf("%d are dead and %v came to work", dead, work)
		}
	})
}

// A job that died again, and whose record is removed before it is read, is gone.
func TestSources_AJobThatDiedAgainAndWasRemovedIsGone(t *testing.T) {
	brokered(t, func(t *testing.T, l *life, b *broker) {
		defer l.process(&crash{}).Close()
		b.die("k0", "2")
		l.replay("k0")
		time.Sleep(time.Second) // the source has answered, and was not read again yet
		b.take("k0")
		time.Sleep(5 * time.Minute)
		if j := l.all()["charge k0"]; j.State != job.Discarded || j.Reason != retry.GoneAtSource {
			t.Errorf("the job is %s in run %d: %s", j.Status(), j.Run, j.Reason)
		}
	})
}

// A source that fails over to a server which does not know of the replay has the record
// still: it is shown as dead again, and nothing is replayed unasked.
func TestSources_AFailoverThatForgetsAReplayShowsTheDeadLetterAgain(t *testing.T) {
	visited(t, func(t *testing.T, l *life, g *guest, _ *poll.Sources) {
		l.replay("k1")
		time.Sleep(10 * time.Second)
		g.leave(true)
		time.Sleep(time.Minute)
		g.die("k1", "1") // as it was before the replay
		g.forget("k1")
		g.leave(false)
		time.Sleep(2 * time.Minute)
		if j := l.all()["charge k1"]; j.Status() != job.StatusDeadLetter || j.Run != 2 {
			t.Errorf("the job is %s in run %d", j.Status(), j.Run)
		}
		if dead, work := g.now(); dead != 3 || len(work) != 0 {
			t.Errorf("%d are dead and %v came to work", dead, work)
		}
	})
}

// A slow source is asked less often, one that does not answer is given up for a while, and
// neither keeps another one waiting, or the end of the program.
func TestSources_ASlowOneIsAskedSeldomAndDisturbsNoOther(t *testing.T) {
	for _, c := range []struct {
		slow        time.Duration
		least, most int // questions in twenty minutes
		problem     string
	}{
		{10 * time.Second, 9, 14, ""},
		{time.Hour, 14, 27, context.DeadlineExceeded.Error()},
	} {
		t.Run(c.slow.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T, database db.Database) {
				l := newLife(t, database, true)
				defer func() { check(t, l.store.Close()) }()
				slow, quick := &guest{queue: l.queue, slow: c.slow}, &guest{queue: newQueue(true)}
				all := poll.New([]poll.Attached{
					{Name: "slow", Preset: preset.All()["sidekiq"], Every: time.Second, Open: slow.open},
					{Name: "quick", Preset: preset.All()["sidekiq"], Every: time.Second, Open: quick.open},
				}, func(s string) string { return s }, slog.New(slog.DiscardHandler))
				all.Start(l.store.Mirror, l.store.Sources, l.store.Sources)
				time.Sleep(20 * time.Minute)
				if n := slow.tries(); n < c.least || n > c.most {
					t.Errorf("the slow source was asked %d times", n)
				}
				if n := quick.tries(); n < 1160 {
					t.Errorf("the quick source was asked %d times", n)
				}
				for _, h := range all.Health() {
					if want := map[string]string{"slow": c.problem}[h.Name]; (h.Problem == "") != (want == "") || !strings.Contains(h.Problem, want) {
						t.Errorf("%s: %q", h.Name, h.Problem)
					}
				}
				began := time.Now()
				all.Close()
				if took := time.Since(began); took > 0 {
					t.Errorf("the end took %s", took)
				}
			})
		})
	}
}

// flood is a queue into which records fall quickly, and in which a person
// replays the oldest ones meanwhile.
type flood struct {
	*queue
	mu          sync.Mutex
	oldest, end int // the records that are there, by their numbers
	read        int // records
}

func (f *flood) change(replayed, died int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.oldest, f.end = f.oldest+replayed, f.end+died
}

func (f *flood) Scan(_ context.Context, after string, limit int) (page source.Page, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	next := f.end
	if after != "" {
		if next, err = strconv.Atoi(after); err != nil {
			return page, err
		}
	}
	for ; next > f.oldest && len(page.Records) < limit; next-- {
		r := record(strconv.Itoa(next-1), "1")
		r.Type = floodType(next - 1)
		page.Records = append(page.Records, r)
	}
	if next > f.oldest {
		page.Next = strconv.Itoa(next)
	}
	f.read += len(page.Records)
	return page, nil
}

// floodType is the type of the records that died within the same tenth of a second.
func floodType(n int) string { return fmt.Sprint("charge ", n/(floodDied/10)) }

// floodDied is how many records die in a second: more than a page.
const floodDied = 600

func (f *flood) Find(_ context.Context, acts []source.Act) (results []source.Result, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range acts {
		n, err := strconv.Atoi(a.Key)
		if err != nil {
			return nil, err
		}
		state := source.Asked
		if n < f.oldest {
			state = source.Gone
		}
		results = append(results, source.Result{ID: a.ID, State: state})
	}
	return results, nil
}

// A queue grows by more than a page a second. What is new is seen within two seconds all the
// while, and in the end each record has one job, and those that left have none.
func TestSources_AQueueThatGrowsQuicklyIsFollowed(t *testing.T) {
	const before, seconds, died, replayed = 2000, 4, floodDied, 120
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		f := &flood{queue: l.queue, end: before}
		l.open = func(context.Context) (source.Origin, error) { return f, nil }
		now := l.process(&crash{})
		defer now.Close()
		for range seconds {
			for range 10 {
				f.change(replayed/10, died/10)
				time.Sleep(100 * time.Millisecond)
			}
			typ := floodType(f.end - 2*died)
			list, err := l.store.Jobs(t.Context(), filter.Filter{Source: "shop", Type: typ}, filter.Cursor{}, 101)
			check(t, err)
			if len(list.Jobs) != died/10 {
				t.Errorf("%s, which died two seconds ago, has %d jobs", typ, len(list.Jobs))
			}
		}
		time.Sleep(12 * time.Second) // two passes through all
		present := int64(before + seconds*(died-replayed))
		if depths := l.store.Snapshot().Depths; depths[job.StatusDeadLetter] != present {
			t.Errorf("%d dead letters of %d records", depths[job.StatusDeadLetter], present)
		}
		if h := now.Health()[0]; h.Problem != "" || !h.Ready {
			t.Errorf("the source was read once: %v, %q", h.Ready, h.Problem)
		}
		if n, err := l.store.Sources.Waiting(t.Context(), "shop"); n || err != nil {
			t.Errorf("something is asked of the source: %v", err)
		}
	})
}

// A look at a source with nothing new reads the newest records and some of the others, in
// turn, so that all are read after a while.
func TestSources_AQuietLookReadsLittle(t *testing.T) {
	const present, looks = 3000, 6
	bubble(t, func(t *testing.T, database db.Database) {
		l := newLife(t, database, true)
		defer func() { check(t, l.store.Close()) }()
		f := &flood{queue: l.queue, end: present}
		l.open = func(context.Context) (source.Origin, error) { return f, nil }
		defer l.process(&crash{}).Close()
		before := f.records()
		time.Sleep(looks * time.Second)
		if read := f.records() - before; read < looks*present/4 || read > (looks+1)*1500 {
			t.Errorf("%d looks have read %d records of %d", looks, read, present)
		}
	})
}

// records is how many were read.
func (f *flood) records() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.read
}

// record is a dead record.
func record(key, token string) source.Record {
	return source.Record{
		Key: key, Lineage: key, Place: "dead", VersionToken: token, Queue: "orders", Type: "charge " + key, FailedAt: time.Now().Add(-time.Minute),
		Error: job.ErrorInfo{Type: "Declined", Message: "card declined"}, Attempts: 1, Limit: 1,
	}
}
