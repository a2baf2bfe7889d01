package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// Act does what the acts say, each in a transaction of its own.
func (o *Origin) Act(ctx context.Context, acts []source.Act) (all []source.Result, err error) {
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	for i, a := range acts {
		r, err := o.act(ctx, a)
		if err == nil || r.State == source.Asked {
			all = append(all, r)
		}

		if err != nil {
			return append(all, source.NotAttempted(acts[i+1:])...), err
		}
	}

	return all, nil
}

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

// act carries out an act. With an error, a result that is Asked says that nothing happened.
func (o *Origin) act(ctx context.Context, a source.Act) (source.Result, error) {
	refuse := func(why string) (source.Result, error) {
		return source.Result{ID: a.ID, State: source.Refused, Why: why}, nil
	}
	now := time.Now()
	values := map[string]any{
		"key": meant(a.Key), "witness": meant(a.VersionToken),
		"unix": inline(fmt.Sprint(now.Unix())), "wall": now.In(o.zone).Format("2006-01-02 15:04:05"),
		"edited": nil, "allowed": inline(fmt.Sprint(a.Limit)),
	}
	o.setDue(a, now, values)

	statements := o.preset.Discard
	if a.Kind == source.Replay {
		statements = o.preset.Replay[a.Mode]
	}

	if lacks := o.preset.Unsupported(a.Request()); lacks != "" {
		return refuse("It cannot be replayed: " + lacks + ".")
	}

	if len(statements) == 0 {
		return refuse(fmt.Sprintf("%s has no %s for this.", o.preset.Title, a.Kind))
	}

	if a.Kind == source.Replay {
		if err := o.prepare(ctx, a, now, values); errors.Is(err, errUnfit) {
			return refuse("It cannot be replayed: " + errors.Unwrap(err).Error() + ".")
		} else if err != nil {
			return source.Result{ID: a.ID, State: source.Asked}, err
		}
	}

	n, err := o.shared(ctx, a)
	switch {
	case err != nil:
		return source.Result{ID: a.ID, State: source.Asked}, err
	case n == 0:
		return source.Result{ID: a.ID, State: source.Gone}, nil
	case n > 1:
		return refuse(fmt.Sprintf("%d rows of %s have its key, and the statements could change all of them.", n, o.lies))
	}

	return o.carryOut(ctx, a, statements, values)
}

// shared counts the rows that have the key of a record, in an own table. Only the owner of
// such a table knows what its statements do: they can name the key alone.
func (o *Origin) shared(ctx context.Context, a source.Act) (n int, err error) {
	if !o.preset.Own {
		return 1, nil
	}

	err = o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind("SELECT count(*) FROM "+o.preset.From+" WHERE "+o.preset.Same, map[string]any{"key": meant(a.Key)})
		return t.QueryRowContext(ctx, o.engine.bounded+query, args...).Scan(&n)
	})

	return n, err
}

// setDue makes the values that say when a job shall run.
func (o *Origin) setDue(a source.Act, now time.Time, values map[string]any) {
	values["wait"], values["due"], values["due_wall"] = inline("0"), values["unix"], nil
	if a.Due.After(now) {
		seconds := int64(math.Ceil(a.Due.Sub(now).Seconds()))
		values["wait"], values["due"] = inline(fmt.Sprint(seconds)), inline(fmt.Sprint(now.Unix()+seconds))
		values["due_wall"] = now.Add(time.Duration(seconds) * time.Second).In(o.zone).Format("2006-01-02 15:04:05")
	}
}

// errUnfit says that there can be no next run.
var errUnfit = errors.New("unfit")

// unfit is an error of a codec.
type unfit struct{ error }

func (u unfit) Is(err error) bool { return err == errUnfit }
func (u unfit) Unwrap() error     { return u.error }

// prepare makes the values that only a replay has: the bytes with another payload, the
// queue and the bytes for the next run.
func (o *Origin) prepare(ctx context.Context, a source.Act, now time.Time, values map[string]any) error {
	if a.Payload != nil {
		edited, err := o.codec.Edited(a.Raw, a.Payload)
		if err != nil {
			return unfit{err}
		}

		values["edited"] = string(edited)
	}

	if o.raw != "" {
		return o.examine(ctx, a)
	}

	if !o.clean {
		return nil
	}

	r := source.Record{Raw: a.Raw}
	if o.preset.Target != "" {
		target, err := o.target(ctx, a)
		if err != nil {
			return err
		}

		r.Queue = target
		o.codec.Read(&r) // which may know it when the database does not
		values["target"] = r.Queue
	}

	clean, err := o.codec.Next(a.Raw, codec.Run{Mode: a.Mode, Now: now, Target: r.Queue, ID: job.NewID(), Payload: a.Payload})
	if err != nil {
		return unfit{err}
	}

	values["clean"] = string(clean)

	return nil
}

