package sources

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"time"

	"redrive/internal/source"
	"redrive/internal/store/db"
)

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

const knownColumns = `m.job_seq, m.key, m.lineage, m.version, m.present,
	EXISTS (SELECT 1 FROM source_acts AS a WHERE a.job_seq = m.job_seq AND a.state IN ('asked', 'begun')),
	CASE m.present WHEN 0 THEN coalesce((SELECT CASE WHEN a.state IN ('unknown', 'untold') AND j.run = a.run
			AND CASE a.kind WHEN 'replay' THEN j.state IN ('returning', 'returned') ELSE j.letter = 'trashed' END THEN a.id END
		FROM source_acts AS a JOIN jobs AS j ON j.seq = m.job_seq WHERE a.job_seq = m.job_seq
		ORDER BY a.id DESC LIMIT 1), 0) ELSE 0 END`

func (k *Known) fields() []any {
	return []any{&k.Seq, &k.Key, &k.Lineage, &k.Version, &k.Present, &k.UnderWay, &k.Doubt}
}

// Lookup tells what the mirror knows of records: by their keys, and by the lineages of
// those whose keys are new. A key and a lineage are as the database keeps them, see
// [db.Clean]: a NUL would end them on their way to the query.
func Lookup(src db.Source, name string, records []source.Record) (byKey, byLineage map[string]Known, err error) {
	const keys = `SELECT ` + knownColumns + ` FROM mirrored AS m WHERE m.source = $1 AND m.key IN (SELECT value FROM json_each($2))`
	const ofLineages = `SELECT ` + knownColumns + ` FROM mirrored AS m
		WHERE m.source = $1 AND m.lineage IN (SELECT value FROM json_each($2)) ORDER BY m.job_seq`

	wanted := make([]string, len(records))
	for i, r := range records {
		wanted[i] = db.Clean(r.Key)
	}

	byKey, byLineage = map[string]Known{}, map[string]Known{}
	found, err := db.All(src, keys, (*Known).fields, name, db.Texts(wanted))
	for _, k := range found {
		byKey[k.Key] = k
	}

	wanted = wanted[:0]

	if err != nil {
		return nil, nil, err
	}

	// A record whose key is new may be the next run of a job that is known: it has the same lineage.
	for _, r := range records {
		if _, known := byKey[db.Clean(r.Key)]; !known && r.Lineage != "" {
			wanted = append(wanted, db.Clean(r.Lineage))
		}
	}

	if len(wanted) == 0 {
		return byKey, byLineage, nil
	}

	found, err = db.All(src, ofLineages, (*Known).fields, name, db.Texts(wanted))
	for _, k := range found { // the newest job of a lineage comes last
		if !k.Present || k.UnderWay { // one that is still there under its own key is another record
			byLineage[k.Lineage] = k
		}
	}

	return byKey, byLineage, err
}

// Duplicates are records that are still at a source, as far as is known, with the lineage of one
// of these records under another key. Either the job was replayed elsewhere and died again,
// or the source has it twice. With "present = 1", SQLite would read the index of all records
// that are there, for the order.
func (p *Projection) Duplicates(ctx context.Context, name string, records []source.Record) ([]source.Present, error) {
	const query = `SELECT job_seq, key, lineage, place, version_token, raw FROM mirrored
		WHERE source = $1 AND lineage IN (SELECT value FROM json_each($2)) AND present <> 0
			AND key NOT IN (SELECT value FROM json_each($3)) ORDER BY job_seq LIMIT $4 + 0`

	var lineages, keys []string
	for _, r := range records {
		keys = append(keys, db.Clean(r.Key))
		if r.Lineage != "" {
			lineages = append(lineages, db.Clean(r.Lineage))
		}
	}

	if len(lineages) == 0 {
		return nil, nil
	}

	return db.All(p.reader.In(ctx), query, presentFields, name, db.Texts(lineages), db.Texts(keys), len(records))
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
	return db.NewBatch(11, `INSERT INTO mirrored
			(job_seq, source, key, lineage, place, version_token, version, present, seen_at, warnings, raw)
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
	return t.Run(`UPDATE mirrored SET present = 0 WHERE job_seq IN (SELECT value FROM json_each($1))`, db.Numbers(seqs))
}

// Present writes down that the record of a job is at its source after all.
func Present(t *db.Tx, seq int64) error {
	return t.ExecExactly(1, `UPDATE mirrored SET present = 1 WHERE job_seq = $1`, seq)
}

// Happened writes down that the unknown act that began a run did happen, as its source
// says by now.
func Happened(t *db.Tx, seq int64, run int, why string) error {
	const update = `UPDATE source_acts SET state = 'done', why = $3, payload = NULL
		WHERE job_seq = $1 AND run = $2 AND kind = 'replay' AND state = 'unknown'`
	return t.Run(update, seq, run, why)
}

// Of is what is known of a job's record; nil when it has none.
func Of(src db.Source, seq int64) (*source.Mirrored, error) {
	const query = `SELECT key, lineage, place, version_token, present, seen_at, warnings FROM mirrored WHERE job_seq = $1`
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
		WHERE source = $1 AND present = 1 AND job_seq > $2 AND seen_at < $3 ORDER BY job_seq LIMIT $4 + 0`
	fields := func(k *source.PresentKey) []any { return []any{&k.Seq, &k.Key} }
	return db.All(p.reader.In(ctx), query, fields, name, after, db.Micros(before), limit)
}

// Present returns the records of jobs, by their numbers, that are still at the source.
func (p *Projection) Present(ctx context.Context, seqs []int64) ([]source.Present, error) {
	const query = `SELECT job_seq, key, lineage, place, version_token, raw FROM mirrored
		WHERE job_seq IN (SELECT value FROM json_each($1)) AND present <> 0`
	return db.All(p.reader.In(ctx), query, presentFields, db.Numbers(seqs))
}

// Returned pages through the jobs that a source has, or may have because the fate of their
// replay is unknown, and whose runs have not been heard of since: those that it took before
// the last one of the previous page, the newest first.
func (p *Projection) Returned(ctx context.Context, name string, before source.ReplayedJob, limit int) ([]source.ReplayedJob, error) {
	const query = `SELECT j.seq, j.run, j.changed_at, m.key, m.lineage, m.place FROM jobs AS j INDEXED BY jobs_returned
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
