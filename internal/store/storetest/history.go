package storetest

import (
	"cmp"
	"slices"
	"time"

	"pgregory.net/rapid"

	"redrive/internal/audit"
	"redrive/internal/failures"
	"redrive/internal/job"
	"redrive/internal/retry"
	"redrive/internal/stats"
)

var histories = []func(*kit){HistoryAgreesWithTheModel}

// HistoryAgreesWithTheModel: after any sequence of what workers, people, time
// and restarts do, the store agrees with a model that is a map of jobs, every
// counter is the sum of what happened, and jobs_failed = jobs_requeued +
// jobs_failed_permanently. A failure prints the seed and the shortest sequence.
func HistoryAgreesWithTheModel(k *kit) {
	rapid.Check(k.T, func(rt *rapid.T) {
		h := &random{
			T: rt, kit: openKit(k.T, k.db), jobs: map[string]*job.Job{}, trash: map[string]job.Job{}, paused: map[string]bool{},
			ended: map[string]int{}, from: map[job.Token]int64{},
		}
		rt.Cleanup(func() { h.must(h.kit.Close()) }) // hundreds of stores would be open until the end
		rt.Repeat(map[string]func(*rapid.T){
			"":         h.agree,
			"enqueue":  h.enqueue,
			"claim":    h.claimSome,
			"settle":   h.settleSome,
			"extend":   h.extend,
			"replay":   h.replay,
			"discard":  h.discard,
			"restore":  h.restore,
			"cancel":   h.cancel,
			"pause":    h.pause,
			"wait":     h.wait,
			"reopen":   h.reopen,
			"complete": h.details,
		})
		h.details(rt)
	})
}

// random is one random sequence with its model.
type random struct {
	*rapid.T
	kit    *kit
	jobs   map[string]*job.Job
	trash  map[string]job.Job // as they were
	order  []string           // ids, by Seq
	tokens []job.Token        // of every execution that ever began
	paused map[string]bool
	ended  map[string]int // executions that ended, by job
	totals stats.Totals
	groups []failures.Group    // by number, from 1
	from   map[job.Token]int64 // the group from which a run was replayed; no execution
}

func (h *random) must(err error) {
	if err != nil {
		h.Fatal(err)
	}
}

func (h *random) queue(t *rapid.T) string {
	return rapid.SampledFrom([]string{"a", "b"}).Draw(t, "queue")
}

// some draws a job that exists.
func (h *random) some(t *rapid.T) *job.Job {
	if len(h.order) == 0 {
		t.Skip("no job")
	}
	return h.jobs[rapid.SampledFrom(h.order).Draw(t, "job")]
}

func (h *random) enqueue(t *rapid.T) {
	j := in(h.queue(t))

	j.Policy = policy(rapid.IntRange(1, 3).Draw(t, "attempts"))
	j.Priority = rapid.IntRange(-1, 1).Draw(t, "priority")
	if rapid.Bool().Draw(t, "later") {
		j.RunAt = h.kit.now.Add(2 * time.Second)
	}

	done, err := h.kit.Enqueue(h.kit.ctx, h.kit.now, []job.Job{j, j})
	h.must(err)

	for _, d := range done {
		h.jobs[d.Job.ID] = &d.Job
		h.order = append(h.order, d.Job.ID)
	}
}

// next are the jobs that a claim has to take, in their order.
func (h *random) next(queue string, n int) []string {
	var available, scheduled, retryable []*job.Job
	for _, id := range h.order {
		switch j := h.jobs[id]; {
		case j.Queue != queue || h.paused[queue]:
		case j.State == job.Available:
			available = append(available, j)
		case j.State == job.Scheduled && !j.RunAt.After(h.kit.now):
			scheduled = append(scheduled, j)
		case j.State == job.Retryable && !j.RunAt.After(h.kit.now):
			retryable = append(retryable, j)
		}
	}

	byTime := func(a, b *job.Job) int { return a.RunAt.Compare(b.RunAt) }
	byRank := func(a, b *job.Job) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), byTime(a, b), cmp.Compare(a.Seq, b.Seq))
	}
	slices.SortStableFunc(available, byRank)
	slices.SortStableFunc(scheduled, byTime)
	slices.SortStableFunc(retryable, byTime)

	all := available
	for _, due := range [][]*job.Job{scheduled, retryable} {
		all = append(all, due[:min(n, len(due))]...)
	}

	slices.SortStableFunc(all, byRank)

	got := []string{}
	for _, j := range all[:min(n, len(all))] {
		got = append(got, j.ID)
	}

	return got
}

