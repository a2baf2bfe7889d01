// Package mirror keeps the dead letters of sources as jobs. It takes over the records that
// are read there, settles what people asked a source to do, and ends the jobs whose records
// have left or of which the source says that they succeeded. What it knows of each record is
// in the projection sources; how a job changes is in package core.
package mirror

import (
	"context"
	"fmt"
	"slices"
	"time"

	"redrive/internal/fingerprint"
	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/store/core"
	"redrive/internal/store/counters"
	"redrive/internal/store/db"
	"redrive/internal/store/rows"
	"redrive/internal/store/sources"
)

// Mirror writes what sources say into the store.
type Mirror struct {
	core     *core.Core
	writer   *db.Writer
	policies *rows.Policies
	counters *counters.Projection
}

// New returns the mirror of a store.
func New(c *core.Core, w *db.Writer, p *rows.Policies, n *counters.Projection) *Mirror {
	return &Mirror{core: c, writer: w, policies: p, counters: n}
}

// rowsOfRecord is what the record of a source writes, roughly.
const rowsOfRecord = 6

// mirrored is a record with the job that shows it, as far as that is known before the
// transaction.
type mirrored struct {
	*source.Record
	job    job.Job
	policy rows.PolicyText
	cause  fingerprint.Cause
}

// Update takes over the dead letters of a source:
//
//   - A new record becomes a job in the dead-letter queue, at the time when it died.
//   - A record that has died again, or that is back after it had left, is another run of
//     its job, which has failed.
//   - A record that is still there as it was, although an act took its job out of the dead
//     letters, brings the job back: the source did not do it, or was never told.
//   - A record on which an act is under way is left alone until the act has ended.
//
// What failed first comes first, as if each record had been read when it died: of several
// records that can be the next run of one job, the first is that run, and the others are other
// jobs. Two records with one key are one record. Update returns how many jobs came or changed.
func (m *Mirror) Update(ctx context.Context, now time.Time, name string, records []source.Record) (int, error) {
	all, size := m.prepare(now, name, records)

	return db.WriteLarge(ctx, m.writer, size, func(t *db.Tx) (int, error) {
		m.place(t, name, all)

		byKey, byLineage, err := sources.Lookup(t, name, records)
		if err != nil {
			return 0, err
		}

		// Bring the jobs up to date that are here already, and put the others aside.
		var fresh []*mirrored
		changed := 0

		updated := make(map[int64]bool, len(all)) // by the numbers of jobs
		deaths := newDeaths(now, name)
		for _, r := range all {
			// The job of a lineage goes on in one record: that is where it is from then on. Another
			// record of the lineage is another job.
			known, ok := recognised(r, byKey, byLineage)
			if !ok || updated[known.Seq] {
				fresh = append(fresh, r)
				continue
			}

			did, err := m.bringUpToDate(t, now, deaths, known, r)
			if err != nil {
				return 0, fmt.Errorf("mirror %s of source %s: %w", r.Key, name, err)
			}

			if did {
				updated[known.Seq] = true
				changed++
			}
		}

		// Make jobs of those that are new.
		err = m.appear(t, deaths, fresh)
		if err != nil {
			return 0, err
		}

		return changed + len(fresh), deaths.flush(t)
	})
}

// prepare makes the jobs of records, as far as that can be done before the transaction. What
// failed first comes first.
func (m *Mirror) prepare(now time.Time, name string, records []source.Record) ([]*mirrored, db.Size) {
	all := make([]*mirrored, 0, len(records))

	met := make(map[string]bool, len(records))
	for i := range records {
		key := db.Clean(records[i].Key)
		if !met[key] {
			met[key] = true
			all = append(all, newMirrored(now, name, &records[i]))
		}
	}

	slices.SortStableFunc(all, func(a, b *mirrored) int { return a.job.ChangedAt.Compare(b.job.ChangedAt) })

	jobs := make([]job.Job, len(all))
	size := db.Size{Rows: rowsOfRecord * len(all), Account: name}
	for i, r := range all {
		r.job.ID = job.NewID() // from now on: ids tell when a job was added, in the order of the numbers
		jobs[i] = r.job
		size.Bytes += len(jobs[i].Payload) + len(jobs[i].Meta)
	}

	for i, text := range m.policies.Texts(jobs) {
		all[i].policy = text
	}

	return all, size
}

// bringUpToDate does to the job of a known record what the record says, and reports whether
// that was anything.
func (m *Mirror) bringUpToDate(t *db.Tx, now time.Time, d *deaths, known sources.Known, r *mirrored) (bool, error) {
	// A record under another key is another death, even if nothing else tells the two apart.
	same := known.Key == db.Clean(r.Key) && known.Version == r.Version()

	switch {
	case known.UnderWay || known.Present && same:
		return false, nil
	case same && known.Doubt != 0:
		return true, m.foundAgain(t, now, known)
	}

	return true, m.diedAgain(t, d, known.Seq, r)
}

// recognised returns what the mirror knows of a record, by its key or else by its lineage. A
// record whose lineage belongs to another record that is at the source, too, is another job.
func recognised(r *mirrored, byKey, byLineage map[string]sources.Known) (known sources.Known, ok bool) {
	known, ok = byKey[db.Clean(r.Key)]
	if ok {
		return known, true
	}

	known, ok = byLineage[db.Clean(r.Lineage)]
	if !ok || known.UnderWay {
		return known, ok
	}

	_, beside := byKey[known.Key]

	return known, !known.Present && !beside
}

// place puts the jobs of records into the queues for which their source has places. All
// others share one queue. Where a record belongs stays in its metadata when its job is in a
// queue of another name, and at the source, which is where a replay takes it from.
func (m *Mirror) place(t *db.Tx, name string, all []*mirrored) {
	wanted := make([]string, len(all))
	for i, r := range all {
		wanted[i] = source.Queue(name, r.Record.Queue)
	}

	refused := m.counters.Claim(t, name, wanted)

	for i, r := range all {
		r.job.Queue = wanted[i]
		if refused[wanted[i]] {
			r.job.Queue = source.Overflow(name)
		}

		r.job.Meta = source.WithQueue(r.Record.Meta, r.job.Queue, r.Record.Queue)
	}
}
