package counters

import "redrive/internal/job"

// labels bounds the names by which counters are told apart: each is a time
// series for whoever collects the metrics, and producers choose the names.
type labels struct{ queues, types map[string]bool }

const (
	maxLabels  = 1000
	otherLabel = "other"
)

// bound returns the counters with every name past the first thousand replaced.
func (l labels) bound(counters map[label]job.Totals) map[label]job.Totals {
	queues, types := bounded{known: l.queues}, bounded{known: l.types}
	out := make(map[label]job.Totals, len(counters))
	for k, n := range counters {
		k = label{queues.name(k.queue), types.name(k.typ)}
		out[k] = out[k].Add(n)
	}
	return out
}

// boundMinutes does so for the counters by the minute, with types only: each
// queue's last hour is shown with the queue.
func (l labels) boundMinutes(minutes map[minuteKey]job.Totals) map[minuteKey]job.Totals {
	types := bounded{known: l.types}
	out := make(map[minuteKey]job.Totals, len(minutes))
	for k, n := range minutes {
		k.typ = types.name(k.typ)
		out[k] = out[k].Add(n)
	}
	return out
}

// boundLetters does so with the counts of open dead letters. A name that is known
// stays known, so that a letter is counted out where it was counted in.
func (l labels) boundLetters(letters map[letterKey]int64) map[letterKey]int64 {
	queues, types := bounded{known: l.queues}, bounded{known: l.types}
	out := make(map[letterKey]int64, len(letters))
	for k, n := range letters {
		out[letterKey{label{queues.name(k.queue), types.name(k.typ)}, k.reason}] += n
	}
	return out
}

func (l labels) learn(k label) { l.queues[k.queue], l.types[k.typ] = true, true }

// bounded gives out names within the bound, counting those that are not yet
// known because their transaction may still fail.
type bounded struct{ known, fresh map[string]bool }

func (b *bounded) name(s string) string {
	if b.known[s] || b.fresh[s] {
		return s
	}
	if len(b.known)+len(b.fresh) >= maxLabels {
		return otherLabel
	}
	if b.fresh == nil {
		b.fresh = map[string]bool{}
	}
	b.fresh[s] = true
	return s
}
