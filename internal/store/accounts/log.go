package accounts

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash"

	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// Log appends entries to the audit log in the transaction of what they record.
func (b *Book) Log(t *db.Tx, entries ...audit.Entry) error {
	const insert = `INSERT INTO audit (seq, at, actor, address, action, subject, filter, count, before, after, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	for _, e := range entries {
		clean(&e)
		e.Seq = b.headNow.seq + 1
		e.Hash = chained(b.headNow.hash, e)
		_, err := t.Exec(insert, e.Seq, db.Micros(e.At), e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Count,
			e.Before, e.After, e.Hash)
		if err != nil {
			return fmt.Errorf("write the audit log: %w", err)
		}
		b.headNow = head{e.Seq, e.Hash}
		t.Wrote()
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
func (b *Book) Record(ctx context.Context, entries ...audit.Entry) error {
	return b.writer.Do(ctx, len(entries), func(t *db.Tx) error { return b.Log(t, entries...) })
}

// Flush keeps the newest hash beside the log, in place of the one from which the
// writer went on: nobody else may have moved it.
func (b *Book) Flush(t *db.Tx) error {
	if b.headNow.seq == b.head.seq {
		return nil
	}
	const update = `UPDATE audit_head SET seq = $1, hash = $2 WHERE hash = $3`
	before := b.head.hash
	if before == nil {
		before = []byte{}
	}
	return t.ExecExactly(1, update, b.headNow.seq, b.headNow.hash, before)
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
	number(h, e.Seq)
	number(h, db.Micros(e.At))
	number(h, e.Count)
	for _, s := range []string{e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Before, e.After} {
		number(h, int64(len(s)))
		h.Write([]byte(s))
	}
	return h.Sum(nil)
}

func number(h hash.Hash, n int64) {
	var b [8]byte
	binary.BigEndian.PutUint64(b[:], uint64(n))
	h.Write(b[:]) // never fails
}

// loadHead goes on from the hash that was kept beside the log, not from the
// newest entry: after an end that was cut off the gap stays, for all to see. An
// entry that somebody added keeps its number.
func (b *Book) loadHead(src db.Source) error {
	const query = `SELECT seq, coalesce((SELECT max(seq) FROM audit), 0), hash FROM audit_head`
	return src.Query(query, func(rows *sql.Rows) error {
		var newest int64
		err := rows.Scan(&b.head.seq, &newest, &b.head.hash)
		b.head.seq = max(b.head.seq, newest)
		return err
	})
}
