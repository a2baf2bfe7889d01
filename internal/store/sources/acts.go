package sources

import (
	"context"
	"slices"
	"time"

	"redrive/internal/source"
	"redrive/internal/store/db"
)

// actColumns are those of an act, with what the mirror knows of its record. Its limit of
// attempts is that of the job's first run: at the source, a replay can have raised it.
const actColumns = `a.id, a.kind, a.mode, a.state, a.run, a.asked_at, a.ended_at, a.by, a.operation_id, a.why, a.due, a.payload,
	j.id, j.queue, j.type, (SELECT b.meta FROM bodies AS b WHERE b.job_seq = j.seq),
	coalesce(m.key, ''), coalesce(m.lineage, ''), coalesce(m.place, ''), coalesce(m.version_token, ''), m.raw,
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

	// Those that a person or a restart has ended meanwhile are left as they are.
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
