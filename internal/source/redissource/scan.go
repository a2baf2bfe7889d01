package redissource

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
)

// What one page may cost.
const (
	chunkSize    = 50      // records that are read with one command
	maxPageBytes = 8 << 20 // after which a page ends
	lengthsAsked = 500     // queues whose lengths are asked for at once
	mostNew      = 5000    // records of a queue that can be new at once; the pass has the others
)

// Scan reads a page of the dead letters. The first pages have the newest records of every
// queue, so that one with a million of them does not hide what is new in another; those
// after them go through the queues one by one.
func (o *Origin) Scan(ctx context.Context, after string, limit int) (_ source.Page, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	r := &reading{limit: limit, met: map[string]bool{}}
	if o.hash == nil {
		r.Read = o.read
	}

	if after == "" || o.queues.names == nil { // a new connection goes on with the pass of the one before
		if err := o.discover(ctx); err != nil {
			return r.Page, err
		}
	}

	read, from := o.heads, place{}
	if after != "" {
		from, err = placeOf(after)
		if err != nil {
			return r.Page, err
		}

		if from.to == 0 {
			read = o.walk
		}
	}

	err = read(ctx, r, from)

	return r.Page, err
}

// front is what was at the head of a queue when it was read last, and the time before: the
// keys of a few records.
type front struct {
	last, before map[string]bool
	met          bool // what was there before was met in this look, or it is unknown what was there
}

// begin begins a look at all queues. At the first one, nothing is known of any.
func (o *Origin) begin() {
	all := make(map[string]*front, len(o.queues.names))
	for _, q := range o.queues.names {
		f := &front{last: map[string]bool{}, met: o.fronts == nil}
		if old := o.fronts[q]; old != nil {
			f.before = old.last
		}

		all[q] = f
	}

	o.fronts = all
}

// heads reads on from a place in the newest records of every queue, a level for each page:
// first the same number of each queue, and then more of the queues in which it has not yet
// met any record that was at the head at the last look.
func (o *Origin) heads(ctx context.Context, r *reading, at place) error {
	lengths, err := o.lengths(ctx, o.queues.names)
	if err != nil {
		return err
	}

	if at.to == 0 || o.fronts == nil { // a new connection knows nothing
		o.begin()
		at.to = cmp.Or(at.to, r.share(longer(o.queues.names, lengths, 0)))
	}

	queues := longer(o.queues.names, lengths, at.from)
	if at.from > 0 {
		queues = o.unmet(queues)
	}

	if full, err := o.level(ctx, r, at, queues, lengths); full || err != nil {
		return err
	}

	deeper := longer(o.queues.names, lengths, at.to)
	switch unmet := o.unmet(deeper); {
	case len(unmet) > 0 && at.to < mostNew:
		r.Next = place{queue: unmet[0], n: at.to, from: at.to, to: at.to + r.share(unmet)}.String()
	case len(o.queues.names) > 0 && (at.from > 0 || len(deeper) > 0):
		r.Next = place{queue: o.queues.names[0]}.String()
	}

	return nil
}

// longer are the queues that have more than so many dead records.
func longer(queues []string, lengths map[string]int64, than int64) (all []string) {
	for _, q := range queues {
		if lengths[q] > than {
			all = append(all, q)
		}
	}

	return all
}

// unmet are the queues in which this look has not yet met any record that was at the head
// before.
func (o *Origin) unmet(queues []string) (all []string) {
	for _, q := range queues {
		if f := o.fronts[q]; f != nil && !f.met {
			all = append(all, q)
		}
	}

	return all
}

// level reads the records of a level, from a place in it, and reports whether the page was
// full before its end: then Next says where it goes on.
func (o *Origin) level(ctx context.Context, r *reading, at place, queues []string, lengths map[string]int64) (full bool, err error) {
	for _, q := range queues {
		// An earlier page has read this queue.
		if q < at.queue {
			continue
		}

		// Each further queue is read from the top of the level.
		if q != at.queue {
			at.queue, at.n = q, at.from
		}

		for at.n < min(lengths[q], at.to) {
			if r.full() {
				r.Next = at.String()
				return true, nil
			}

			passed, err := o.newest(ctx, r, at)
			if err != nil {
				return false, err
			}

			at.n += passed
		}
	}

	return false, nil
}

