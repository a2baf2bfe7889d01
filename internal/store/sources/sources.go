// Package sources is the projection of the dead letters at the sources: which job shows which
// record, and the ledger of what people asked the sources to do.
//
// A row of the ledger is written in the transaction that moves its job, so a replay
// that a user was promised is never forgotten. It is noted as begun before the source
// is told, and is settled with what the source answered: what had begun when a process
// ended is looked up at the source and never simply told again.
package sources

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/store/db"
	"redrive/internal/store/projection"
)

// Projection keeps the mirror and the ledger.
type Projection struct {
	writer *db.Writer
	reader *db.Reader
}

// New returns a projection.
func New(writer *db.Writer, reader *db.Reader) *Projection {
	return &Projection{writer: writer, reader: reader}
}

// Flush writes nothing: rows are written at once.
func (*Projection) Flush(*db.Tx) error { return nil }

// Committed has nothing to make known.
func (*Projection) Committed(*db.Tx) {}

// Asked writes down what a person asked sources to do to these jobs. What a source is not
// told has ended at once: Redrive no longer counts on the record, and if the source is
// attached again and still has it, the job comes back.
func (*Projection) Asked(t *db.Tx, ask projection.Ask) error {
	state, ended, why := source.Asked, time.Time{}, ""
	if ask.Unattached {
		state, ended, why = source.NotTold, ask.At, "the source was not attached"
	}

	acts := db.NewBatch(13, `INSERT INTO source_acts
		(source, job_seq, run, kind, mode, asked_at, by, operation_id, due, payload, state, ended_at, why) VALUES `, "")
	seqs := make([]int64, len(ask.Jobs))
	for i, j := range ask.Jobs {
		seqs[i] = j.Seq

		err := acts.Add(t, j.Source, j.Seq, j.Run, string(ask.Kind), string(ask.Mode), db.Micros(ask.At), ask.By.Name, ask.Operation,
			db.Micros(ask.Due), ask.Payload, string(state), db.Micros(ended), why)
		if err != nil {
			return err
		}
	}

	err := acts.Flush(t)
	if err != nil || !ask.Unattached {
		return err
	}

	return Left(t, seqs)
}

// Removed forgets the records at the source of jobs that are removed.
func (*Projection) Removed(t *db.Tx, jobs []job.Job) error {
	var seqs []int64
	for _, j := range jobs {
		if j.Source != "" {
			seqs = append(seqs, j.Seq)
		}
	}

	if len(seqs) == 0 {
		return nil
	}

	these := db.Numbers(seqs)

	return db.Steps(t,
		db.Any(`DELETE FROM mirrored WHERE job_seq IN (SELECT value FROM json_each($1))`, these),
		db.Any(`DELETE FROM source_acts WHERE job_seq IN (SELECT value FROM json_each($1))`, these))
}

// Known is what the mirror knows of a record.
type Known struct {
	Seq      int64 // of its job
	Key      string
	Lineage  string
	Version  int64
	Present  bool
	UnderWay bool // an act on it has not ended

	// Doubt is the newest act on the record, if its fate is unknown, or the source was not
	// told, and the record has not been seen since; else 0. It lasts while the job is where
	// the act has moved it: returning or returned in the run of a replay, or in the trash.
	Doubt int64
}

const knownColumns = `m.job_seq, m.key, m.thread, m.mark, m.lies,
	EXISTS (SELECT 1 FROM source_acts AS a WHERE a.job_seq = m.job_seq AND a.state IN ('asked', 'begun')),
	CASE m.lies WHEN 0 THEN coalesce((SELECT CASE WHEN a.state IN ('unknown', 'untold') AND j.run = a.run
			AND CASE a.kind WHEN 'replay' THEN j.state IN ('returning', 'returned') ELSE j.letter = 'trashed' END THEN a.id END
		FROM source_acts AS a JOIN jobs AS j ON j.seq = m.job_seq WHERE a.job_seq = m.job_seq
		ORDER BY a.id DESC LIMIT 1), 0) ELSE 0 END`

func (k *Known) fields() []any {
	return []any{&k.Seq, &k.Key, &k.Lineage, &k.Version, &k.Present, &k.UnderWay, &k.Doubt}
}

