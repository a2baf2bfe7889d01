package counters

import (
	"database/sql"
	"maps"

	"redrive/internal/job"
	"redrive/internal/store/db"
)

// keptMinutes is how far back the counters are kept by the minute.
const keptMinutes = 24 * 60

// totalColumns are the counters in the order in which totalFields and totals
// list them.
const totalColumns = `succeeded, failed, requeued, failed_permanently, dlq_failed, replayed`

func totalFields(t *job.Totals, before ...any) []any {
	return append(before, &t.Succeeded, &t.Failed, &t.Requeued, &t.FailedPermanently, &t.DLQFailed, &t.Replayed)
}

func totals(t job.Totals, before ...any) []any {
	return append(before, t.Succeeded, t.Failed, t.Requeued, t.FailedPermanently, t.DLQFailed, t.Replayed)
}

// adding is the end of a statement that adds to the counters of a table.
func adding(table, key string) string {
	return ` ON CONFLICT (` + key + `) DO UPDATE SET succeeded = ` + table + `.succeeded + excluded.succeeded,
		failed = ` + table + `.failed + excluded.failed, requeued = ` + table + `.requeued + excluded.requeued,
		failed_permanently = ` + table + `.failed_permanently + excluded.failed_permanently,
		dlq_failed = ` + table + `.dlq_failed + excluded.dlq_failed, replayed = ` + table + `.replayed + excluded.replayed`
}

// addingN does so for a table with one count.
func addingN(table, key string) string {
	return ` ON CONFLICT (` + key + `) DO UPDATE SET n = ` + table + `.n + excluded.n`
}

// Flush writes the sums, each row once and none that would not change.
func (b *Book) Flush(t *db.Tx) error {
	b.sums.bound(b.labels)
	err := db.Steps(t, b.flushDepths, b.flushHeld, b.flushCounters, b.flushMinutes, b.flushLetters)
	return db.Wrap(err, "write the counters")
}

// flushDepths also writes a queue that is new and holds nothing any more: it is
// known from now on.
func (b *Book) flushDepths(t *db.Tx) error {
	rows := db.NewBatch(3, `INSERT INTO depths (queue, status, n) VALUES `, addingN("depths", "queue, status"))
	return db.AddSums(t, rows, b.sums.depths, func(k depthKey, n int64) []any {
		if n == 0 && b.queues[k.queue] {
			return nil
		}
		return []any{k.queue, string(k.status), n}
	})
}

func (b *Book) flushHeld(t *db.Tx) error {
	rows := db.NewBatch(3, `INSERT INTO held (queue, type, n) VALUES `, addingN("held", "queue, type"))
	return db.AddSums(t, rows, b.sums.held, func(k label, n int64) []any {
		if n == 0 {
			return nil
		}
		return []any{k.queue, k.typ, n}
	})
}

func (b *Book) flushCounters(t *db.Tx) error {
	rows := db.NewBatch(8, `INSERT INTO counters (queue, type, `+totalColumns+`) VALUES `, adding("counters", "queue, type"))
	return db.AddSums(t, rows, b.sums.counters, func(k label, n job.Totals) []any { return totals(n, k.queue, k.typ) })
}

// flushMinutes forgets what is older than a day when a new minute begins.
func (b *Book) flushMinutes(t *db.Tx) error {
	rows := db.NewBatch(9, `INSERT INTO minutes (minute, queue, type, `+totalColumns+`) VALUES `, adding("minutes", "minute, queue, type"))
	newest := b.minute
	err := db.AddSums(t, rows, b.sums.minutes, func(k minuteKey, n job.Totals) []any {
		newest = max(newest, k.minute)
		return totals(n, k.minute, k.queue, k.typ)
	})
	if err != nil || newest == b.minute {
		return err
	}
	const forget = `DELETE FROM minutes WHERE minute < $1`
	return t.Run(forget, newest-keptMinutes)
}

func (b *Book) flushLetters(t *db.Tx) error {
	rows := db.NewBatch(4, `INSERT INTO reasons (queue, type, reason, n) VALUES `, addingN("reasons", "queue, type, reason"))
	return db.AddSums(t, rows, b.sums.letters, func(k letterKey, n int64) []any {
		if n == 0 {
			return nil
		}
		return []any{k.queue, k.typ, string(k.reason), n}
	})
}

// Load reads the counts at the start.
func (b *Book) Load(src db.Source) error {
	err := db.Steps(src, b.loadMinute, b.loadDepths, b.loadCounters, b.loadLetters, b.loadOpened, b.loadQueues)
	b.publishNames()
	return db.Wrap(err, "read the counters")
}

func (b *Book) loadMinute(src db.Source) (err error) {
	b.minute, err = db.Value[int64](src, `SELECT coalesce(max(minute), 0) FROM minutes`)
	return err
}

func (b *Book) loadDepths(src db.Source) error {
	all, err := depths(src)
	for _, d := range all {
		b.depths[d.status] += d.n
		b.queued[d.depthKey] = d.n
		b.queues[d.queue] = true
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

func (b *Book) loadCounters(src db.Source) error {
	all, err := tallies(src)
	for _, t := range all {
		b.totals = b.totals.Add(t.Totals)
		b.labels.learn(label{t.Queue, t.Type})
	}
	return err
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
func (b *Book) loadOpened(src db.Source) (err error) {
	const query = `SELECT failed_at / CAST($1 AS BIGINT) AS hour, count(*) FROM dead_letters WHERE open = 1 GROUP BY hour`
	b.opened, err = db.Map[int64, int64](src, query, int64(db.MicrosPerHour))
	return err
}

// loadQueues learns of queues that were paused before they had a job.
func (b *Book) loadQueues(src db.Source) error {
	names, err := db.Map[string, bool](src, `SELECT name, true FROM queues`)
	maps.Copy(b.queues, names)
	return err
}

// Invariants are what holds after every commit.
func (*Book) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "jobs by state are counted right", Query: `SELECT queue || ' ' || status AS id FROM (
			SELECT queue, status, n FROM depths WHERE status NOT IN ('dead_letter', 'dlq_failed', 'held', 'trashed')
			UNION ALL SELECT queue, state, -count(*) FROM jobs GROUP BY queue, state) GROUP BY queue, status HAVING sum(n) <> 0`},
		{What: "jobs by view are counted right", Query: `SELECT queue || ' ' || status AS id FROM (
			SELECT queue, status, n FROM depths WHERE status IN ('dead_letter', 'dlq_failed', 'held', 'trashed')
			UNION ALL SELECT queue, CASE letter WHEN 'stored' THEN 'dead_letter' WHEN 'refused' THEN 'dlq_failed' ELSE 'trashed' END, -count(*)
				FROM jobs WHERE letter <> '' GROUP BY 1, 2
			UNION ALL SELECT queue, 'held', -count(*) FROM jobs WHERE held = 1 GROUP BY queue) GROUP BY queue, status HAVING sum(n) <> 0`},
		{What: "what is counted adds up", Query: `SELECT queue || ' ' || type AS id FROM counters WHERE failed <> requeued + failed_permanently`},
		{What: "open dead letters are counted right", Query: `SELECT reason AS id FROM (SELECT reason, n FROM reasons
			UNION ALL SELECT reason, -count(*) FROM dead_letters WHERE open = 1 GROUP BY reason) GROUP BY reason HAVING sum(n) <> 0`},
	}
}
