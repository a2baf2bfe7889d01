package redissource

import (
	"context"
	"errors"
	"slices"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
)

// Find says where the records of acts are. It only reads, so that it also works where
// scripts are forbidden.
func (o *Origin) Find(ctx context.Context, acts []source.Act) (all []source.Result, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	for some := range slices.Chunk(acts, scriptsAtOnce) {
		results, err := o.find(ctx, some)
		all = append(all, results...)
		if err != nil {
			return all, err
		}
	}

	return all, nil
}

// traces are the answers that tell where a record is.
type traces struct {
	present redis.Cmder
	hash    *redis.SliceCmd
}

func (o *Origin) find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	o.line.Renew()

	pipe, found := o.client.Pipeline(), make([]traces, len(acts))
	for i, a := range acts {
		queue, id, _ := o.named(a)
		place := meant(a.Place)

		// Whether the id is still among the dead letters.
		if o.at.Type == "list" {
			found[i].present = pipe.LPos(ctx, place, id, redis.LPosArgs{})
		} else {
			found[i].present = pipe.ZScore(ctx, place, id)
		}

		if h := o.at.Hash; h != nil {
			found[i].hash = pipe.HMGet(ctx, fill(h.Key, queue, id), o.fields()...)
		}
	}

	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return nil, err
	}

	all := make([]source.Result, 0, len(acts))
	for i, a := range acts {
		// A hash that did not fit into one answer with the others is asked for alone.
		if found[i].hash != nil && len(acts) > 1 {
			left, omitted := o.omitted(fieldsOf(o.fields(), found[i].hash.Val()))
			if omitted && left.Later {
				alone, err := o.find(ctx, acts[i:i+1])
				if err != nil {
					return nil, err
				}

				all = append(all, alone...)

				continue
			}
		}

		r, err := o.trace(a, found[i])
		if err != nil {
			return nil, err
		}

		all = append(all, r)
	}

	return all, nil
}

// trace says what the answers about one record mean.
func (o *Origin) trace(a source.Act, found traces) (source.Result, error) {
	r := source.Result{ID: a.ID, State: source.Asked}

	err := found.present.Err()

	// A key that does not exist, or that has become one of another type, has no record.
	present := err == nil
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return r, err
	}

	// A record that is no hash is known by its bytes: it is there unchanged, or it is gone.
	if found.hash == nil {
		if !present {
			r.State = source.Gone
		}
		return r, nil
	}

	if err := found.hash.Err(); err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return r, err
	}

	fields := fieldsOf(o.fields(), found.hash.Val())
	switch {
	// The record is no longer a dead letter, but its hash shows a job under way or a success.
	case !present && o.alive(a, fields):
		r.State = source.Done
	case !present:
		r.State = source.Gone
	case o.changed(a, fields):
		r.State, r.Why = source.Changed, "it has died again since"
	}

	return r, nil
}

// alive reports whether the fields of a record that is not a dead letter are those of a
// job which is under way, or has succeeded.
func (o *Origin) alive(a source.Act, fields codec.Fields) bool {
	h := o.at.Hash
	state := fields[h.State]
	switch {
	case h.State == "" || len(fields) == 0:
		return false
	case h.State == h.VersionToken: // what is left over is as it was
		return o.changed(a, fields)
	default:
		return state != "" && !slices.Contains(h.Dead, state)
	}
}

// changed reports whether the version token of a record is another one than it was.
func (o *Origin) changed(a source.Act, fields map[string]string) bool {
	if w := o.at.Hash.VersionToken; w != "" {
		return fields[w] != meant(a.VersionToken)
	}
	return fields[o.at.Hash.Raw] != string(a.Raw)
}

// Succeeded says which jobs are in the sorted set of those that have succeeded.
func (o *Origin) Succeeded(ctx context.Context, returned []source.ReplayedJob) (all []source.Success, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	pipe := o.client.Pipeline()

	// The set of a queue keeps the ids of its jobs.
	found := make([]*redis.FloatCmd, len(returned))
	for i, r := range returned {
		queue, id, _ := o.named(source.Act{Record: r.Record})
		found[i] = pipe.ZScore(ctx, fill(o.at.Succeeded, queue, ""), id)
	}

	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return nil, err
	}

	for i, f := range found {
		switch err := f.Err(); {
		case err == nil:
			all = append(all, source.Success{ReplayedJob: returned[i]})
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}

	return all, nil
}
