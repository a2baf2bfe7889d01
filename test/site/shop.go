package site

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redrive/internal/audit"
	"redrive/internal/config"
	"redrive/internal/failures"
	"redrive/internal/filter"
	"redrive/internal/job"
	"redrive/internal/operation"
	"redrive/internal/retry"
	"redrive/internal/store"
	"redrive/internal/store/sqlite"
	"redrive/test/rig"
)

// shop is a database in which every word stands in every field that a producer,
// a handler or a person fills, in every state that a job can be in.
type shop struct {
	t      *testing.T
	store  *store.Store
	config *config.Config
	now    time.Time
}

// OpenShop writes the words down and serves them.
func OpenShop(t *testing.T, words []string) (url string) {
	t.Helper()
	dir := t.TempDir()
	rig.Write(t, dir, "redrive.yaml", hostileConfig+rig.AttachedShop(t, dir, "annex", hostileFailed(words)))
	c, err := config.Parse("redrive.yaml", []byte(hostileConfig))
	if err != nil {
		t.Fatal(err)
	}
	st, err := store.Open(t.Context(), store.Options{Database: sqlite.File{Path: filepath.Join(dir, "redrive.db"), Relaxed: true}})
	if err != nil {
		t.Fatal(err)
	}
	s := shop{t, st, c, time.Now().Add(-time.Minute)}
	s.fill(words)
	if err := st.Close(); err != nil {
		t.Fatal(err)
	}
	url = rig.Start(t, dir).URL
	rig.UntilSource(t, url, "annex", "everything was read", func(s rig.ShownSource) bool { return s.Ready })
	ids := rig.DeadLettersOf(t, url, "annex")
	for _, id := range ids[:4] { // of which one is refused
		rig.ActAtSource(t, url, "annex", id, "replay")
	}
	rig.ActAtSource(t, url, "annex", ids[4], "discard")
	return url
}

// hostileFailed are failed jobs of another system, with every sixth word in each field.
// Some are of another queue connection, which the page of the source names, and some have a payload that cannot be read.
func hostileFailed(words []string) (all []rig.FailedJob) {
	for i := 0; i < len(words); i += 6 {
		word := words[i]
		payload := AsJSON(map[string]any{"displayName": word, "job": word, "maxTries": 3, "retryUntil": 1, "data": map[string]any{word: word}})
		j := rig.FailedJob{UUID: fmt.Sprint(word, i), Connection: "database", Queue: word, Payload: payload, Exception: word + "\nStack trace:\n" + word}
		switch i / 6 % 4 {
		case 1:
			j.Connection = word
		case 2:
			j.Payload = word
		}
		all = append(all, j)
	}
	return all
}

// HostileID is the id of the n-th job of a queue.
func HostileID(queue string, n int) string {
	return fmt.Sprintf("01900000-0000-7000-8%03x-%012x", strings.Index(hostileConfig, queue), n)
}

func (s shop) fill(words []string) {
	s.t.Helper()
	rest := len(words) / 6
	for _, queue := range s.config.Queues() {
		all := words
		if queue != "dead" { // every word is in a dead letter, every sixth in all the others
			all = make([]string, rest)
			for i := range all {
				all[i] = words[i*6]
			}
		}
		s.enqueue(queue, all)
		if queue != "held" {
			s.run(queue)
		}
	}
	for i := range rest { // people act, under the words as their names
		by := audit.Actor{Name: words[i*6], Address: words[i*6]}
		_, replayed := s.store.Replay(s.t.Context(), s.now, HostileID("dead", i*6+1), 1, by)
		_, discarded := s.store.Discard(s.t.Context(), s.now, HostileID("dead", i*6+2), 1, by)
		_, cancelled := s.store.Cancel(s.t.Context(), s.now, HostileID("retried", i), 1, by)
		if replayed != nil || discarded != nil || cancelled != nil && i%2 == 0 {
			s.t.Fatal(replayed, discarded, cancelled)
		}
	}
	if err := s.store.Pause(s.t.Context(), s.now, "dead", audit.Actor{Name: words[1], Address: words[1]}); err != nil {
		s.t.Fatal(err)
	}
	s.operate(words)
	s.judge(words)
}

