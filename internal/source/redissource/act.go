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
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"redrive/internal/job"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// scriptsAtOnce is how many scripts are sent before an answer is waited for.
const scriptsAtOnce = 50

// header gives a script its locals.
const header = `local id, witness, clean, queue, now, iso, due, payload = unpack(ARGV)
local %s = unpack(KEYS)
%s`

// check refuses, before the first write, what the user may not do: Redis does not take
// back what a script has done when it ends in an error. Redis before 7 cannot tell.
const check = `if redis.acl_check_cmd and not redis.acl_check_cmd('%[1]s', %[2]s) then
  return redis.error_reply('NOPERM the user may not run %[1]s on ' .. %[2]s)
end
`

// compose makes the scripts of the preset.
func (o *Origin) compose() {
	o.scripts = map[act]*redis.Script{}
	add := func(a act, text, writes []string) {
		if len(text) > 0 {
			o.scripts[a] = redis.NewScript(o.head(writes) + strings.Join(text, "\n"))
		}
	}
	for mode, text := range o.preset.Replay {
		add(act{source.Replay, mode}, text, o.at.Writes.Replay)
	}

	add(act{kind: source.Discard}, o.preset.Discard, o.at.Writes.Discard)
}

// head is the header of a script with these writes.
func (o *Origin) head(writes []string) string {
	var b strings.Builder
	for _, w := range writes {
		command, key, _ := strings.Cut(w, " ")
		fmt.Fprintf(&b, check, command, key)
	}

	return fmt.Sprintf(header, strings.Join(o.keys, ", "), b.String())
}

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

	does := act{a.Kind, a.Mode}
	if a.Kind == source.Discard {
		does.mode = ""
	}

	if lacks := o.preset.Unsupported(a.Request()); lacks != "" {
		return refuse(lacks)
	}

	if c.script = o.scripts[does]; c.script == nil {
		return refuse(fmt.Sprintf("%s has no %s %s", o.preset.Title, a.Kind, a.Mode))
	}

	queue, id, witness := o.named(a)
	now, clean := time.Now(), []byte(nil)
	if a.Kind == source.Replay {
		var err error
		if clean, err = o.clean(a, codec.Run{
			Mode: a.Mode, Now: now, Target: queue, ID: job.NewID(), Payload: a.Payload,
		}); err != nil {
			return refuse(err.Error())
		}
	}

	if c.keys = o.keysOf(queue, id); o.cluster && !together(c.keys) {
		return refuse(apart)
	}

	c.args = append(arguments(id, witness, clean, queue, now), due(a.Due), a.Payload)

	return c
}

// arguments are those of every script.
func arguments(id, witness string, clean []byte, queue string, now time.Time) []any {
	return []any{id, witness, clean, queue, strconv.FormatInt(now.UnixNano(), 10), now.UTC().Format(isoMicros)}
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
func (o *Origin) named(a source.Act) (queue, id, witness string) {
	queue, _ = queueIn(o.at.Dead, meant(a.Place))
	switch {
	case o.at.Hash == nil:
		r := source.Record{Queue: cmp.Or(queue, o.at.Target), Raw: slices.Clone(a.Raw)}
		o.codec.Read(&r)
		return r.Queue, string(a.Raw), string(a.Raw)
	case o.at.Hash.Witness == "":
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

	again := o.send(ctx, strange, func(p redis.Pipeliner, c call) *redis.Cmd { return c.script.Eval(ctx, p, c.keys, c.args...) })
	for i, answer := range answers {
		if answer != nil && redis.HasErrorPrefix(answer.Err(), "NOSCRIPT") {
			answer, again = again[0], again[1:]
		}

		r, problem := o.outcome(calls[i], answer)
		if problem != nil {
			err = errors.Join(err, problem)
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
	lies redis.Cmder
	hash *redis.SliceCmd
}

func (o *Origin) find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	o.line.Renew()

	pipe, found := o.client.Pipeline(), make([]traces, len(acts))
	for i, a := range acts {
		queue, id, _ := o.named(a)
		place := meant(a.Place)
		if o.at.Type == "list" {
			found[i].lies = pipe.LPos(ctx, place, id, redis.LPosArgs{})
		} else {
			found[i].lies = pipe.ZScore(ctx, place, id)
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

	err := found.lies.Err()
	lies := err == nil
	if err != nil && !errors.Is(err, redis.Nil) && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return r, err
	}

	if found.hash == nil {
		if !lies {
			r.State = source.Gone
		}
		return r, nil
	}

	if err := found.hash.Err(); err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") {
		return r, err
	}

	fields := fieldsOf(o.fields(), found.hash.Val())
	switch {
	case !lies && o.alive(a, fields):
		r.State = source.Done
	case !lies:
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
	switch state := fields[h.State]; {
	case h.State == "" || len(fields) == 0:
		return false
	case h.State == h.Witness: // what is left over is as it was
		return o.changed(a, fields)
	default:
		return state != "" && !slices.Contains(h.Dead, state)
	}
}

// changed reports whether the witness of a record is another one than it was.
func (o *Origin) changed(a source.Act, fields map[string]string) bool {
	if w := o.at.Hash.Witness; w != "" {
		return fields[w] != meant(a.VersionToken)
	}
	return fields[o.at.Hash.Raw] != string(a.Raw)
}

// Succeeded says which jobs are in the sorted set of those that have succeeded.
func (o *Origin) Succeeded(ctx context.Context, handed []source.ReplayedJob) (all []source.Success, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	pipe, found := o.client.Pipeline(), make([]*redis.FloatCmd, len(handed))
	for i, h := range handed {
		queue, id, _ := o.named(source.Act{Record: h.Record})
		found[i] = pipe.ZScore(ctx, fill(o.at.Succeeded, queue, ""), id)
	}

	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return nil, err
	}

	for i, f := range found {
		switch err := f.Err(); {
		case err == nil:
			all = append(all, source.Success{ReplayedJob: handed[i]})
		case !errors.Is(err, redis.Nil):
			return nil, err
		}
	}

	return all, nil
}
