package redissource

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// call is one act on its way: a script with its arguments, or a result that is known
// without one.
type call struct {
	script *redis.Script
	keys   []string
	args   []any
	result source.Result
}

// Act does what the acts say, each with one script.
func (o *Origin) Act(ctx context.Context, acts []source.Act) (all []source.Result, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	for len(acts) > 0 {
		calls, err := o.calls(ctx, acts[:min(len(acts), scriptsAtOnce)])
		if err != nil {
			return append(all, source.NotAttempted(acts)...), err
		}

		acts = acts[len(calls):]

		results, err := o.run(ctx, calls)
		all = append(all, results...)
		if err != nil {
			return append(all, source.NotAttempted(acts)...), err
		}
	}

	return all, nil
}

// calls makes the scripts of acts. An error says that nothing has happened yet.
func (o *Origin) calls(ctx context.Context, acts []source.Act) ([]call, error) {
	calls := make([]call, len(acts))
	for i, a := range acts {
		calls[i] = o.call(a)
		if o.fault == nil || a.Kind != source.Replay || calls[i].script == nil {
			continue
		}

		fault, err := o.examine(ctx, a)
		if err != nil {
			return nil, err
		}

		if fault != "" {
			calls[i] = call{result: source.Result{ID: a.ID, State: source.Refused, Why: fault}}
		}
	}

	return calls, nil
}

// examine says why the workers of the system could not read a record, which a script moves
// as it is. It is empty for one that is missing: the script says that.
func (o *Origin) examine(ctx context.Context, a source.Act) (fault string, err error) {
	o.line.Renew()
	queue, id, _ := o.named(a)

	fields, err := o.hashes(ctx, queue, []string{id})
	if err != nil || len(fields[0]) == 0 {
		return "", err
	}

	return o.fault(fields[0]), nil
}

// call makes the script of an act.
func (o *Origin) call(a source.Act) call {
	c := call{result: source.Result{ID: a.ID}}
	refuse := func(why string) call {
		return call{result: source.Result{ID: a.ID, State: source.Refused, Why: why}}
	}

	// A discard has one script, whatever the mode.
	does := act{a.Kind, a.Mode}
	if a.Kind == source.Discard {
		does.mode = ""
	}

	if missing := o.preset.Unsupported(a.Request()); missing != "" {
		return refuse(missing)
	}

	c.script = o.scripts[does]
	if c.script == nil {
		return refuse(fmt.Sprintf("%s has no %s %s", o.preset.Title, a.Kind, a.Mode))
	}

	queue, id, token := o.named(a)
	now := time.Now()

	// A replay gives back the job without what its failures have left in it.
	var clean []byte
	if a.Kind == source.Replay {
		var err error

		clean, err = o.clean(a, codec.Run{Mode: a.Mode, Now: now, Target: queue, ID: job.NewID(), Payload: a.Payload})
		if err != nil {
			return refuse(err.Error())
		}
	}

	c.keys = o.keysOf(queue, id)
	if o.cluster && !together(c.keys) {
		return refuse(apart)
	}

	c.args = append(arguments(id, token, clean, queue, now), due(a.Due), a.Payload)

	return c
}

// arguments are those of every script.
func arguments(id, token string, clean []byte, queue string, now time.Time) []any {
	return []any{id, token, clean, queue, strconv.FormatInt(now.UnixNano(), 10), now.UTC().Format(isoMicros)}
}

// due is a time in milliseconds since 1970; empty for at once.
func due(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return strconv.FormatInt(at.UnixMilli(), 10)
}

const isoMicros = "2006-01-02T15:04:05.000000Z"

// apart says why a Cluster cannot act.
const apart = "The keys of this act are in different hash slots of the Redis Cluster, so that no script can change them as one. " +
	"Queues whose names have the same part in braces, such as {shop}orders, share a slot."

// named is what a script has to know of the record of an act.
func (o *Origin) named(a source.Act) (queue, id, token string) {
	queue, _ = queueIn(o.at.Dead, meant(a.Place))
	switch {
	case o.at.Hash == nil:
		r := source.Record{Queue: cmp.Or(queue, o.at.Target), Raw: slices.Clone(a.Raw)}
		o.codec.Read(&r)
		return r.Queue, string(a.Raw), string(a.Raw)
	case o.at.Hash.VersionToken == "":
		return queue, idIn(a.Key, queue), string(a.Raw)
	}

	return queue, idIn(a.Key, queue), meant(a.VersionToken)
}