// operate acts on many jobs, which a hostile filter selects.
func (s shop) operate(words []string) {
	s.t.Helper()
	ctx := s.t.Context()
	now := s.now.Add(time.Second) // a scope is what changed before it was asked for
	for i, word := range words[:40] {
		by := audit.Actor{Name: word, Address: word}
		f := filter.Filter{Status: job.StatusDeadLetter, Type: word, Queue: "dead"}
		if f.Check() != nil { // no client gets that far with a * in a type
			continue
		}
		o, err := s.store.Operations.New(ctx, now, operation.Request{Kind: operation.Replay, Filter: f, Start: i%2 == 0, Key: fmt.Sprint(word, i)}, by)
		for more := true; more && err == nil; {
			more, err = s.store.Operations.Collect(ctx, now, o.ID)
		}
		if err == nil {
			_, err = s.store.Operations.Work(ctx, func() time.Time { return now }, o.ID, 10)
		}
		if err == nil && i%4 == 3 {
			_, err = s.store.Operations.Abort(ctx, now, o.ID, by)
		}
		if err != nil {
			s.t.Fatalf("%q: %v", word, err)
		}
	}
}

// judge writes notes on groups of failures, and says what becomes of them.
func (s shop) judge(words []string) {
	s.t.Helper()
	groups, err := s.store.Groups.List(s.t.Context(), s.now, failures.Filter{}, failures.Cursor{}, 60)
	if err != nil {
		s.t.Fatal(err)
	}
	for i, g := range groups.Groups {
		by := audit.Actor{Name: words[i], Address: words[i]}
		_, noted := s.store.Groups.Note(s.t.Context(), s.now, g.Fingerprint, words[i]+" "+words[i], by)
		to := failures.Decision{State: failures.States()[i%3]}
		_, stands := s.store.Groups.Decide(s.t.Context(), s.now, g.Fingerprint, to, by)
		if noted != nil || stands != nil && i%3 != 0 {
			s.t.Fatal(noted, stands)
		}
	}
}

// typeOf makes a word the type of a job, which has neither NUL nor star.
func typeOf(word string) string { return strings.NewReplacer("\x00", "", "*", "∗").Replace(word) }

func (s shop) enqueue(queue string, words []string) {
	s.t.Helper()
	var jobs []job.Job
	for i, word := range words {
		text, err := json.Marshal(map[string]any{word: word, "list": []any{word, 1, nil, map[string]any{word: true}}})
		if err != nil {
			s.t.Fatal(err)
		}
		j := job.Job{
			Token: job.Token{ID: HostileID(queue, i)}, Queue: queue, Type: typeOf(word), Payload: text, Meta: text,
			Key: fmt.Sprintf("%s%s%d", word, queue, i), TraceID: word, Note: word,
		}
		if queue == "done" {
			j.Payload = []byte(word) // not JSON at all
		}
		patch := retry.Patch{}
		if queue == "held" {
			patch.NonRetryable = &[]string{word}
		}
		if err := s.config.Admit(&j, patch); err != nil {
			s.t.Fatal(err)
		}
		jobs = append(jobs, j)
	}
	if _, err := s.store.Enqueue(s.t.Context(), s.now, jobs); err != nil {
		s.t.Fatal(err)
	}
}

// run lets the jobs of a queue end as its name says, each in the hands of a
// worker that is called as the job.
func (s shop) run(queue string) {
	s.t.Helper()
	claimed, _, err := s.store.Exchange(context.Background(), nil, job.Claim{
		Worker: "<b>worker", Now: s.now, Lease: time.Hour, Free: map[string]int{queue: 10_000},
	})
	if err != nil {
		s.t.Fatal(err)
	}
	if queue == "active" {
		return
	}
	var ended []job.Settlement
	for _, j := range claimed {
		word := j.Type
		j.Worker = word
		end := job.Ending{
			Outcome: job.Failed, FinishedAt: s.now.Add(time.Second), Note: word,
			Error: job.ErrorInfo{Type: word, Message: word}, Trace: word + "\n\tat " + word,
		}
		if queue == "done" {
			end = job.Ending{Outcome: job.Succeeded, FinishedAt: end.FinishedAt}
		}
		delivery := job.Delivery{}
		if queue == "refused" {
			delivery = job.Delivery{Problem: word}
		}
		ended = append(ended, j.Settle(end, func() float64 { return 0.5 }).Delivered(delivery))
	}
	if _, _, err := s.store.Exchange(context.Background(), ended, job.Claim{}); err != nil {
		s.t.Fatal(err)
	}
}

// The queues of the hostile shop, by what happens to their jobs.
const hostileConfig = `
queues:
  dead:    {policy: {max_attempts: 1}}
  refused: {policy: {max_attempts: 1}}
  retried: {policy: {max_attempts: 5, initial_interval: 1h}}
  active:  {ttr: 1h}
  done:    {ttr: 1h}
  held:    {ttr: 1h}
  ` + LongQueue + `: {policy: {max_attempts: 1}}
`

// LongQueue is a queue of the hostile shop with a name that fits into no column.
const LongQueue = "queue-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789-0123456789"

// AsJSON is the JSON text of a value.
func AsJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // the test's own fault
	}
	return string(data)
}
