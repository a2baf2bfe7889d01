package templates

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// onExhaustion says what happens after the last attempt.
func onExhaustion(v JobPage) string {
	switch {
	case v.Job.Policy.OnExhaustion != retry.DeadLetter:
		return actionWord(v.Job.Policy.OnExhaustion)
	case v.DeadLetters:
		return "dead letter"
	}
	return "dead letter, but the queue has no dead-letter queue: it will be refused"
}

// timeLimit is the longest that an attempt may take.
func timeLimit(d time.Duration) string {
	if d <= 0 {
		return "none"
	}
	return duration(d) + " per attempt"
}

// metaFacts are the top-level entries of a job's meta object, as they were
// written; the trace id among them.
func metaFacts(meta json.RawMessage) []node {
	t := treeOf(meta, 4<<10)
	if t.root == nil || t.root.kind != objectNode {
		return nil
	}
	return t.root.children[:min(len(t.root.children), 20)]
}

// scalar is the text of a value in one line, without its quotes.
func (n node) scalar() string {
	if n.kind == objectNode || n.kind == arrayNode {
		return n.summary()
	}
	return visible(strings.Trim(n.text, `"`))
}

// event is an entry of a job's history.
type event struct {
	at   time.Time
	who  string // empty when nobody in particular
	what string
}

// maxEvents bounds the history on the page.
const maxEvents = 60

// historyOf lists what happened to a job between its attempts, newest first.
func historyOf(v JobPage) []event {
	var all []event
	add := func(at time.Time, who, what string) {
		if !at.IsZero() {
			all = append(all, event{at: at, who: who, what: what})
		}
	}
	j := v.Job
	enqueued := "enqueued"
	if j.Key != "" {
		enqueued += ", key " + visible(job.Clip(j.Key, 80))
	}
	add(j.EnqueuedAt, "", enqueued)
	for _, l := range v.Letters {
		if l.Refused {
			add(l.FailedAt, "", "dead letter refused: "+becauseOf(l.Reason).short)
		} else {
			add(l.FailedAt, "", "dead-lettered: "+becauseOf(l.Reason).short)
		}
		add(l.DiscardedAt, by(l.DiscardedBy), "discarded its dead letter")
	}
	for _, r := range v.Replays {
		add(r.At, by(r.By), "replayed it, run "+number(r.Run+1))
	}
	switch {
	case j.State == job.Completed:
		add(j.FinishedAt, "", "succeeded")
	case j.State == job.Cancelled:
		add(latest(j.FinishedAt, j.ChangedAt), "", "cancelled by hand")
	case j.State == job.Discarded && !slices.ContainsFunc(v.Letters, func(l job.DeadLetter) bool { return l.Run == j.Run }):
		add(latest(j.FinishedAt, j.ChangedAt), "", "discarded: "+becauseOf(j.Reason).short)
	}
	slices.SortStableFunc(all, func(a, b event) int { return b.at.Compare(a.at) })
	return all
}
