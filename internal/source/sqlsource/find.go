package sqlsource

import (
	"context"
	"database/sql"
	"errors"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
)

// Find says where the records of acts are.
func (o *Origin) Find(ctx context.Context, acts []source.Act) (all []source.Result, err error) {
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	for _, a := range acts {
		r, err := o.find(ctx, a)
		if err != nil {
			return all, err
		}

		all = append(all, r)
	}

	return all, nil
}

// why says why an act found no row.
func (o *Origin) why(ctx context.Context, a source.Act) (source.Result, error) {
	r, err := o.find(ctx, a)
	switch r.State {
	case source.Done:
		r.State, r.Why = source.Gone, "It was replayed elsewhere and is under way again."
	case source.Asked:
		r.State, r.Why = source.Refused, o.preset.Refused
		if r.Why == "" {
			r.Why = "The record is there unchanged, but the statement of the preset does not match it."
		}
	}

	return r, err
}

// find looks for a record by its key. Where other rows have the same key, the one with its
// version token counts.
func (o *Origin) find(ctx context.Context, a source.Act) (source.Result, error) {
	r := source.Result{ID: a.ID, State: source.Gone}
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.same, map[string]any{"key": meant(a.Key), "witness": meant(a.VersionToken)})

		rows, err := t.QueryContext(ctx, o.engine.bounded+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		// A row with the version token of the record is that record, unchanged. One with
		// another token counts only if no such row follows.
		for r.State != source.Asked && rows.Next() {
			var token any
			if err := rows.Scan(&token); err != nil {
				return err
			}

			if o.keep(token) == a.VersionToken {
				r.State, r.Why = source.Asked, ""
			} else {
				r.State, r.Why = source.Changed, "It has died again since it was read."
			}
		}

		// The rows are closed before underWay asks within the same transaction.
		if err := errors.Join(rows.Err(), rows.Close()); err != nil || r.State != source.Gone {
			return err
		}

		return o.underWay(ctx, t, a, &r)
	})

	return r, err
}

// underWay looks whether the job of a record that is no longer there is under way. Where a
// replay makes another row of the job, that row is looked for only if a replay asks, because
// the search takes more.
func (o *Origin) underWay(ctx context.Context, t *sql.Tx, a source.Act, r *source.Result) error {
	query := o.preset.Alive
	switch {
	case query == "" && a.Kind != source.Replay:
		return nil
	// The queue is in Redis, and the job is looked for there.
	case o.work != nil:
		pushed, err := o.work.Pushed(ctx, source.QueueAtSource(a.Queue, a.Meta), mark(a))
		if pushed {
			r.State = source.Done
		}

		return err
	case query == "":
		query = o.preset.Pushed
	}

	if query == "" {
		return nil
	}

	query, args := o.bind(query, map[string]any{"key": meant(a.Key), "thread": meant(a.Lineage)})

	n := 0
	err := t.QueryRowContext(ctx, o.engine.bounded+query, args...).Scan(&n)
	if n > 0 {
		r.State = source.Done
	}

	if _, k, _ := errorOf(err); err != nil && k == denied { // who may not look cannot tell
		return nil
	}

	return err
}

// mark names a record together with its version token in the queue of another store.
func mark(a source.Act) string { return a.Key + ":" + a.VersionToken }

// Succeeded says which jobs the database keeps as ones that have succeeded.
func (o *Origin) Succeeded(ctx context.Context, returned []source.ReplayedJob) (all []source.Success, err error) {
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	byKey := make(map[string]source.ReplayedJob, len(returned))
	keys := make([]any, len(returned))
	for i, r := range returned {
		byKey[r.Key] = r
		keys[i] = meant(r.Key)
	}

	query, args := o.bind(o.preset.Succeeded, map[string]any{"keys": keys})
	err = o.reading(ctx, func(t *sql.Tx) error {
		rows, err := t.QueryContext(ctx, o.engine.bounded+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		for rows.Next() {
			var key, at, attempts any
			if err := rows.Scan(&key, &at, &attempts); err != nil {
				return err
			}

			name := o.keep(key)
			if r, asked := byKey[name]; asked {
				delete(byKey, name) // each is told once

				all = append(all, source.Success{ReplayedJob: r, At: o.timeOf(at), Attempts: int(numberOf(attempts))})
			}
		}

		return rows.Err()
	})

	return all, err
}