// Lookup tells what the mirror knows of records: by their keys, and by the threads of
// those whose keys are new. A key and a thread are as the database keeps them, see
// [db.Clean]: a NUL would end them on their way to the query.
func Lookup(src db.Source, name string, records []source.Record) (byKey, byThread map[string]Known, err error) {
	const keys = `SELECT ` + knownColumns + ` FROM mirrored AS m WHERE m.source = $1 AND m.key IN (SELECT value FROM json_each($2))`
	const threads = `SELECT ` + knownColumns + ` FROM mirrored AS m
		WHERE m.source = $1 AND m.thread IN (SELECT value FROM json_each($2)) ORDER BY m.job_seq`

	wanted := make([]string, len(records))
	for i, r := range records {
		wanted[i] = db.Clean(r.Key)
	}

	byKey, byThread = map[string]Known{}, map[string]Known{}
	found, err := db.All(src, keys, (*Known).fields, name, db.Texts(wanted))
	for _, k := range found {
		byKey[k.Key] = k
	}

	wanted = wanted[:0]

	if err != nil {
		return nil, nil, err
	}

	for _, r := range records {
		if _, known := byKey[db.Clean(r.Key)]; !known && r.Lineage != "" {
			wanted = append(wanted, db.Clean(r.Lineage))
		}
	}

	if len(wanted) == 0 {
		return byKey, byThread, nil
	}

	found, err = db.All(src, threads, (*Known).fields, name, db.Texts(wanted))
	for _, k := range found { // the newest job of a thread comes last
		if !k.Present || k.UnderWay { // one that is still there under its own key is another record
			byThread[k.Lineage] = k
		}
	}

	return byKey, byThread, err
}

// Duplicates are records that are still at a source, as far as is known, with the thread of one
// of these records under another key. Either the job was replayed elsewhere and died again,
// or the source has it twice. With "lies = 1", SQLite would read the index of all records
// that are there, for the order.
func (p *Projection) Duplicates(ctx context.Context, name string, records []source.Record) ([]source.Present, error) {
	const query = `SELECT job_seq, key, thread, place, witness, raw FROM mirrored
		WHERE source = $1 AND thread IN (SELECT value FROM json_each($2)) AND lies <> 0
			AND key NOT IN (SELECT value FROM json_each($3)) ORDER BY job_seq LIMIT $4 + 0`

	var threads, keys []string
	for _, r := range records {
		keys = append(keys, db.Clean(r.Key))
		if r.Lineage != "" {
			threads = append(threads, db.Clean(r.Lineage))
		}
	}

	if len(threads) == 0 {
		return nil, nil
	}

	return db.All(p.reader.In(ctx), query, presentFields, name, db.Texts(threads), db.Texts(keys), len(records))
}

// Unseen are those of the records that the mirror does not know as they are.
func (p *Projection) Unseen(ctx context.Context, name string, records []source.Record) ([]source.Record, error) {
	byKey, _, err := Lookup(p.reader.In(ctx), name, records)

	return slices.DeleteFunc(slices.Clone(records), func(r source.Record) bool {
		k, known := byKey[db.Clean(r.Key)]
		return known && k.Present && k.Version == r.Version()
	}), err
}

// Forget forgets the record of a job at its source, and the record there under a key.
func Forget(t *db.Tx, name string, seq int64, key string) error {
	return t.Run(`DELETE FROM mirrored WHERE job_seq = $1 OR source = $2 AND key = $3`, seq, name, key)
}

// NewNotes returns a batch for Note.
func NewNotes() db.Batch {
	return db.NewBatch(11, `INSERT INTO mirrored (job_seq, source, key, thread, place, witness, mark, lies, seen_at, warnings, raw)
		VALUES `, "")
}

// Note writes down that a record is at the source, and which job shows it. Whatever the
// mirror knew of the job and of the record's key was forgotten before.
func Note(t *db.Tx, notes *db.Batch, name string, seq int64, now time.Time, r *source.Record) error {
	warnings, err := json.Marshal(append([]string{}, r.Warnings...))
	if err != nil {
		return err
	}

	return notes.Add(t, seq, name, r.Key, r.Lineage, r.Place, r.VersionToken, r.Version(), 1, db.Micros(now), string(warnings), r.Raw)
}

// Left writes down that the records of these jobs are no longer at their source.
func Left(t *db.Tx, seqs []int64) error {
	return t.Run(`UPDATE mirrored SET lies = 0 WHERE job_seq IN (SELECT value FROM json_each($1))`, db.Numbers(seqs))
}

