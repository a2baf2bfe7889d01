package store

import (
	"fmt"
	"time"

	"redrive/internal/job"
	"redrive/internal/retry"
)

// delta adds up what one transaction counts, so that each rollup row is written
// once, and not at all when the sum is zero.
type delta struct {
	depths   map[depthKey]int64
	held     map[label]int64
	counters map[label]job.Totals
	minutes  map[minuteKey]job.Totals
	reasons  map[letterKey]int64
	opened   map[int64]int64 // open letters by the hour in which their jobs failed, since 1970
	groupDeltas
}

type depthKey struct {
	queue  string
	status job.Status
}

// letterKey is by what open dead letters are counted.
type letterKey struct {
	label
	reason retry.Reason
}

// label is the pair by which counters are told apart.
type label struct{ queue, typ string }

type minuteKey struct {
	minute int64 // since 1970
	label
}

func newDelta() delta {
	return delta{
		map[depthKey]int64{}, map[label]int64{}, map[label]job.Totals{}, map[minuteKey]job.Totals{}, map[letterKey]int64{}, map[int64]int64{},
		newGroupDeltas(),
	}
}

// depth counts n jobs as j under its state, and under the view beside it.
func (d *delta) depth(j job.Job, n int64) {
	d.depths[depthKey{j.Queue, job.Status(j.State)}] += n
	if view := j.Status(); view != job.Status(j.State) {
		d.depths[depthKey{j.Queue, view}] += n
		if view == job.StatusHeld {
			d.held[label{j.Queue, j.Type}] += n
		}
	}
}

// letter counts n open letters of a job that failed at a time.
func (d *delta) letter(j job.Job, failedAt time.Time, n int64) {
	d.reasons[letterKey{label{j.Queue, j.Type}, j.Reason}] += n
	d.opened[micros(failedAt)/microsPerHour] += n
}

// count raises the counters of a queue and type, in the minute at.
func (d *delta) count(queue, typ string, at int64, t job.Totals) {
	if t == (job.Totals{}) {
		return
	}
	l := label{queue, typ}
	m := minuteKey{at / microsPerMinute, l}
	d.counters[l] = d.counters[l].Add(t)
	d.minutes[m] = d.minutes[m].Add(t)
}

const microsPerMinute = 60_000_000

// flush writes the sums, just before the commit.
func (t *tx) flush() error {
	if len(t.changes) == 0 && len(t.paused) == 0 && !t.touched {
		return nil
	}
	for _, step := range []func() error{t.flushDepths, t.flushHeld, t.flushCounters, t.flushMinutes, t.flushReasons, t.flushGroups, t.flushRevision} {
		if err := step(); err != nil {
			return fmt.Errorf("write the rollups: %w", err)
		}
	}
	return nil
}

func (t *tx) flushDepths() error {
	rows := batch{
		head: `INSERT INTO depths (queue, status, n) VALUES `, row: `(?, ?, ?)`, columns: 3,
		tail: ` ON CONFLICT (queue, status) DO UPDATE SET n = depths.n + excluded.n`,
	}
	for k, n := range t.delta.depths {
		if n == 0 && t.rollup.queues[k.queue] {
			continue
		}
		if err := rows.add(t, k.queue, string(k.status), n); err != nil {
			return err
		}
	}
	return rows.flush(t, 1)
}

func (t *tx) flushHeld() error {
	const upsert = `INSERT INTO held (queue, type, n) VALUES ($1, $2, $3)
		ON CONFLICT (queue, type) DO UPDATE SET n = held.n + excluded.n`
	for k, n := range t.delta.held {
		if n == 0 {
			continue
		}
		if _, err := t.exec(upsert, k.queue, k.typ, n); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) flushCounters() error {
	rows := batch{
		head: `INSERT INTO counters (queue, type, succeeded, failed, requeued, failed_permanently, dlq_failed, replayed) VALUES `,
		row:  `(?, ?, ?, ?, ?, ?, ?, ?)`, columns: 8,
		tail: ` ON CONFLICT (queue, type) DO UPDATE SET succeeded = counters.succeeded + excluded.succeeded,
			failed = counters.failed + excluded.failed, requeued = counters.requeued + excluded.requeued,
			failed_permanently = counters.failed_permanently + excluded.failed_permanently,
			dlq_failed = counters.dlq_failed + excluded.dlq_failed, replayed = counters.replayed + excluded.replayed`,
	}
	t.delta.counters = t.rollup.labels.bound(t.delta.counters)
	for k, n := range t.delta.counters {
		err := rows.add(t, k.queue, k.typ, n.Succeeded, n.Failed, n.Requeued, n.FailedPermanently, n.DLQFailed, n.Replayed)
		if err != nil {
			return err
		}
	}
	return rows.flush(t, 1)
}

func (t *tx) flushMinutes() error {
	rows := batch{
		head: `INSERT INTO minutes (minute, queue, type, succeeded, failed, requeued, failed_permanently, dlq_failed, replayed) VALUES `,
		row:  `(?, ?, ?, ?, ?, ?, ?, ?, ?)`, columns: 9,
		tail: ` ON CONFLICT (minute, queue, type) DO UPDATE SET succeeded = minutes.succeeded + excluded.succeeded,
			failed = minutes.failed + excluded.failed, requeued = minutes.requeued + excluded.requeued,
			failed_permanently = minutes.failed_permanently + excluded.failed_permanently,
			dlq_failed = minutes.dlq_failed + excluded.dlq_failed, replayed = minutes.replayed + excluded.replayed`,
	}
	newest := t.rollup.minute
	t.delta.minutes = t.rollup.labels.boundMinutes(t.delta.minutes)
	for k, n := range t.delta.minutes {
		err := rows.add(t, k.minute, k.queue, k.typ, n.Succeeded, n.Failed, n.Requeued, n.FailedPermanently, n.DLQFailed, n.Replayed)
		if err != nil {
			return err
		}
		newest = max(newest, k.minute)
	}
	if err := rows.flush(t, 1); err != nil || newest == t.rollup.minute {
		return err
	}
	// A new minute began: forget what is older than a day.
	const forget = `DELETE FROM minutes WHERE minute < $1`
	_, err := t.exec(forget, newest-keptMinutes)
	return err
}

// keptMinutes is how far back the counters are kept by the minute.
const keptMinutes = 24 * 60

func (t *tx) flushReasons() error {
	rows := batch{
		head: `INSERT INTO reasons (queue, type, reason, n) VALUES `, row: `(?, ?, ?, ?)`, columns: 4,
		tail: ` ON CONFLICT (queue, type, reason) DO UPDATE SET n = reasons.n + excluded.n`,
	}
	t.delta.reasons = t.rollup.labels.boundLetters(t.delta.reasons)
	for k, n := range t.delta.reasons {
		if n == 0 {
			continue
		}
		if err := rows.add(t, k.queue, k.typ, string(k.reason), n); err != nil {
			return err
		}
	}
	return rows.flush(t, 1)
}

func (t *tx) flushRevision() error {
	const update = `UPDATE revision SET n = n + 1, newest = $1`
	_, err := t.exec(update, t.seq)
	return err
}
