package counters

import (
	"database/sql"

	"redrive/internal/stats"
	"redrive/internal/store/db"
)

// keptMinutes is for how many minutes the counters of each minute are kept: a day.
const keptMinutes = 24 * 60

// totalColumns are the counters in the order in which totalFields and totals
// list them.
const totalColumns = `succeeded, failed, requeued, failed_permanently, dlq_failed, replayed`

// totalFields returns the fields of t for a scan of totalColumns, after others.
func totalFields(t *stats.Totals, before ...any) []any {
	return append(before, &t.Succeeded, &t.Failed, &t.Requeued, &t.FailedPermanently, &t.DLQFailed, &t.Replayed)
}

// totals returns the values of t for an insert into totalColumns, after others.
func totals(t stats.Totals, before ...any) []any {
	return append(before, t.Succeeded, t.Failed, t.Requeued, t.FailedPermanently, t.DLQFailed, t.Replayed)
}

// adding returns the end of an INSERT that adds the counters to those of the row with the same
// key, if there is one.
func adding(table, key string) string {
	return ` ON CONFLICT (` + key + `) DO UPDATE SET succeeded = ` + table + `.succeeded + excluded.succeeded,
		failed = ` + table + `.failed + excluded.failed, requeued = ` + table + `.requeued + excluded.requeued,
		failed_permanently = ` + table + `.failed_permanently + excluded.failed_permanently,
		dlq_failed = ` + table + `.dlq_failed + excluded.dlq_failed, replayed = ` + table + `.replayed + excluded.replayed`
}

// addingN is adding for a table with a single count, n.
func addingN(table, key string) string {
	return ` ON CONFLICT (` + key + `) DO UPDATE SET n = ` + table + `.n + excluded.n`
}

// The statements that add sums to their rows.
var (
	addLabels   = db.NewBatch(3, `INSERT INTO labels (kind, source, name) VALUES `, "")
	addDepths   = db.NewBatch(3, `INSERT INTO depths (queue, status, n) VALUES `, addingN("depths", "queue, status"))
	addHeld     = db.NewBatch(3, `INSERT INTO held (queue, type, n) VALUES `, addingN("held", "queue, type"))
	addCounters = db.NewBatch(8, `INSERT INTO counters (queue, type, `+totalColumns+`) VALUES `, adding("counters", "queue, type"))
	addMinutes  = db.NewBatch(9, `INSERT INTO minutes (minute, queue, type, `+totalColumns+`) VALUES `,
		adding("minutes", "minute, queue, type"))
	addDeadLetters = db.NewBatch(4, `INSERT INTO reasons (queue, type, reason, n) VALUES `, addingN("reasons", "queue, type, reason"))
)

// Flush adds the sums of the transaction to their tables. It writes each row once, and none that
// would not change.
func (p *Projection) Flush(t *db.Tx) error {
	err := db.Steps(t, p.flushLabels, p.flushDepths, p.flushHeld, p.flushCounters,
		p.flushMinutes, p.flushDeadLetters)
	return db.Wrap(err, "write the counters")
}

// flushDepths adds to the counts of jobs. It writes a count of zero for a queue that is new and
// has no job any more, so that the queue is known from now on.
func (p *Projection) flushDepths(t *db.Tx) error {
	g := p.gathered.In(t)

	return db.AddSums(t, addDepths, g.depths, func(k depthKey, n int64) []any {
		if n == 0 && p.queues[k.queue] && !g.removed[k.queue] {
			return nil
		}
		return []any{k.queue, string(k.status), n}
	})
}

// flushHeld adds to the counts of jobs that wait for a handler, and deletes those that are zero
// then. Otherwise the table would grow with every type that a producer invents.
func (p *Projection) flushHeld(t *db.Tx) error {
	var fewer [][2]string
	err := db.AddSums(t, addHeld, p.gathered.In(t).held, func(k label, n int64) []any {
		if n == 0 {
			return nil
		}

		if n < 0 {
			fewer = append(fewer, [2]string{k.queue, k.typ})
		}

		return []any{k.queue, k.typ, n}
	})
	if err != nil || len(fewer) == 0 {
		return err
	}

	const forget = `DELETE FROM held WHERE n = 0 AND (queue, type) IN (SELECT value ->> 0, value ->> 1 FROM json_each($1))`

	return t.Run(forget, db.Rows(fewer))
}

// flushCounters adds to the counters of queues and types.
func (p *Projection) flushCounters(t *db.Tx) error {
	return db.AddSums(t, addCounters, p.gathered.In(t).counters, func(k label, n stats.Totals) []any { return totals(n, k.queue, k.typ) })
}