func (h *random) claimSome(t *rapid.T) {
	queue, n := h.queue(t), rapid.IntRange(1, 4).Draw(t, "n")
	want := h.next(queue, n)
	claimed, _, err := h.kit.Exchange(h.kit.ctx, nil, job.Claim{
		Worker: "w", Now: h.kit.now, Lease: time.Minute, Free: map[string]int{queue: n},
	})
	h.must(err)

	if got := ids(claimed); !slices.Equal(got, want) {
		t.Fatalf("claimed %v, want %v", got, want)
	}

	for _, j := range claimed {
		m := h.jobs[j.ID]
		if j.Execution != m.Execution+1 || j.Run != m.Run || j.Attempts != m.Attempts {
			t.Fatalf("claimed %+v, the model has %+v", j, m)
		}

		j.Error = m.Error // workers do not need it
		*m = j
		h.tokens = append(h.tokens, j.Token)
	}
}

// settleSome ends an execution, often one that has lost its lease.
func (h *random) settleSome(t *rapid.T) {
	if len(h.tokens) == 0 {
		t.Skip("no execution")
	}

	token := rapid.SampledFrom(h.tokens).Draw(t, "token")
	outcome := rapid.SampledFrom([]job.Outcome{job.Succeeded, job.Failed, job.Failed, job.Lost, job.Interrupted}).Draw(t, "outcome")
	deadLetters := rapid.Bool().Draw(t, "letters")
	m := h.jobs[token.ID]
	as := *m
	as.Token = token

	end := h.kit.ending(outcome)
	if end.Error.Type != "" {
		end.Error.Type = rapid.SampledFrom([]string{"http.503", "http.502"}).Draw(t, "class")
	}

	_, stale, err := h.kit.Exchange(h.kit.ctx, []job.Settlement{as.Settle(end, nil).Delivered(job.InDeadLetters(as.Queue, deadLetters))}, job.Claim{})
	h.must(err)

	if live := m.State == job.Active && m.Token == token; live == (len(stale) > 0) {
		t.Fatalf("settlement of %v: %d stale, the model has %+v", token, len(stale), m)
	} else if live {
		h.settled(m, end, deadLetters)
	}
}

// settled is what the rules say, in the model's own words.
func (h *random) settled(m *job.Job, e job.Ending, deadLetters bool) {
	o := e.Outcome

	h.ended[m.ID]++
	defer h.proved(m)

	seen := m.LastSeen
	m.Worker, m.LeaseUntil, m.LastSeen, m.ChangedAt = "", time.Time{}, time.Time{}, h.kit.now
	if o == job.Interrupted {
		m.State, m.RunAt = job.Available, h.kit.now
		return
	}

	m.Attempts++
	if o == job.Succeeded {
		m.State, m.Error, m.FinishedAt = job.Completed, job.ErrorInfo{}, h.kit.now
		h.totals.Succeeded++
		return
	}

	h.totals.Failed++
	m.Error = e.Error
	h.grouped(m, e.Error.Type)

	if m.Attempts < m.Policy.MaxAttempts {
		m.State, m.RunAt = job.Retryable, h.kit.now.Add(time.Second)
		if o == job.Lost {
			m.RunAt = seen.Add(time.Second)
		}

		if !m.RunAt.After(h.kit.now) { // it has waited for its lease to run out long enough
			m.State = job.Available
		}

		h.totals.Requeued++

		return
	}

	m.State, m.Reason, m.DeadLetter, m.FinishedAt = job.Discarded, retry.AttemptsExhausted, job.DeadLetterStored, h.kit.now
	h.totals.FailedPermanently++
	if !deadLetters {
		m.DeadLetter = job.DeadLetterRefused
		h.totals.DLQFailed++
	}
}

