//go:build linux

package chaos

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"
)

const (
	producing = 3                     // producers
	pace      = 70 * time.Millisecond // between two requests of one, at the mean
	batchSize = 20
)

// client is short of patience: a producer that waits for an answer that a kill took away
// sends again.
var client = &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 8}}

// ledger is the producers' own log. Jobs are numbered; the number is the payload.
type ledger struct {
	mu           sync.Mutex
	next         int
	kinds        map[int]string    // every job that was ever sent
	acknowledged map[int]string    // their ids
	replayed     map[string]int    // jobs by id: the run that an acknowledged replay began
	dead         []string          // ids of the acknowledged jobs that die
	answers      map[int]int       // answers by status; 0: none came
	wrong        map[string]string // answers that no fault explains
}

type producers struct {
	log    *ledger
	cancel context.CancelFunc
	busy   sync.WaitGroup
}

func startProducers(d *dashboard, seed int64) *producers {
	ctx, cancel := context.WithCancel(context.Background())
	p := &producers{cancel: cancel, log: &ledger{kinds: map[int]string{}, acknowledged: map[int]string{},
		replayed: map[string]int{}, answers: map[int]int{}, wrong: map[string]string{}}}
	for i := range producing {
		p.busy.Go(func() { p.log.produce(ctx, d, rand.New(rand.NewPCG(uint64(seed), uint64(1+i)))) })
	}
	p.busy.Go(func() { p.log.replay(ctx, d, rand.New(rand.NewPCG(uint64(seed), 100))) })
	return p
}

// stop returns when the last request was answered.
func (p *producers) stop() {
	p.cancel()
	p.busy.Wait()
}

// produce sends jobs, one by one or in batches, until ctx ends.
func (l *ledger) produce(ctx context.Context, d *dashboard, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(random, 2*pace))
		if random.IntN(batchSize) == 0 {
			l.sendBatch(d, random)
		} else {
			l.sendUntilTaken(ctx, d, random)
		}
	}
}

// number takes the next number for a job of a random type.
func (l *ledger) number(random *rand.Rand) (n int, document map[string]any) {
	typ := "service.quick"
	switch random.IntN(10) {
	case 0:
		typ = "program"
	case 1:
		typ = "service.dead"
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.next++
	l.kinds[l.next] = typ
	return l.next, map[string]any{"type": typ, "payload": l.next}
}

// accepted is what the dashboard says of jobs that it took.
type accepted struct {
	Job  struct{ ID string }
	Jobs []struct{ ID string }
}

// sendUntilTaken sends one job with an idempotency key, again and again until it
// is acknowledged: that must not make two of it.
func (l *ledger) sendUntilTaken(ctx context.Context, d *dashboard, random *rand.Rand) {
	n, document := l.number(random)
	for ctx.Err() == nil {
		var answer accepted
		if l.post(d, "/api/v1/jobs", fmt.Sprintf("job-%d", n), document, &answer) {
			l.take(n, answer.Job.ID)
			return
		}
		time.Sleep(pace)
	}
}

// sendBatch sends many jobs at once, and only once: a batch has no key.
func (l *ledger) sendBatch(d *dashboard, random *rand.Rand) {
	var numbers []int
	var documents []any
	for range batchSize {
		n, document := l.number(random)
		numbers, documents = append(numbers, n), append(documents, document)
	}
	var answer accepted
	if !l.post(d, "/api/v1/jobs/batch", "", map[string]any{"jobs": documents}, &answer) {
		return
	}
	if len(answer.Jobs) != len(numbers) {
		l.accuse("batch", fmt.Sprintf("%d jobs were sent, %d acknowledged", len(numbers), len(answer.Jobs)))
		return
	}
	for i, n := range numbers {
		l.take(n, answer.Jobs[i].ID)
	}
}

// take writes down that a job was acknowledged.
func (l *ledger) take(n int, id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledged[n] = id
	if l.kinds[n] == "service.dead" {
		l.dead = append(l.dead, id)
	}
}

// replay replays dead jobs, each once, until ctx ends. Two requests go out at the
// same time; one of them at most may begin the next run.
func (l *ledger) replay(ctx context.Context, d *dashboard, random *rand.Rand) {
	for ctx.Err() == nil {
		time.Sleep(upTo(random, 4*pace))
		id, ok := l.someDead(random)
		var now struct {
			Job struct{ Status string }
		}
		if !ok || d.get("/api/v1/jobs/"+id, &now) != nil || now.Job.Status != "dead_letter" {
			continue
		}
		var clicks sync.WaitGroup
		var won [2]bool
		for i := range won {
			clicks.Go(func() {
				won[i] = l.post(d, "/api/v1/jobs/"+id+"/replay", "", map[string]int{"run": 1}, &struct{}{})
			})
		}
		clicks.Wait()
		switch {
		case won[0] && won[1]:
			l.accuse(id, "two replays of the same run were acknowledged")
		case won[0] || won[1]:
			l.mu.Lock()
			l.replayed[id] = 2
			l.mu.Unlock()
		}
	}
}

// someDead takes a job that dies off the list.
func (l *ledger) someDead(random *rand.Rand) (id string, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.dead) == 0 {
		return "", false
	}
	i := random.IntN(len(l.dead))
	id, l.dead = l.dead[i], append(l.dead[:i], l.dead[i+1:]...)
	return id, true
}

// post sends a document and reports whether it was acknowledged.
func (l *ledger) post(d *dashboard, path, key string, document, into any) bool {
	body, err := json.Marshal(document)
	if err != nil {
		l.accuse(path, err.Error())
		return false
	}
	request, err := http.NewRequest(http.MethodPost, *d.url.Load()+path, bytes.NewReader(body))
	if err != nil {
		l.accuse(path, err.Error())
		return false
	}
	request.Header.Set("Content-Type", "application/json")
	if key != "" {
		request.Header.Set("Idempotency-Key", key)
	}
	response, err := client.Do(request)
	if err != nil {
		l.answered(0)
		return false // it is unknown whether it was carried out
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err != nil {
		l.answered(0)
		return false
	}
	l.answered(response.StatusCode)
	switch response.StatusCode {
	case http.StatusOK, http.StatusCreated:
		if err := json.Unmarshal(answer, into); err != nil {
			l.accuse(path, fmt.Sprintf("the answer %q: %v", answer, err))
		}
		return err == nil
	case http.StatusConflict, http.StatusServiceUnavailable, http.StatusInsufficientStorage:
	default:
		l.accuse(path, fmt.Sprintf("%s: %s", response.Status, answer))
	}
	return false
}

func (l *ledger) answered(status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.answers[status]++
}

// accuse writes down what no fault explains.
func (l *ledger) accuse(about, what string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrong[about] = what
}