// Present writes down that the record of a job is at its source after all.
func Present(t *db.Tx, seq int64) error {
	return t.ExecExactly(1, `UPDATE mirrored SET lies = 1 WHERE job_seq = $1`, seq)
}

// Happened writes down that the unknown act that began a run did happen, as its source
// says by now.
func Happened(t *db.Tx, seq int64, run int, why string) error {
	const update = `UPDATE source_acts SET state = 'done', why = $3, payload = NULL
		WHERE job_seq = $1 AND run = $2 AND kind = 'replay' AND state = 'unknown'`
	return t.Run(update, seq, run, why)
}

// actColumns are those of an act, with what the mirror knows of its record. Its limit of
// attempts is that of the job's first run: at the source, a replay can have raised it.
const actColumns = `a.id, a.kind, a.mode, a.state, a.run, a.asked_at, a.ended_at, a.by, a.operation_id, a.why, a.due, a.payload,
	j.id, j.queue, j.type, (SELECT b.meta FROM bodies AS b WHERE b.job_seq = j.seq),
	coalesce(m.key, ''), coalesce(m.thread, ''), coalesce(m.place, ''), coalesce(m.witness, ''), m.raw,
	coalesce((SELECT json_extract(p.policy, '$.max_attempts') FROM policies AS p WHERE p.id = j.policy_id), 0)`

const actTables = ` FROM source_acts AS a JOIN jobs AS j ON j.seq = a.job_seq LEFT JOIN mirrored AS m ON m.job_seq = a.job_seq`

func actFields(a *source.Act) []any {
	return []any{
		&a.ID, (*string)(&a.Kind), (*string)(&a.Mode), (*string)(&a.State), &a.Run,
		db.Time(&a.AskedAt), db.Time(&a.EndedAt), &a.By, &a.Bulk, &a.Why, db.Time(&a.Due), &a.Payload,
		&a.JobID, &a.Queue, &a.Type, &a.Meta, &a.Key, &a.Lineage, &a.Place, &a.VersionToken, &a.Raw, &a.Limit,
	}
}

// Take notes the next acts of a source as begun and returns them, the oldest first.
func (p *Projection) Take(ctx context.Context, name string, most int) ([]source.Act, error) {
	const query = `SELECT ` + actColumns + actTables + ` WHERE a.source = $1 AND a.state = 'asked'
		AND a.state IN ('asked', 'begun', 'unknown') ORDER BY a.id LIMIT $2 + 0`
	const update = `UPDATE source_acts SET state = 'begun' WHERE id IN (SELECT value FROM json_each($1)) AND state = 'asked'`

	return db.Write(ctx, p.writer, most, func(t *db.Tx) ([]source.Act, error) {
		acts, err := db.All(t, query, actFields, name, most)
		if err != nil || len(acts) == 0 {
			return nil, err
		}

		ids := make([]int64, len(acts))
		for i := range acts {
			ids[i], acts[i].State = acts[i].ID, source.Begun
		}

		return acts, t.ExecExactly(len(ids), update, db.Numbers(ids))
	})
}

// Waiting reports whether an act of a source is asked for.
func (p *Projection) Waiting(ctx context.Context, name string) (bool, error) {
	const query = `SELECT EXISTS (SELECT 1 FROM source_acts WHERE source = $1 AND state = 'asked'
		AND state IN ('asked', 'begun', 'unknown'))`
	return db.Value[bool](p.reader.In(ctx), query, name)
}

// Open counts the acts of each source that have not ended.
func (p *Projection) Open(ctx context.Context) (map[string]int64, error) {
	// The second condition is that of the index, which SQLite takes only if it is written out.
	const query = `SELECT source, count(*) FROM source_acts
		WHERE state IN ('asked', 'begun') AND state IN ('asked', 'begun', 'unknown') GROUP BY source`
	return db.Map[string, int64](p.reader.In(ctx), query)
}

// Locate notes where a source is, unless its jobs are from another address. It returns that
// one then: a record at the new address could have the key of an old one. If the source was
// moved from there, its jobs go with it.
func (p *Projection) Locate(ctx context.Context, name, address, movedFrom string) (earlier string, err error) {
	const note = `INSERT INTO source_addresses (source, address) VALUES ($1, $2)
		ON CONFLICT (source) DO UPDATE SET address = excluded.address`

	return db.Write(ctx, p.writer, 1, func(t *db.Tx) (string, error) {
		noted, err := db.Value[string](t, `SELECT address FROM source_addresses WHERE source = $1`, name)
		if err != nil || noted == address {
			return "", err
		}

		if noted != "" && noted != movedFrom {
			has, err := db.Value[bool](t, `SELECT EXISTS (SELECT 1 FROM mirrored WHERE source = $1)`, name)
			if err != nil || has {
				return noted, err
			}
		}

		return "", t.Run(note, name, address)
	})
}