func (h *random) extend(t *rapid.T) {
	m := h.some(t)
	until := h.kit.now.Add(time.Minute)
	stale, err := h.kit.Extend(h.kit.ctx, h.kit.now, until, []job.Token{m.Token})
	h.must(err)

	if (m.State == job.Active) == (len(stale) > 0) {
		t.Fatalf("extend of %+v: %d stale", m, len(stale))
	}

	if m.State == job.Active {
		m.LeaseUntil, m.LastSeen = until, h.kit.now
	}
}

func (h *random) replay(t *rapid.T) {
	m := h.some(t)

	run := rapid.IntRange(max(1, m.Run-1), m.Run).Draw(t, "run")
	got, err := h.kit.Replay(h.kit.ctx, h.kit.now, m.ID, run, audit.Actor{Name: "eve"})
	if allowed := run == m.Run && m.Replayable(); !allowed {
		h.kit.conflict(err)
		return
	}

	h.must(err)
	h.totals.Replayed++
	delete(h.trash, m.ID)

	if m.Group != 0 {
		h.from[job.Token{ID: m.ID, Run: m.Run + 1}] = m.Group
		h.groups[m.Group-1].Replayed++
		m.Group = 0
	}

	m.Run, m.State, m.DeadLetter, m.Attempts, m.Reason, m.Error = m.Run+1, job.Available, "", 0, "", job.ErrorInfo{}
	m.RunAt, m.ChangedAt, m.FinishedAt = h.kit.now, h.kit.now, time.Time{}
	h.kit.same("the replayed job", got, *m)
}

func (h *random) discard(t *rapid.T) {
	m := h.some(t)
	run := rapid.IntRange(max(1, m.Run-1), m.Run).Draw(t, "run")
	was, allowed := *m, m.Discardable() && run == m.Run
	_, err := h.kit.Discard(h.kit.ctx, h.kit.now, m.ID, run, audit.Actor{Name: "eve"})
	h.finish(m, job.Discarded, allowed, err)

	if allowed {
		h.trash[m.ID], m.DeadLetter = was, job.DeadLetterTrashed
	}
}

func (h *random) restore(t *rapid.T) {
	m := h.some(t)
	run := rapid.IntRange(max(1, m.Run-1), m.Run).Draw(t, "run")

	got, err := h.kit.Restore(h.kit.ctx, h.kit.now, m.ID, run, audit.Actor{Name: "eve"})
	was, trashed := h.trash[m.ID]
	if !trashed || run != m.Run {
		h.kit.conflict(err)
		return
	}

	h.must(err)

	*m = was
	delete(h.trash, m.ID)
	h.kit.same("the restored job", got, *m)
}

func (h *random) cancel(t *rapid.T) {
	m := h.some(t)
	run := rapid.IntRange(max(1, m.Run-1), m.Run).Draw(t, "run")

	allowed := m.Cancellable() && run == m.Run
	_, err := h.kit.Cancel(h.kit.ctx, h.kit.now, m.ID, run, audit.Actor{Name: "eve"})
	if allowed && m.State == job.Active {
		h.ended[m.ID]++
	}

	h.finish(m, job.Cancelled, allowed, err)
}

func (h *random) finish(m *job.Job, state job.State, allowed bool, err error) {
	if !allowed {
		h.kit.conflict(err)
		return
	}

	h.must(err)

	m.State, m.DeadLetter, m.Reason, m.Worker, m.LeaseUntil, m.LastSeen = state, "", retry.Manual, "", time.Time{}, time.Time{}
	m.ChangedAt, m.FinishedAt = h.kit.now, h.kit.now
}

func (h *random) pause(t *rapid.T) {
	queue := h.queue(t)
	if h.paused[queue] {
		h.must(h.kit.Resume(h.kit.ctx, h.kit.now, queue, audit.Actor{Name: "eve"}))
	} else {
		h.must(h.kit.Pause(h.kit.ctx, h.kit.now, queue, audit.Actor{Name: "eve"}))
	}

	h.paused[queue] = !h.paused[queue]
}

func (h *random) wait(*rapid.T)   { h.kit.pass(700 * time.Millisecond) }
func (h *random) reopen(*rapid.T) { h.kit.restart() }
