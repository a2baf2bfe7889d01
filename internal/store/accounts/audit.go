package accounts

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"

	"redrive/internal/audit"
	"redrive/internal/store/clause"
	"redrive/internal/store/db"
)

// Audit returns one page of the audit log, newest first, of the entries before
// the one named; 0 begins with the newest. Like Jobs it returns what was found
// when it takes too long.
func (p *Projection) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var page audit.List
	var err error

	query, args := auditQuery(f, before, limit)
	page.Entries, err = db.All(p.reader.In(ctx), query, entryFields, args...)
	if n := len(page.Entries); n > limit || err != nil && n > 0 {
		page.Entries = page.Entries[:min(limit, n)]
		page.Next = page.Entries[len(page.Entries)-1].Seq
	}

	return page, db.TimedOut(ctx, err)
}

const auditColumns = `SELECT seq, at, actor, address, action, subject, filter, count, before, after, hash FROM audit`

func auditQuery(f audit.Filter, before int64, limit int) (string, []any) {
	var where clause.Where
	if before > 0 {
		where.Add("seq < %s", before)
	}

	where.Equal("actor", f.Actor)
	where.Equal("subject", f.Subject)
	where.Pattern("action", f.Action)
	where.Between("at", f.From, f.To)

	if f.Own != "" {
		where.Add("(actor = %s OR NOT EXISTS (SELECT 1 FROM json_each(%s) AS guarded WHERE action GLOB guarded.value))",
			f.Own, db.Texts(audit.Guarded()))
	}

	last, args := where.Limit(limit + 1)

	return auditColumns + where.String() + " ORDER BY seq DESC" + last, args
}

func entryFields(e *audit.Entry) []any {
	return []any{
		&e.Seq, db.Time(&e.At), &e.Actor.Name, &e.Actor.Address, &e.Action, &e.Subject, &e.Filter, &e.Count, &e.Before, &e.After, &e.Hash,
	}
}

// Verify holds every entry against the hash before it, and the last one
// against the head that is kept beside the log. It reads in pieces, so that
// entries of any number fit into memory. A later piece can see a later state of the log.
func Verify(src db.Source) (n int64, err error) {
	const query = auditColumns + ` WHERE seq > $1 ORDER BY seq LIMIT 1000 + 0`
	const newest = `SELECT seq, hash FROM audit_head`

	var last, top head
	for {
		entries, err := db.All(src, query, entryFields, last.seq)
		if err != nil {
			return last.seq, err
		}

		// The end: the head beside the log tells whether entries were cut off, or added. Where it has
		// moved on, entries may have come that were not read.
		if len(entries) == 0 {
			before := top.seq
			_, err := db.Row(src, newest, []any{&top.seq, &top.hash})
			if err != nil {
				return last.seq, err
			}

			if top.seq == before {
				break
			}
		}

		// Numbers have no gap, and each hash follows from the one before.
		for _, e := range entries {
			if e.Seq != last.seq+1 {
				return last.seq, &audit.Broken{Seq: last.seq + 1, Problem: "is missing"}
			}

			if !bytes.Equal(e.Hash, chained(last.hash, e)) {
				return last.seq, &audit.Broken{Seq: e.Seq, Problem: "was changed"}
			}

			last = head{e.Seq, e.Hash}
		}
	}

	switch {
	case last.seq < top.seq:
		return last.seq, &audit.Broken{Seq: last.seq + 1, Problem: fmt.Sprintf("and all later entries are missing: the log had %d", top.seq)}
	case last.seq != top.seq || last.seq > 0 && !bytes.Equal(last.hash, top.hash):
		return last.seq, &audit.Broken{Seq: last.seq, Problem: "was not written by this program"}
	}

	return last.seq, nil
}

// Log appends entries to the audit log in the transaction of what they record.
func (p *Projection) Log(t *db.Tx, entries ...audit.Entry) error {
	const insert = `INSERT INTO audit (seq, at, actor, address, action, subject, filter, count, before, after, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	changes := p.changes.In(t)
	for _, e := range entries {
		clean(&e)
		e.Seq = changes.head.seq + 1
		e.Hash = chained(changes.head.hash, e)

		err := t.Run(insert, e.Seq, db.Micros(e.At), e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Count,
			e.Before, e.After, e.Hash)
		if err != nil {
			return fmt.Errorf("write the audit log: %w", err)
		}

		changes.head = head{e.Seq, e.Hash}

		t.Wrote()
		t.Touch()
	}

	return nil
}

// clean makes the texts of an entry such that every database can keep them.
func clean(e *audit.Entry) {
	for _, text := range []*string{&e.Actor.Name, &e.Actor.Address, &e.Subject, &e.Filter, &e.Before, &e.After} {
		*text = db.Clean(*text)
	}
}

// Record writes entries of the audit log about what changes nothing in the
// database.
func (p *Projection) Record(ctx context.Context, entries ...audit.Entry) error {
	return p.writer.Do(ctx, len(entries), func(t *db.Tx) error { return p.Log(t, entries...) })
}

// Flush keeps the newest hash beside the log, in place of the one from which the
// writer went on: no other program may have changed that one.
func (p *Projection) Flush(t *db.Tx) error {
	after := p.changes.In(t).head
	if after.seq == p.head.seq {
		return nil
	}

	const update = `UPDATE audit_head SET seq = $1, hash = $2 WHERE hash = $3`

	before := p.head.hash
	if before == nil {
		before = []byte{}
	}

	return t.ExecExactly(1, update, after.seq, after.hash, before)
}

// head is the newest entry of the log.
type head struct {
	seq  int64
	hash []byte
}

// chained is the hash of an entry: over the hash before and every field, each
// with its length, so that no two entries read alike.
func chained(before []byte, e audit.Entry) []byte {
	h := sha256.New()
	h.Write(before)
	writeNumber(h, e.Seq)
	writeNumber(h, db.Micros(e.At))
	writeNumber(h, e.Count)

	for _, s := range []string{e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Before, e.After} {
		writeNumber(h, int64(len(s)))
		h.Write([]byte(s))
	}

	return h.Sum(nil)
}

func writeNumber(h hash.Hash, n int64) {
	h.Write(binary.BigEndian.AppendUint64(nil, uint64(n))) // never fails
}

// loadHead goes on from the hash that was kept beside the log, not from the
// newest entry: when the end of the log was cut off, the gap stays, for all to
// see. An entry that another program added keeps its number.
func (p *Projection) loadHead(src db.Source) error {
	const query = `SELECT seq, coalesce((SELECT max(seq) FROM audit), 0), hash FROM audit_head`
	var newest int64
	_, err := db.Row(src, query, []any{&p.head.seq, &newest, &p.head.hash})
	p.head.seq = max(p.head.seq, newest)

	return err
}