// flushMinutes adds to the counters of minutes. When it writes the first count of a minute, it
// deletes those that are older than a day.
func (p *Projection) flushMinutes(t *db.Tx) error {
	newest := p.minute
	err := db.AddSums(t, addMinutes, p.gathered.In(t).minutes, func(k minuteKey, n stats.Totals) []any {
		newest = max(newest, k.minute)
		return totals(n, k.minute, k.queue, k.typ)
	})
	if err != nil || newest == p.minute {
		return err
	}

	const forget = `DELETE FROM minutes WHERE minute < $1`

	return t.Run(forget, newest-keptMinutes)
}

// flushDeadLetters adds to the counts of open dead letters.
func (p *Projection) flushDeadLetters(t *db.Tx) error {
	return db.AddSums(t, addDeadLetters, p.gathered.In(t).deadLetters, func(k deadLetterKey, n int64) []any {
		if n == 0 {
			return nil
		}
		return []any{k.queue, k.typ, string(k.reason), n}
	})
}

// Load reads the counts from the database. It is called once, at the start.
func (p *Projection) Load(src db.Source) error {
	err := db.Steps(src, p.queueLabels.load, p.typeLabels.load, p.loadSourceTypes, p.loadMinutes, p.loadDepths, p.loadCounters,
		p.loadDeadLetters, p.loadOpened, p.loadQueues)
	p.publishNames()
	return db.Wrap(err, "read the counters")
}

// loadMinutes reads the counters of the hour that ends with the newest minute.
func (p *Projection) loadMinutes(src db.Source) (err error) {
	p.minute, err = db.Value[int64](src, `SELECT coalesce(max(minute), 0) FROM minutes`)
	if err != nil {
		return err
	}

	const query = `SELECT minute, sum(succeeded), sum(failed), sum(requeued), sum(failed_permanently), sum(dlq_failed), sum(replayed)
		FROM minutes WHERE minute > $1 GROUP BY minute`

	return src.Query(query, func(rows *sql.Rows) error {
		var minute int64
		var t stats.Totals
		err := rows.Scan(totalFields(&t, &minute)...)
		p.memory.recent[minute] = t

		return err
	}, p.minute-lastHour)
}

// loadDepths reads how many jobs each queue has by status, which also tells the known queues.
func (p *Projection) loadDepths(src db.Source) error {
	all, err := depths(src)
	for _, d := range all {
		p.depths[d.status] += d.n
		p.memory.depths[d.depthKey] = d.n
		p.learn(d.queue, true)
	}

	return err
}

// depth is a row of the table depths.
type depth struct {
	depthKey
	n int64
}

func depths(src db.Source) ([]depth, error) {
	const query = `SELECT queue, status, n FROM depths`
	return db.All(src, query, func(d *depth) []any { return []any{&d.queue, &d.status, &d.n} })
}

// loadCounters adds up the counters of all queues and types.
func (p *Projection) loadCounters(src db.Source) error {
	const query = `SELECT ` + totalColumns + ` FROM counters`

	return src.Query(query, func(rows *sql.Rows) error {
		var t stats.Totals
		err := rows.Scan(totalFields(&t)...)
		p.totals = p.totals.Add(t)
		return err
	})
}

// loadDeadLetters reads the counts of open dead letters.
func (p *Projection) loadDeadLetters(src db.Source) error {
	const query = `SELECT queue, type, reason, n FROM reasons WHERE n > 0`

	return src.Query(query, func(rows *sql.Rows) error {
		var k deadLetterKey
		var n int64
		err := rows.Scan(&k.queue, &k.typ, &k.reason, &n)
		p.memory.deadLetters[k] = n

		return err
	})
}

// loadOpened counts our own open dead letters by the hour in which their jobs failed: only those
// within a day before the newest, because no caller asks for older ones. Counting all of them
// would make the start slower with every dead letter that is kept.
func (p *Projection) loadOpened(src db.Source) (err error) {
	const query = `SELECT changed_at / CAST($1 AS BIGINT) AS hour, count(*) FROM jobs
		WHERE letter = 'stored' AND source = '' AND changed_at >= (
			SELECT max(changed_at) FROM jobs WHERE letter = 'stored' AND source = '') - 24 * CAST($1 AS BIGINT) GROUP BY hour`
	p.memory.opened, err = db.Map[int64, int64](src, query, int64(db.MicrosPerHour))

	return err
}

// loadQueues reads the queues that were paused, which may never have had a job.
func (p *Projection) loadQueues(src db.Source) error {
	names, err := db.All(src, `SELECT name FROM queues`, func(name *string) []any { return []any{name} })
	for _, name := range names {
		p.LearnQueue(name)
	}

	return err
}