// newest reads the rest of a level in one queue, as far as the page has room.
func (o *Origin) newest(ctx context.Context, r *reading, at place) (passed int64, err error) {
	records, refused := len(r.Records), len(r.Refused)
	passed, err = o.part(ctx, r, at, at.to-at.n)

	var keys []string
	for _, record := range r.Records[records:] {
		keys = append(keys, record.Key)
	}

	for _, refusal := range r.Refused[refused:] {
		keys = append(keys, refusal.Key)
	}

	// A record that was at the head at the last look shows that all behind it is known.
	f := o.fronts[at.queue]
	for _, key := range keys {
		f.met = f.met || f.before[key]
		if at.from == 0 && len(f.last) < chunkSize {
			f.last[key] = true
		}
	}

	return passed, err
}

// walk reads on from a place, through as many queues as a page has room for.
func (o *Origin) walk(ctx context.Context, r *reading, from place) error {
	at, found := slices.BinarySearch(o.queues.names, from.queue)
	if !found { // the queue was removed
		from.n = 0
	}

	names := o.queues.names[at:]
	for len(names) > 0 {
		some := names[:min(len(names), lengthsAsked)]

		lengths, err := o.lengths(ctx, some)
		if err != nil {
			return err
		}

		for i, q := range some {
			if q != from.queue {
				from = place{queue: q}
			}

			n, err := o.part(ctx, r, from, lengths[q]-from.n)
			if err != nil {
				return err
			}

			// The page is full within a queue: the next one goes on behind these records.
			from.n += n
			if from.n < lengths[q] {
				r.Next = from.String()
				return nil
			}

			// The page is full at the end of a queue: the next one begins with the queue after
			// it.
			if r.full() && i+1 < len(names) {
				r.Next = place{queue: names[i+1]}.String()
				return nil
			}
		}

		names = names[len(some):]
	}

	return nil
}

// lengths are how many dead records the queues have. A key of another type has none.
func (o *Origin) lengths(ctx context.Context, queues []string) (map[string]int64, error) {
	all := map[string]int64{}
	for some := range slices.Chunk(queues, lengthsAsked) {
		pipe := o.client.Pipeline()
		counts := make([]*redis.IntCmd, len(some))
		for i, q := range some {
			key := fill(o.at.Dead, q, "")
			if o.at.Type == "list" {
				counts[i] = pipe.LLen(ctx, key)
			} else {
				counts[i] = pipe.ZCard(ctx, key)
			}
		}

		if _, err := pipe.Exec(ctx); err != nil && !isReply(err) {
			return nil, err
		}

		for i, c := range counts {
			if err := c.Err(); err != nil && !strings.HasPrefix(err.Error(), "WRONGTYPE") {
				return nil, err
			}

			all[some[i]] = c.Val()
		}
	}

	return all, nil
}

// part reads at most so many records from a place, chunk by chunk until the page is full,
// and tells how many it has passed.
func (o *Origin) part(ctx context.Context, r *reading, from place, most int64) (passed int64, err error) {
	for passed < most && !r.full() {
		n := min(o.step, most-passed, int64(r.limit-len(r.Records)-len(r.Refused)))
		o.line.Renew()

		members, err := o.chunk(ctx, from.queue, from.n+passed, n)
		if err != nil {
			return passed, err
		}

		if len(members) == 0 { // the queue has shrunk
			return most, nil
		}

		read, err := o.records(ctx, from.queue, members)
		if err != nil {
			return passed, err
		}

		r.add(read)
		passed += int64(read.passed)

		// The next chunk has more records as long as even the largest ones would fit.
		o.step = max(1, min(2*o.step, chunkSize, maxPageBytes/(read.largest+1)))
	}

	return passed, nil
}

// chunk reads members of a queue's dead letters, the newest first.
func (o *Origin) chunk(ctx context.Context, queue string, from, n int64) ([]string, error) {
	key := fill(o.at.Dead, queue, "")
	if o.at.Type != "list" {
		return o.client.ZRevRange(ctx, key, from, from+n-1).Result()
	}

	if o.at.Newest == "first" {
		return o.client.LRange(ctx, key, from, from+n-1).Result()
	}

	members, err := o.client.LRange(ctx, key, -from-n, -from-1).Result()
	slices.Reverse(members)

	return members, err
}