// examine refuses a record whose bytes the statements move inside the database, and which
// its workers could not read.
func (o *Origin) examine(ctx context.Context, a source.Act) error {
	var raw []byte

	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.raw, map[string]any{"key": meant(a.Key)})
		return t.QueryRowContext(ctx, o.engine.bounded+query, args...).Scan(&raw)
	})
	if errors.Is(err, sql.ErrNoRows) {
		return nil // the statements say that it is gone
	}

	if err != nil {
		return err
	}

	find, _ := codec.Fault(o.preset.Codec)
	if fault := find(codec.Fields{"raw": string(raw)}); fault != "" {
		return unfit{errors.New(fault)}
	}

	return nil
}

// target reads the queue to which a record goes back; empty when it is not known.
func (o *Origin) target(ctx context.Context, a source.Act) (string, error) {
	var target sql.NullString
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.preset.Target, map[string]any{"key": meant(a.Key), "witness": meant(a.VersionToken)})

		err := t.QueryRowContext(ctx, o.engine.bounded+query, args...).Scan(&target)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}

		return err
	})

	return target.String, err
}

func (o *Origin) carryOut(ctx context.Context, a source.Act, statements []string, values map[string]any) (source.Result, error) {
	push := func() error { return nil }
	if a.Kind == source.Replay && o.work != nil {
		push = func() error {
			return o.work.Push(ctx, values["target"].(string), mark(a), []byte(values["clean"].(string)), a.Due)
		}
	}

	done, committing, err := o.transact(ctx, statements, values, push)
	if landed := new(commitError); errors.As(err, &landed) {
		switch o.landed(ctx, landed.transaction) {
		case "committed":
			return source.Result{ID: a.ID, State: source.Done}, nil
		case "aborted":
			return source.Result{ID: a.ID, State: source.Asked}, err
		}
	}

	var refusal *preset.Refusal
	switch {
	case errors.As(err, &refusal):
		why := "Its queue does not take the job: " + strings.TrimRight(refusal.Why, ".") + "."
		return source.Result{ID: a.ID, State: source.Refused, Why: why}, nil
	case committing: // the answer was lost on the way
		return source.Result{}, err
	case err != nil:
		state, why, ok := answer(err, o.preset.Errors)
		if !ok {
			return source.Result{ID: a.ID, State: source.Asked}, err // without a commit
		}

		if r, err := o.why(ctx, a); err == nil && r.State != source.Refused { // another act was faster
			return r, nil
		}

		return source.Result{ID: a.ID, State: state, Why: why}, nil
	case done:
		return source.Result{ID: a.ID, State: source.Done}, nil
	}

	return o.why(ctx, a)
}

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

	if changed != 1 {
		return false, false, t.Rollback()
	}

	transaction := ""
	if o.engine.name == "postgres" { // whose answer to the commit can be asked for again
		if err := t.QueryRowContext(ctx, "SELECT CAST(txid_current() AS text)").Scan(&transaction); err != nil {
			return false, false, errors.Join(err, t.Rollback())
		}
	}

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
		from, conditions = o.engine.table(o.lies), o.preset.Lock
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
// witness counts.
func (o *Origin) find(ctx context.Context, a source.Act) (source.Result, error) {
	r := source.Result{ID: a.ID, State: source.Gone}
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.same, map[string]any{"key": meant(a.Key), "witness": meant(a.VersionToken)})

		rows, err := t.QueryContext(ctx, o.engine.bounded+query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		for r.State != source.Asked && rows.Next() {
			var witness any
			if err := rows.Scan(&witness); err != nil {
				return err
			}

			if o.keep(witness) == a.VersionToken {
				r.State, r.Why = source.Asked, ""
			} else {
				r.State, r.Why = source.Changed, "It has died again since it was read."
			}
		}

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

// mark names a record together with its witness in the queue of another store.
func mark(a source.Act) string { return a.Key + ":" + a.VersionToken }

// Succeeded says which jobs the database keeps as ones that have succeeded.
func (o *Origin) Succeeded(ctx context.Context, handed []source.ReplayedJob) (all []source.Success, err error) {
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	byKey, keys := make(map[string]source.ReplayedJob, len(handed)), make([]any, len(handed))
	for i, h := range handed {
		byKey[h.Key], keys[i] = h, meant(h.Key)
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
			if h, asked := byKey[name]; asked {
				delete(byKey, name) // each is told once

				all = append(all, source.Success{ReplayedJob: h, At: o.timeOf(at), Attempts: int(numberOf(attempts))})
			}
		}

		return rows.Err()
	})

	return all, err
}
