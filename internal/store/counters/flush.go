package counters

import (
	"fmt"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// keptMinutes is how far back the counters are kept by the minute.
const keptMinutes = 24 * 60

// totalColumns are the counters in the order in which totalFields lists them.
const totalColumns = `succeeded, failed, requeued, failed_permanently, dlq_failed, replayed`

func totalFields(t *job.Totals) []any {
	return []any{&t.Succeeded, &t.Failed, &t.Requeued, &t.FailedPermanently, &t.DLQFailed, &t.Replayed}
}

// adding is the end of a statement that adds to the counters of a table.
func adding(table, key string) string {
	return ` ON CONFLICT (` + key + `) DO UPDATE SET succeeded = ` + table + `.succeeded + excluded.succeeded,
		failed = ` + table + `.failed + excluded.failed, requeued = ` + table + `.requeued + excluded.requeued,
		failed_permanently = ` + table + `.failed_permanently + excluded.failed_permanently,
		dlq_failed = ` + table + `.dlq_failed + excluded.dlq_failed, replayed = ` + table + `.replayed + excluded.replayed`
}

// Flush writes the sums.
func (b *Book) Flush(t *db.Tx) error {
	for _, step := range []func(*db.Tx) error{b.flushDepths, b.flushHeld, b.flushCounters, b.flushMinutes, b.flushLetters} {
		if err := step(t); err != nil {
			return fmt.Errorf("write the counters: %w", err)
		}
	}
	return nil
}

// flushDepths also writes a queue that is new and holds nothing any more: it is
// known from now on.
func (b *Book) flushDepths(t *db.Tx) error {
	rows := db.Batch{
		Head: `INSERT INTO depths (queue, status, n) VALUES `, Row: `(?, ?, ?)`, Columns: 3,
		Tail: ` ON CONFLICT (queue, status) DO UPDATE SET n = depths.n + excluded.n`,
	}
	for _, k := range sorted(b.sums.depths) {
		n := b.sums.depths[k]
		if n == 0 && b.queues[k.queue] {
			continue
		}
		if err := rows.Add(t, k.queue, string(k.status), n); err != nil {
			return err
		}
	}
	return rows.Flush(t)
}

func (b *Book) flushHeld(t *db.Tx) error {
	const upsert = `INSERT INTO held (queue, type, n) VALUES ($1, $2, $3)
		ON CONFLICT (queue, type) DO UPDATE SET n = held.n + excluded.n`
	for _, k := range sorted(b.sums.held) {
		if n := b.sums.held[k]; n != 0 {
			if _, err := t.Exec(upsert, k.queue, k.typ, n); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *Book) flushCounters(t *db.Tx) error {
	rows := db.Batch{
		Head: `INSERT INTO counters (queue, type, ` + totalColumns + `) VALUES `,
		Row:  `(?, ?, ?, ?, ?, ?, ?, ?)`, Columns: 8, Tail: adding("counters", "queue, type"),
	}
	b.sums.counters = b.labels.bound(b.sums.counters)
	for _, k := range sorted(b.sums.counters) {
		n := b.sums.counters[k]
		err := rows.Add(t, k.queue, k.typ, n.Succeeded, n.Failed, n.Requeued, n.FailedPermanently, n.DLQFailed, n.Replayed)
		if err != nil {
			return err
		}
	}
	return rows.Flush(t)
}

// flushMinutes forgets what is older than a day when a new minute begins.
func (b *Book) flushMinutes(t *db.Tx) error {
	rows := db.Batch{
		Head: `INSERT INTO minutes (minute, queue, type, ` + totalColumns + `) VALUES `,
		Row:  `(?, ?, ?, ?, ?, ?, ?, ?, ?)`, Columns: 9, Tail: adding("minutes", "minute, queue, type"),
	}
	newest := b.minute
	b.sums.minutes = b.labels.boundMinutes(b.sums.minutes)
	for _, k := range sorted(b.sums.minutes) {
		n := b.sums.minutes[k]
		err := rows.Add(t, k.minute, k.queue, k.typ, n.Succeeded, n.Failed, n.Requeued, n.FailedPermanently, n.DLQFailed, n.Replayed)
		if err != nil {
			return err
		}
		newest = max(newest, k.minute)
	}
	if err := rows.Flush(t); err != nil || newest == b.minute {
		return err
	}
	const forget = `DELETE FROM minutes WHERE minute < $1`
	_, err := t.Exec(forget, newest-keptMinutes)
	return err
}

func (b *Book) flushLetters(t *db.Tx) error {
	rows := db.Batch{
		Head: `INSERT INTO reasons (queue, type, reason, n) VALUES `, Row: `(?, ?, ?, ?)`, Columns: 4,
		Tail: ` ON CONFLICT (queue, type, reason) DO UPDATE SET n = reasons.n + excluded.n`,
	}
	b.sums.letters = b.labels.boundLetters(b.sums.letters)
	for _, k := range sorted(b.sums.letters) {
		if n := b.sums.letters[k]; n != 0 {
			if err := rows.Add(t, k.queue, k.typ, string(k.reason), n); err != nil {
				return err
			}
		}
	}
	return rows.Flush(t)
}