// Begun returns the acts of a source that have begun and whose end is not known.
func (p *Projection) Begun(ctx context.Context, name string, most int) ([]source.Act, error) {
	const query = `SELECT ` + actColumns + actTables + ` WHERE a.source = $1 AND a.state = 'begun'
		AND a.state IN ('asked', 'begun', 'unknown') ORDER BY a.id LIMIT $2 + 0`
	return db.All(p.reader.In(ctx), query, actFields, name, most)
}

// Reopen lets acts be asked for once more that had begun without a trace at the source.
func (p *Projection) Reopen(ctx context.Context, ids []int64) error {
	const update = `UPDATE source_acts SET state = 'asked' WHERE id IN (SELECT value FROM json_each($1)) AND state = 'begun'`
	return p.writer.Do(ctx, len(ids), func(t *db.Tx) error { return t.Run(update, db.Numbers(ids)) })
}

// End writes down how an act ended, and reports whether it was under way. The payload that
// it had is the job's by now. It is kept only while the fate of the act is unknown: if the
// record is still at its source, the job gets its earlier payload back.
func End(t *db.Tx, now time.Time, r source.Result) (bool, error) {
	const update = `UPDATE source_acts SET state = $2, ended_at = $3, why = $4, payload = CASE $2 WHEN 'unknown' THEN payload END
		WHERE id = $1 AND state IN ('asked', 'begun')`
	n, err := t.Exec(update, r.ID, string(r.State), db.Micros(now), r.Why)
	return n == 1, err
}

// EndReplays writes down that the source carried out replays, as far as they were under
// way, and returns those, by their acts, with the numbers of their jobs.
func EndReplays(t *db.Tx, now time.Time, results []source.Result) (acts map[int64]bool, seqs []int64, err error) {
	const query = `SELECT id, job_seq FROM source_acts WHERE id IN (SELECT value FROM json_each($1))
		AND kind = 'replay' AND state IN ('asked', 'begun')`
	type under struct{ act, job int64 }

	var done []int64
	why := map[int64]string{}
	for _, r := range results {
		if r.State == source.Done {
			done, why[r.ID] = append(done, r.ID), r.Why
		}
	}

	if len(done) == 0 {
		return nil, nil, nil
	}

	found, err := db.All(t, query, func(u *under) []any { return []any{&u.act, &u.job} }, db.Numbers(done))
	if err != nil {
		return nil, nil, err
	}

	ended := db.NewBatch(3, `UPDATE source_acts SET state = 'done', ended_at = e.column2, why = e.column3, payload = NULL
		FROM (VALUES `, `) AS e WHERE id = e.column1`)
	acts = map[int64]bool{}
	for _, u := range found {
		acts[u.act], seqs = true, append(seqs, u.job)
		if err := ended.Add(t, u.act, db.Micros(now), why[u.act]); err != nil {
			return nil, nil, err
		}
	}

	return acts, seqs, ended.Flush(t)
}

// ByID is an act as the transaction sees it, with the number of its job.
func ByID(src db.Source, id int64) (a source.Act, seq int64, err error) {
	const query = `SELECT ` + actColumns + `, a.job_seq` + actTables + ` WHERE a.id = $1`
	_, err = db.Row(src, query, append(actFields(&a), &seq), id)
	return a, seq, err
}

// Acts lists acts of a source: first those whose end cannot be known, then the newest.
func (p *Projection) Acts(ctx context.Context, name string, most int) ([]source.Act, error) {
	const query = `SELECT ` + actColumns + actTables + ` WHERE a.source = $1 ORDER BY a.id DESC LIMIT $2 + 0`
	const unknown = `SELECT ` + actColumns + actTables + ` WHERE a.source = $1 AND a.state = 'unknown'
		AND a.state IN ('asked', 'begun', 'unknown') ORDER BY a.id DESC LIMIT $2 + 0`
	src := p.reader.In(ctx)

	first, err := db.All(src, unknown, actFields, name, most)
	if err != nil {
		return nil, err
	}

	newest, err := db.All(src, query, actFields, name, most)

	return append(first, slices.DeleteFunc(newest, func(a source.Act) bool { return a.State == source.Unknown })...), err
}

