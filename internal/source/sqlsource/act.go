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

// act carries out an act. With an error, a result that is Asked says that nothing happened.
func (o *Origin) act(ctx context.Context, a source.Act) (source.Result, error) {
	refuse := func(why string) (source.Result, error) {
		return source.Result{ID: a.ID, State: source.Refused, Why: why}, nil
	}

	// What the statements can name, such as :key and :due. The values of a replay alone, such
	// as :clean, are added by prepare.
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

	// What can be refused without the database is refused first.
	if missing := o.preset.Unsupported(a.Request()); missing != "" {
		return refuse("It cannot be replayed: " + missing + ".")
	}

	if len(statements) == 0 {
		return refuse(fmt.Sprintf("%s has no %s for this.", o.preset.Title, a.Kind))
	}

	if a.Kind == source.Replay {
		// A codec that cannot make the next run refuses the act. After any other error no
		// statement of the act has run yet, so the act stays asked.
		if err := o.prepare(ctx, a, now, values); errors.Is(err, errUnfit) {
			return refuse("It cannot be replayed: " + errors.Unwrap(err).Error() + ".")
		} else if err != nil {
			return source.Result{ID: a.ID, State: source.Asked}, err
		}
	}

	// The statements of an own table may name the key alone, so exactly one row may have it.
	n, err := o.shared(ctx, a)
	switch {
	case err != nil:
		return source.Result{ID: a.ID, State: source.Asked}, err
	case n == 0:
		return source.Result{ID: a.ID, State: source.Gone}, nil
	case n > 1:
		return refuse(fmt.Sprintf("%d rows of %s have its key, and the statements could change all of them.", n, o.listTable))
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

	// The statements move the bytes inside the database: there is nothing to make, only to look
	// at.
	if o.raw != "" {
		return o.examine(ctx, a)
	}

	// Without :clean and :target in the statements there is nothing to make.
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
	// Where the queue is in Redis, the job is pushed within the transaction that takes its dead
	// letter away.
	push := func() error { return nil }
	if a.Kind == source.Replay && o.work != nil {
		push = func() error {
			return o.work.Push(ctx, values["target"].(string), mark(a), []byte(values["clean"].(string)), a.Due)
		}
	}

	// When the answer to the commit was lost, the database may still know how the transaction
	// ended.
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
