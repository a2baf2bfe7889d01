package amqpsource

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"

	"redrive/internal/source"
)

// Scan reads a page of the dead letters. The first page takes a look at all queues, and
// those after it are from that look, so that a pass holds each message once.
func (o *Origin) Scan(ctx context.Context, after string, limit int) (page source.Page, err error) {
	from := 0
	if after != "" {
		from, err = strconv.Atoi(after)
		if err != nil {
			return page, fmt.Errorf("%q is not a place in a look", after)
		}
	}

	if from == 0 || o.seen == nil { // a new connection goes on with the pass of the one before
		if err := o.look(ctx); err != nil {
			return page, err
		}
	}

	// A page is full by the number of its records or by their size.
	rest := o.seen[min(from, len(o.seen)):]
	size, n := 0, 0
	for n < min(limit, len(rest)) && size < maxPageBytes {
		size += len(rest[n].Payload) + len(rest[n].Trace)
		n++
	}

	page.Records = rest[:n]
	if n < len(rest) {
		page.Next = strconv.Itoa(from + n)
	}

	if from == 0 {
		page.Refused = o.large
	}

	return page, nil
}

// look reads the messages of all queues, and puts them back. The newest come first.
func (o *Origin) look(ctx context.Context) (err error) {
	defer o.line.Begin(ctx, maxLookBytes)(&err)

	o.seen, o.large = []source.Record{}, nil
	for _, queue := range o.queues {
		h, err := o.hold(ctx, queue, func(string) bool { return false })
		if err != nil {
			return err
		}

		if err := h.release(); err != nil {
			return err
		}

		// A queue has its oldest message first.
		for _, m := range slices.Backward(h.messages) {
			if m.large > 0 {
				o.large = append(o.large, source.TooLarge(m.key, m.large))
			} else {
				o.seen = append(o.seen, o.record(queue, &m))
			}
		}
	}

	slices.SortStableFunc(o.seen, func(a, b source.Record) int { return b.FailedAt.Compare(a.FailedAt) })

	return nil
}

// record makes a record of a message.
func (o *Origin) record(queue string, m *message) source.Record {
	d := deathOf(m.Headers)
	r := source.Record{
		Key: m.key, Place: source.ShownName(queue), Queue: cmp.Or(o.target(queue, m.Headers), queue), Raw: m.Body,
		Error: d.info(), FailedAt: d.at, Attempts: d.count,
	}
	if !m.Timestamp.IsZero() && m.Timestamp.Unix() > 0 && m.Timestamp.Unix() < 1e11 {
		r.CreatedAt = m.Timestamp.UTC()
	}

	meta := metaOf(&m.Delivery)
	o.headers(&r, m.Headers)
	o.codec.Read(&r)
	r.Meta = meta

	r.Raw = nil // an act takes the message itself
	r.Type = cmp.Or(r.Type, m.Type, "unknown")
	if r.Lineage == "" {
		r.Lineage = r.Place + "/" + cmp.Or(m.MessageId, steady(&m.Delivery))
	}

	o.finish(&r, queue, m)

	return r
}
