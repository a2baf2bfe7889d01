//go:build linux

package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// The rhythm of a shop.
const (
	shopPace   = 150 * time.Millisecond // between two jobs that die, at the mean
	clickPace  = 120 * time.Millisecond // between two requests for one of them, at the mean
	workerPace = 20 * time.Millisecond  // between two looks of a worker that has nothing to do
	oneDiscard = 8                      // one request in so many discards the job
	diesTwice  = 3                      // one job in so many fails again after its first replay
)

// foreign is a queue that another program owns, with its dead letters. Jobs are numbered.
type foreign interface {
	// section is how redrive.yaml attaches the queue.
	section() string

	// die writes a job among the dead letters.
	die(n int) error

	// work runs the oldest job that waits, and writes it among the dead letters again when
	// fails says so. It reports false when no job waits.
	work(fails func(n int) bool) (n int, found bool, err error)

	// dead are the jobs among the dead letters.
	dead() (map[int]bool, error)

	// waiting is how many jobs have not been run yet.
	waiting() (int, error)

	// number is the job that a record of the queue shows, by what names it through its runs.
	number(lineage string) (int, error)
}

// shop is a foreign queue at work: jobs die in it, a worker runs what comes back, and a
// person replays and discards through the dashboard. It writes its own log.
type shop struct {
	name  string
	queue foreign

	mu       sync.Mutex
	born     int            // jobs that have died, numbered from 1
	ran      map[int]int    // by job: how often the worker ran it
	mended   map[int]bool   // jobs that the worker has run successfully
	replayed map[string]int // by id: the newest run that an acknowledged replay began
	clicks   int            // replays that were acknowledged
	wrong    []string       // what no fault explains
}

// startShops makes all foreign queues that this machine can run.
func startShops(t *testing.T) []*shop {
	t.Helper()
	all := []*shop{newShop("outlet", newLaravel(t))}
	mailer := newSidekiq(t)
	if mailer == nil {
		t.Log("redis-server is not installed: only one source is attached in this run")
		return all
	}
	return append(all, newShop("mailer", mailer))
}

func newShop(name string, queue foreign) *shop {
	return &shop{name: name, queue: queue, ran: map[int]int{}, mended: map[int]bool{}, replayed: map[string]int{}}
}

// attachedAll is the part of redrive.yaml that attaches the shops.
func attachedAll(shops []*shop) string {
	var section strings.Builder
	section.WriteString("sources:\n")
	for _, s := range shops {
		fmt.Fprintf(&section, "  %s: {%s, allow: [replay, discard], every: 1s}\n", s.name, s.queue.section())
	}
	return section.String()
}

// open lets jobs die and replays them until ctx ends. The worker goes on until stopped ends.
func (s *shop) open(ctx, stopped context.Context, d *dashboard, seed int64, busy, working *sync.WaitGroup) {
	busy.Go(func() { s.failing(ctx, rand.New(rand.NewPCG(uint64(seed), 200))) })
	busy.Go(func() { s.clicking(ctx, d, rand.New(rand.NewPCG(uint64(seed), 201))) })
	working.Go(func() { s.working(stopped) })
}

// failing lets one job after the other die.
func (s *shop) failing(ctx context.Context, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(random, 2*shopPace))

		s.mu.Lock()
		s.born++
		n := s.born
		s.mu.Unlock()

		err := s.queue.die(n)
		if err != nil {
			s.accuse("job %d could not die: %v", n, err)
			return
		}
	}
}

// working runs what comes back.
func (s *shop) working(stopped context.Context) {
	for stopped.Err() == nil {
		n, found, err := s.queue.work(s.fails)
		if err != nil {
			s.accuse("the worker: %v", err)
			return
		}
		if !found {
			time.Sleep(workerPace)
			continue
		}

		s.mu.Lock()
		s.ran[n]++
		if !failsAt(n, s.ran[n]) {
			s.mended[n] = true
		}
		s.mu.Unlock()
	}
}

