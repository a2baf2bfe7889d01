package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// transact runs statements, of which the last one must change one row, and then push.
// committing says that the commit or the push failed: it is unknown whether it took place.
func (o *Origin) transact(
	ctx context.Context, statements []string, values map[string]any, push func() error,
) (done, committing bool, err error) {
	t, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return false, false, err
	}

	if o.engine.name == "mysql" {
		if err := o.lock(ctx, t, values); err != nil {
			return false, false, errors.Join(err, t.Rollback())
		}
	}

	changed := int64(0)
	for _, statement := range statements {
		query, args := o.bind(statement, values)

		result, err := t.ExecContext(ctx, query, args...)
		if err == nil {
			changed, err = result.RowsAffected()
		}

		if err != nil {
			return false, false, errors.Join(err, t.Rollback())
		}
	}

	// The last statement did not find the record as it was seen, so none of them counts.
	if changed != 1 {
		return false, false, t.Rollback()
	}

	transaction := ""
	if o.engine.name == "postgres" { // whose answer to the commit can be asked for again
		if err := t.QueryRowContext(ctx, "SELECT CAST(txid_current() AS text)").Scan(&transaction); err != nil {
			return false, false, errors.Join(err, t.Rollback())
		}
	}

	// The push is last, so that a statement that fails leaves no job in the other queue.
	if err := push(); err != nil {
		return false, true, errors.Join(err, t.Rollback())
	}

	if err := t.Commit(); err != nil {
		return false, true, &commitError{err, transaction}
	}

	return true, false, nil
}

// commitError is the error of a commit of which it is not known yet whether it took place.
type commitError struct {
	error
	transaction string // as PostgreSQL numbers it; empty elsewhere
}

func (e *commitError) Unwrap() error { return e.error }

// landed asks PostgreSQL, over another connection, how a transaction ended: "committed" or
// "aborted", or nothing if it does not say.
func (o *Origin) landed(ctx context.Context, transaction string) string {
	if transaction == "" {
		return ""
	}

	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()

	for {
		var status sql.NullString
		err := o.db.QueryRowContext(ctx, "SELECT txid_status(CAST($1 AS bigint))", transaction).Scan(&status)
		if err != nil || status.String != "in progress" {
			return status.String
		}

		select {
		case <-ctx.Done():
			return ""
		case <-tick.C:
		}
	}
}

// lock keeps a record for one transaction. In MySQL, two transactions that insert what
// they select hold locks on it that neither can raise to delete it. And a statement that
// names two columns can lock their indexes in another order than the system's own
// statements do: of two transactions that wait for each other, the database ends one,
// which can be the system's.
func (o *Origin) lock(ctx context.Context, t *sql.Tx, values map[string]any) error {
	from, conditions := o.preset.From, []string{o.preset.Same}
	if len(o.preset.Lock) > 0 {
		from, conditions = o.engine.table(o.listTable), o.preset.Lock
	}
	for _, condition := range conditions {
		query, args := o.bind("SELECT 1 FROM "+from+" WHERE "+condition+" FOR UPDATE", values)

		rows, err := t.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}

		found, err := allOf(rows)
		if err := errors.Join(err, rows.Close()); err != nil || len(found) > 0 {
			return err
		}
	}

	return nil
}
