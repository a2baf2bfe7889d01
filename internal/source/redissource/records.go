package redissource

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
)

// batch is what was read of some members.
type batch struct {
	records []source.Record
	refused []source.Refusal
	passed  int   // members
	bytes   int64 // that were sent
	largest int64 // bytes of a record
}

// sent counts the bytes of a record.
func (c *batch) sent(bytes int64) {
	c.bytes += bytes
	c.largest = max(c.largest, bytes)
}

// records makes records of members. It passes fewer of them when their answer would have
// been too large.
func (o *Origin) records(ctx context.Context, queue string, members []string) (c batch, err error) {
	var there []string // members that were read
	var at []int       // where they were
	for i, m := range members {
		left, omitted := o.line.Omitted(m)
		if omitted && left.Later && i > 0 {
			break
		}

		c.passed++
		if omitted {
			c.refused = append(c.refused, source.TooLarge(keyOf(queue, left.Digest[:2*digestBytes]), left.Size))
			c.sent(left.Size)
			continue
		}

		there, at = append(there, m), append(at, i)
	}

	if o.at.Hash == nil {
		for _, m := range there {
			c.records = append(c.records, o.memberRecord(queue, m))
			c.sent(int64(len(m)))
		}

		return c, nil
	}

	hashes, err := o.hashes(ctx, queue, there)
	if err != nil {
		return c, err
	}

	for i, id := range there {
		left, omitted := o.omitted(hashes[i])
		if omitted && left.Later && i > 0 {
			c.passed = at[i]
			break
		}

		c.sent(sizeOf(hashes[i]) + left.Size)

		if omitted {
			c.refused = append(c.refused, source.TooLarge(keyOf(queue, id), left.Size))
		} else {
			c.records = append(c.records, o.hashed(queue, id, hashes[i]))
		}
	}

	return c, nil
}

// omitted are the fields of a record that were left out of its answer, taken together.
func (o *Origin) omitted(fields codec.Fields) (all bounded.Omitted, some bool) {
	for _, value := range fields {
		left, omitted := o.line.Omitted(value)
		if omitted {
			all.Size, all.Later, some = all.Size+left.Size, all.Later || left.Later, true
		}
	}

	return all, some
}

// sizeOf is how many bytes the fields of a record have.
func sizeOf(fields codec.Fields) (n int64) {
	for name, value := range fields {
		n += int64(len(name) + len(value))
	}
	return n
}

// digestBytes are those of the digest that names a record without a name.
const digestBytes = 16

// memberRecord is a record whose bytes are in the key dead.
func (o *Origin) memberRecord(queue, member string) source.Record {
	digest := sha256.Sum256([]byte(member))

	return source.Record{
		Key: keyOf(queue, hex.EncodeToString(digest[:digestBytes])), Place: source.ShownName(fill(o.at.Dead, queue, "")), Raw: []byte(member),
		Queue: cmp.Or(queue, o.at.Target),
	}
}

// read reads a record from its bytes, if it has them.
func (o *Origin) read(r *source.Record) {
	if r.Raw != nil {
		o.codec.Read(r)
	}

	r.Type = cmp.Or(r.Type, "unknown")
}

// hashed is a record that is a hash, or is in a field of one.
func (o *Origin) hashed(queue, id string, fields codec.Fields) source.Record {
	h := o.at.Hash
	r := source.Record{
		Key: keyOf(queue, id), Lineage: keyOf(queue, id), Place: source.ShownName(fill(o.at.Dead, queue, "")),
		Queue: cmp.Or(queue, o.at.Target), VersionToken: source.ShownName(fields[h.VersionToken]),
	}
	switch {
	// The id is among the dead letters, and its hash is missing or is no hash.
	case len(fields) == 0:
		r.Payload = []byte(source.ShownName(id))
		r.Warnings = []string{"Only its name lies here: the hash " + source.ShownName(fill(h.Key, queue, id)) +
			" is missing, so it cannot be replayed. A discard takes the name away."}
		r.Type = "unknown"
	case o.hash != nil:
		o.hash(&r, fields)
		r.Type = cmp.Or(r.Type, "unknown")
	default:
		r.Raw = []byte(fields[h.Raw])
	}

	return r
}

// hashes reads the fields of records, and the last entry of each one's stream. One that
// is missing, or is no hash, has no fields.
func (o *Origin) hashes(ctx context.Context, queue string, ids []string) ([]codec.Fields, error) {
	h := o.at.Hash
	names := o.fields()

	pipe := o.client.Pipeline()
	values, entries := make([]*redis.SliceCmd, len(ids)), make([]*redis.XMessageSliceCmd, len(ids))
	for i, id := range ids {
		values[i] = pipe.HMGet(ctx, fill(h.Key, queue, id), names...)
		if h.Stream != "" {
			entries[i] = pipe.XRevRangeN(ctx, fill(h.Stream, queue, id), "+", "-", 1)
		}
	}

	// The error of one command, such as WRONGTYPE for a key that is no hash, is that of the
	// whole pipeline, too. It is looked at below, beside its command.
	if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
		return nil, err
	}

	all := make([]codec.Fields, len(ids))
	for i := range ids {
		if err := values[i].Err(); err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
			return nil, err
		}

		all[i] = fieldsOf(names, values[i].Val())
		if h.Stream == "" || len(all[i]) == 0 {
			continue
		}

		// The fields of the hash go before those of the same name in the stream.
		for _, entry := range entries[i].Val() {
			for name, value := range entry.Values {
				if _, known := all[i][name]; !known {
					all[i][name] = fmt.Sprint(value)
				}
			}
		}
	}

	return all, nil
}

// fields are the names of the fields that are read of a hash.
func (o *Origin) fields() []string {
	h := o.at.Hash
	names := append(slices.Clone(h.Fields), h.Raw, h.VersionToken, h.State)
	slices.Sort(names)
	return slices.DeleteFunc(slices.Compact(names), func(s string) bool { return s == "" })
}

func fieldsOf(names []string, values []any) codec.Fields {
	fields := codec.Fields{}
	for i, v := range values {
		if text, ok := v.(string); ok {
			fields[names[i]] = text
		}
	}

	return fields
}