// Of is what is known of a job's record; nil when it has none.
func Of(src db.Source, seq int64) (*source.Mirrored, error) {
	const query = `SELECT key, thread, place, witness, lies, seen_at, warnings FROM mirrored WHERE job_seq = $1`
	const acts = `SELECT ` + actColumns + actTables + ` WHERE a.job_seq = $1 ORDER BY a.id DESC`
	m, warnings := new(source.Mirrored), ""

	found, err := db.Row(src, query, []any{&m.Key, &m.Lineage, &m.Place, &m.VersionToken, &m.Present, db.Time(&m.SeenAt), &warnings}, seq)
	if err != nil || !found {
		return nil, err
	}

	if err := json.Unmarshal([]byte(warnings), &m.Warnings); err != nil {
		return nil, err
	}

	m.Acts, err = db.All(src, acts, actFields, seq)

	return m, err
}

// presentFields are where the columns of a record that is present are read to.
func presentFields(p *source.Present) []any {
	return []any{&p.Seq, &p.Key, &p.Lineage, &p.Place, &p.VersionToken, &p.Raw}
}

// PresentKeys pages through the records of a source that are still there, as far as is known, and
// that were read before a time: those after a job's number, in their order.
func (p *Projection) PresentKeys(ctx context.Context, name string, before time.Time, after int64, limit int) ([]source.PresentKey, error) {
	const query = `SELECT job_seq, key FROM mirrored
		WHERE source = $1 AND lies = 1 AND job_seq > $2 AND seen_at < $3 ORDER BY job_seq LIMIT $4 + 0`
	fields := func(k *source.PresentKey) []any { return []any{&k.Seq, &k.Key} }
	return db.All(p.reader.In(ctx), query, fields, name, after, db.Micros(before), limit)
}

// Present returns the records of jobs, by their numbers, that are still at the source.
func (p *Projection) Present(ctx context.Context, seqs []int64) ([]source.Present, error) {
	const query = `SELECT job_seq, key, thread, place, witness, raw FROM mirrored
		WHERE job_seq IN (SELECT value FROM json_each($1)) AND lies <> 0`
	return db.All(p.reader.In(ctx), query, presentFields, db.Numbers(seqs))
}

// Returned pages through the jobs that a source has, or may have because the fate of their
// replay is unknown, and whose runs have not been heard of since: those that it took before
// the last one of the previous page, the newest first.
func (p *Projection) Returned(ctx context.Context, name string, before source.ReplayedJob, limit int) ([]source.ReplayedJob, error) {
	const query = `SELECT j.seq, j.run, j.changed_at, m.key, m.thread, m.place FROM jobs AS j INDEXED BY jobs_returned
		JOIN mirrored AS m ON m.job_seq = j.seq
		WHERE j.source = $1 AND j.state = 'returned'
			AND (j.changed_at, j.seq) < ($2, $3) ORDER BY j.changed_at DESC, j.seq DESC LIMIT $4 + 0`

	since := int64(math.MaxInt64)
	if !before.Since.IsZero() {
		since = db.Micros(before.Since)
	}

	return db.All(p.reader.In(ctx), query, func(h *source.ReplayedJob) []any {
		return []any{&h.Seq, &h.Run, db.Time(&h.Since), &h.Key, &h.Lineage, &h.Place}
	}, name, since, before.Seq, limit)
}

// Invariants are what holds after every commit.
func (*Projection) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "each job of a source has a record there, and no other job has", Query: `SELECT id FROM jobs AS j
			WHERE (j.source <> '') <> EXISTS (SELECT 1 FROM mirrored AS m WHERE m.job_seq = j.seq AND m.source = j.source)`},
		{What: "only jobs of a source are with it, or on their way there", Query: `SELECT id FROM jobs
			WHERE state IN ('returning', 'returned') AND source = ''`},
		{What: "each act on a source belongs to a job", Query: `SELECT 'act ' || id AS id FROM source_acts
			WHERE job_seq NOT IN (SELECT seq FROM jobs)`},
		{What: "each open dead letter of a source is there, or an act on it is under way", Query: `SELECT j.id AS id FROM jobs AS j
			JOIN mirrored AS m ON m.job_seq = j.seq WHERE m.lies = 0 AND j.letter = 'stored'`},
	}
}
