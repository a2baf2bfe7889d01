package redissource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/preset"
)

// Check looks whether the system is the one that the preset describes, counts the dead
// letters there, and asks what the user may do.
func (o *Origin) Check(ctx context.Context) (r source.Report, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	r = source.Report{Version: o.preset.Version}

	facts, err := o.info(ctx, o.client)
	if err != nil {
		return r, err
	}

	version := facts["redis_version"]
	if older(version, o.at.Least) {
		return r, fmt.Errorf("%s needs Redis %s or later, and this is Redis %s", o.preset.Title, o.at.Least, version)
	}

	r.Sees = append(r.Sees, "Redis "+version+map[bool]string{true: ", a Cluster"}[o.cluster])
	if policy := facts["maxmemory_policy"]; policy != "noeviction" && policy != "" {
		r.Warnings = append(r.Warnings,
			"Redis is set to maxmemory-policy "+policy+": when its memory is full it removes keys, and jobs with them.")
	}

	if err := o.expect(ctx, &r); err != nil {
		return r, err
	}

	if err := o.count(ctx, &r); err != nil {
		return r, err
	}

	if err := o.tells(ctx, &r); err != nil {
		return r, err
	}

	err = o.may(ctx, &r, facts["role"], source.Replay, source.Discard) // before r is returned

	return r, err
}

// older reports whether a version comes before another one.
func older(version, least string) bool {
	split := func(v string) (parts []int) {
		for part := range strings.SplitSeq(v, ".") {
			n, _ := strconv.Atoi(part) // what is not a number is the least of all
			parts = append(parts, n)
		}

		return parts
	}

	return slices.Compare(split(version), split(least)) < 0
}

// expect looks whether the keys that the system has are of the types that it gives them.
func (o *Origin) expect(ctx context.Context, r *source.Report) error {
	keys := slices.Sorted(maps.Keys(o.at.Expect))
	absent := 0
	for _, key := range keys {
		kind, err := o.client.Type(ctx, key).Result()
		switch want := o.at.Expect[key]; {
		case err != nil:
			return err
		case kind == "none":
			absent++
		case kind != want:
			return fmt.Errorf("this is not %s, or it has another prefix: expected the key %s to be a %s, and found a %s",
				o.preset.Title, key, want, kind)
		}
	}

	if absent == len(keys) && absent > 0 {
		r.Absent = true
		r.Warnings = append(r.Warnings,
			fmt.Sprintf("Nothing of %s lies here yet: there is no %s.", o.preset.Title, strings.Join(keys, " and no ")))
	}

	return nil
}

// count tells how many queues and dead letters there are, and which versions wrote them.
func (o *Origin) count(ctx context.Context, r *source.Report) error {
	if err := o.discover(ctx); err != nil {
		return err
	}

	lengths, err := o.lengths(ctx, o.queues.names)
	if err != nil {
		return err
	}

	total := int64(0)
	for _, n := range lengths {
		total += n
	}

	queues := fmt.Sprintf("%d queues", len(lengths))
	if len(lengths) == 1 {
		queues = "one queue"
	}

	// A system without queues of its own keeps all dead letters in one key.
	if o.at.Queues == (preset.Queues{}) {
		queues = "the key " + o.at.Dead
	}

	r.Sees = append(r.Sees, fmt.Sprintf("%d dead letters in %s", total, queues))
	if len(lengths) >= maxQueues {
		r.Warnings = append(r.Warnings, fmt.Sprintf("Only the first %d queues are looked at.", maxQueues))
	}

	// Queues are found by their keys, so there is none before a job has died.
	if len(lengths) == 0 && o.at.Queues.Scan != "" {
		r.Absent = true
		r.Warnings = append(r.Warnings, "Nothing of "+o.preset.Title+" lies here yet: there is no key "+glob(o.at.Queues.Scan)+".")
	}

	return o.versions(ctx, r)
}

// versions reads which versions of the system write the queues.
func (o *Origin) versions(ctx context.Context, r *source.Report) error {
	q := o.at.Queues
	if q.Field == "" || len(o.queues.names) == 0 {
		return nil
	}

	pipe := o.client.Pipeline()
	fields := make([]*redis.StringCmd, min(len(o.queues.names), lengthsAsked))
	for i := range fields {
		fields[i] = pipe.HGet(ctx, fill(q.Scan, o.queues.names[i], ""), q.Field)
	}

	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return err
	}

	known, found := regexp.MustCompile(q.Match), map[string]bool{}
	for i, f := range fields {
		// A queue without the field is not one of this system.
		if !known.MatchString(f.Val()) {
			return fmt.Errorf("this is not %s: expected a version like %s in the field %s of %s, and found %q",
				o.preset.Title, q.Match, q.Field, fill(q.Scan, o.queues.names[i], ""), f.Val())
		}

		found[f.Val()] = true
	}

	r.Version = strings.Join(slices.Sorted(maps.Keys(found)), ", ")

	return nil
}

// some is a queue, to ask for rights with its keys.
func (o *Origin) some() string {
	if len(o.queues.names) > 0 {
		return cmp.Or(o.queues.names[0], "default")
	}
	return "default"
}

// tells looks whether the user may read which jobs have succeeded. One who may not sees the
// dead letters and replays them all the same.
func (o *Origin) tells(ctx context.Context, r *source.Report) error {
	if o.at.Succeeded == "" {
		return nil
	}

	err := o.client.ZScore(ctx, fill(o.at.Succeeded, o.some(), ""), "0").Err()
	switch {
	case err == nil || errors.Is(err, redis.Nil):
		r.Tells = true
	case refused(err):
		r.Warnings = append(r.Warnings, fmt.Sprintf("Redrive cannot read which replayed jobs have succeeded: %s.", err))
	default:
		return err
	}

	return nil
}

// may asks which acts the user may do, with the keys of some queue.
func (o *Origin) may(ctx context.Context, r *source.Report, role string, acts ...source.Kind) error {
	keys := o.keysOf(o.some(), "0")
	switch {
	case role == "slave":
		r.Warnings = append(r.Warnings, "This Redis is a replica, which can only be read.")
		return nil
	case o.cluster && !together(keys):
		r.Warnings = append(r.Warnings, apart)
		return nil
	}

	for _, kind := range acts {
		writes := o.at.Writes.Replay
		if kind == source.Discard {
			writes = o.at.Writes.Discard
		}

		// The head of a script checks the rights for its writes, and this script does no more
		// than that.
		script := redis.NewScript(o.head(writes) + "return 1")

		err := script.Eval(ctx, o.client, keys, "", "", "", "", "", "").Err()
		switch {
		case err == nil:
			r.May = append(r.May, kind)
		case refused(err):
			r.Warnings = append(r.Warnings, fmt.Sprintf("The user may not %s: %s.", kind, err))
		default:
			return err
		}
	}

	return nil
}
