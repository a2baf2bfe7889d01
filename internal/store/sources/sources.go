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

		// Jobs of the old address stay with it, unless the source was moved with its records.
		if noted != "" && noted != movedFrom {
			has, err := db.Value[bool](t, `SELECT EXISTS (SELECT 1 FROM mirrored WHERE source = $1)`, name)
			if err != nil || has {
				return noted, err
			}
		}

		return "", t.Run(note, name, address)
	})
}

// Invariants are what holds after every commit.
func (*Projection) Invariants() []db.Invariant {
	return []db.Invariant{
		{What: "each job of a source has a record there, and no other job has", Query: `SELECT id FROM jobs AS j
			WHERE (j.source <> '') <> EXISTS (SELECT 1 FROM mirrored AS m WHERE m.job_seq = j.seq AND m.source = j.source)`},
		{What: "only jobs of a source are with it, or on their way there", Query: `SELECT id FROM jobs
			WHERE state IN ('returning', 'returned') AND source = ''`},
		{What: "each act on a source belongs to a job", Query: `SELECT 'act ' || a.id AS id FROM source_acts AS a
			WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE seq = job_seq)`},
		{What: "each open dead letter of a source is there, or an act on it is under way", Query: `SELECT j.id AS id FROM jobs AS j
			JOIN mirrored AS m ON m.job_seq = j.seq WHERE m.present = 0 AND j.letter = 'stored'`},
	}
}