// fails reports whether the next run of a job fails.
func (s *shop) fails(n int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return failsAt(n, s.ran[n]+1)
}

// failsAt reports whether a job fails in one of its runs, the first of which is 1.
func failsAt(n, run int) bool { return n%diesTwice == 0 && run == 1 }

// clicking replays dead letters of the shop, and discards a few. Two requests for one run
// go out at the same time, of which one at most may be acknowledged.
func (s *shop) clicking(ctx context.Context, d *dashboard, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(random, 2*clickPace))

		var list struct {
			Jobs []struct {
				ID  string
				Run int
			}
		}
		err := d.get("/api/v1/jobs?q=state:dead_letter+source:"+s.name, &list)
		if err != nil || len(list.Jobs) == 0 {
			continue
		}
		j := list.Jobs[random.IntN(len(list.Jobs))]

		act := "replay"
		if random.IntN(oneDiscard) == 0 {
			act = "discard"
		}
		var pair sync.WaitGroup
		var won [2]bool
		for i := range won {
			pair.Go(func() { won[i] = s.click(d, j.ID, act, j.Run) })
		}
		pair.Wait()

		if won[0] && won[1] {
			s.accuse("two requests to %s run %d of job %s were acknowledged", act, j.Run, j.ID)
		}
		if act == "replay" && (won[0] || won[1]) {
			s.mu.Lock()
			s.replayed[j.ID] = max(s.replayed[j.ID], j.Run+1)
			s.clicks++
			s.mu.Unlock()
		}
	}
}

// click sends one request and reports whether it was acknowledged.
func (s *shop) click(d *dashboard, id, act string, run int) bool {
	body := strings.NewReader(fmt.Sprintf(`{"run": %d}`, run))
	response, err := client.Post(*d.url.Load()+"/api/v1/jobs/"+id+"/"+act, "application/json", body)
	if err != nil {
		return false // it is not known whether it was carried out
	}
	defer response.Body.Close()

	switch response.StatusCode {
	case http.StatusOK:
		return true
	case http.StatusConflict, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
	default:
		s.accuse("%s of run %d of job %s: %s", act, run, id, response.Status)
	}
	return false
}

// accuse writes down what no fault explains.
func (s *shop) accuse(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wrong = append(s.wrong, s.name+": "+fmt.Sprintf(format, args...))
}

// awaitShops waits until no request to a source is under way, no job waits for a shop's
// worker, and the dashboard shows the dead letters that are there.
func (d *dashboard) awaitShops(shops []*shop) {
	d.t.Helper()
	for _, s := range shops {
		d.await("the dashboard agrees with the shop "+s.name, func() bool {
			waiting, err := s.queue.waiting()
			if err != nil {
				d.t.Fatal(err)
			}
			dead, err := s.queue.dead()
			if err != nil {
				d.t.Fatal(err)
			}

			var now struct {
				Queues []struct {
					Dead int `json:"dead_letters"`
				}
				Acts []struct{ State string }
			}
			if d.get("/api/v1/sources/"+s.name, &now) != nil {
				return false
			}
			shown := 0
			for _, q := range now.Queues {
				shown += q.Dead
			}
			for _, a := range now.Acts {
				if a.State == "asked" || a.State == "begun" {
					return false
				}
			}
			return waiting == 0 && shown == len(dead)
		})
	}
}

// trade is all shops at work.
type trade struct {
	leave, close  context.CancelFunc
	busy, working sync.WaitGroup
}

func startTrade(d *dashboard, shops []*shop, seed int64) *trade {
	ctx, leave := context.WithCancel(context.Background())
	stopped, end := context.WithCancel(context.Background())
	all := &trade{leave: leave}
	all.close = func() {
		end()
		all.working.Wait()
	}
	for i, s := range shops {
		s.open(ctx, stopped, d, seed+int64(i), &all.busy, &all.working)
	}
	return all
}

// stop returns when the last job has died and the last request was answered. The workers of
// the shops go on until close.
func (t *trade) stop() {
	t.leave()
	t.busy.Wait()
}
