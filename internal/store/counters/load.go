package counters

import (
	"database/sql"
	"fmt"

	"redrive/internal/queues"
	"redrive/internal/store/db"
)

// Load reads the counts at the start.
func (b *Book) Load(src db.Source) error {
	for _, step := range []func(db.Source) error{b.loadMinute, b.loadDepths, b.loadCounters, b.loadLetters, b.loadOpened, b.loadQueues} {
		if err := step(src); err != nil {
			return fmt.Errorf("read the counters: %w", err)
		}
	}
	b.publishNames()
	return nil
}

func (b *Book) loadMinute(src db.Source) error {
	const query = `SELECT coalesce(max(minute), 0) FROM minutes`
	return src.Query(query, func(rows *sql.Rows) error { return rows.Scan(&b.minute) })
}

func (b *Book) loadDepths(src db.Source) error {
	return eachDepth(src, func(k depthKey, n int64) {
		b.depths[k.status] += n
		b.queued[k] = n
		b.queues[k.queue] = true
	})
}

func eachDepth(src db.Source, each func(depthKey, int64)) error {
	const query = `SELECT queue, status, n FROM depths`
	return src.Query(query, func(rows *sql.Rows) error {
		var k depthKey
		var n int64
		err := rows.Scan(&k.queue, &k.status, &n)
		each(k, n)
		return err
	})
}

func (b *Book) loadCounters(src db.Source) error {
	return tallies(src, func(t queues.Tally) {
		b.totals = b.totals.Add(t.Totals)
		b.labels.learn(label{t.Queue, t.Type})
	})
}

// loadLetters reads the counts of open dead letters, and makes the names known
// under which they are counted.
func (b *Book) loadLetters(src db.Source) error {
	const query = `SELECT queue, type, reason, n FROM reasons WHERE n > 0`
	return src.Query(query, func(rows *sql.Rows) error {
		var k letterKey
		var n int64
		err := rows.Scan(&k.queue, &k.typ, &k.reason, &n)
		b.letters[k] = n
		b.labels.learn(k.label)
		return err
	})
}

// loadOpened counts open dead letters by the hour in which their jobs failed.
func (b *Book) loadOpened(src db.Source) error {
	const query = `SELECT failed_at / CAST($1 AS BIGINT) AS hour, count(*) FROM dead_letters WHERE open = 1 GROUP BY hour`
	return src.Query(query, func(rows *sql.Rows) error {
		var hour, n int64
		err := rows.Scan(&hour, &n)
		b.opened[hour] = n
		return err
	}, int64(db.MicrosPerHour))
}

// loadQueues learns of queues that were paused before they had a job.
func (b *Book) loadQueues(src db.Source) error {
	const query = `SELECT name FROM queues`
	return src.Query(query, func(rows *sql.Rows) error {
		var name string
		err := rows.Scan(&name)
		b.queues[name] = true
		return err
	})
}