// clean is the bytes of the next run. A record that is a hash is changed field by field,
// by the script.
func (o *Origin) clean(a source.Act, run codec.Run) ([]byte, error) {
	if o.hash != nil {
		if run.Payload != nil && !json.Valid(run.Payload) {
			return nil, errors.New("the payload must be JSON")
		}
		return nil, nil
	}

	return o.codec.Next(a.Raw, run)
}

// keysOf are the keys of a script for one record.
func (o *Origin) keysOf(queue, id string) []string {
	keys := sorted(o.at.Keys)
	for i, k := range keys {
		keys[i] = fill(k, queue, id)
	}

	return keys
}

// run sends the scripts of calls by their digests, and once more in full those that the
// server does not have.
func (o *Origin) run(ctx context.Context, calls []call) (all []source.Result, err error) {
	answers := o.send(ctx, calls, func(p redis.Pipeliner, c call) *redis.Cmd { return c.script.EvalSha(ctx, p, c.keys, c.args...) })
	var strange []call
	for i, answer := range answers {
		if answer != nil && redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
			strange = append(strange, calls[i])
		}
	}

	// The second answers are in the order of the calls that they replace.
	again := o.send(ctx, strange, func(p redis.Pipeliner, c call) *redis.Cmd { return c.script.Eval(ctx, p, c.keys, c.args...) })
	for i, answer := range answers {
		if answer != nil && redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
			answer, again = again[0], again[1:]
		}

		r, problem := o.outcome(calls[i], answer)
		if problem != nil {
			err = errors.Join(err, problem)

			// An act without a result may have happened, and is looked up.
			if neverSent(problem) {
				all = append(all, source.Result{ID: calls[i].result.ID, State: source.Asked})
			}

			continue
		}

		all = append(all, r)
	}

	return all, err
}

// neverSent reports whether there was no connection over which anything could be sent.
func neverSent(err error) bool {
	dialing, ok := errors.AsType[*net.OpError](err)
	return errors.Is(err, redis.ErrClosed) || ok && dialing.Op == "dial"
}

// send sends calls in one go. A call without a script has no answer.
func (o *Origin) send(ctx context.Context, calls []call, one func(redis.Pipeliner, call) *redis.Cmd) []*redis.Cmd {
	pipe, answers := o.client.Pipeline(), make([]*redis.Cmd, len(calls))
	for i, c := range calls {
		if c.script != nil {
			answers[i] = one(pipe, c)
		}
	}

	if pipe.Len() > 0 {
		_, _ = pipe.Exec(ctx) // each answer has its own error
	}

	return answers
}

// outcome is how an act ended. An error that is not a refusal leaves it open: the record
// will be looked up.
func (o *Origin) outcome(c call, answer *redis.Cmd) (source.Result, error) {
	r := c.result

	// The act was refused before there was a script for it.
	if answer == nil {
		return r, nil
	}

	n, err := answer.Int()
	switch {
	case err != nil && refused(err):
		r.State, r.Why = source.Refused, err.Error()
	case err != nil:
		return r, err
	case n == preset.Done:
		r.State = source.Done
	case n == preset.Changed:
		r.State, r.Why = source.Changed, "it has died again since"
	case n == preset.Missing:
		r.State, r.Why = source.Refused, "its hash is missing: only its name is there"
	case n == preset.Refused:
		r.State, r.Why = source.Refused, o.preset.Refused
	case n == preset.Replaced:
		r.State, r.Why = source.Replaced, "another job excludes this one until it has ended"
	default:
		r.State = source.Gone
	}

	return r, nil
}

// passing are errors that say nothing about an act: the server cannot answer now.
var passing = []string{
	"LOADING", "BUSY", "CLUSTERDOWN", "TRYAGAIN", "MOVED", "ASK", "MASTERDOWN", "NOAUTH", "WRONGPASS", "NOSCRIPT", "NOREPLICAS",
	"READONLY", // a server that became a replica: another one is the master now
	"max number of clients",
}

// refused reports whether an error is a lasting no of the server.
func refused(err error) bool {
	return isReply(err) && !slices.ContainsFunc(passing, func(p string) bool { return redis.HasErrorPrefix(err, p) })
}

// isReply reports whether the server answered, and the connection is well.
func isReply(err error) bool {
	var reply redis.Error
	return errors.As(err, &reply)
}
