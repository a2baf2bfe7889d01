package store

import (
	"crypto/sha256"
	"database/sql"
	"encoding/binary"
	"fmt"
	"hash"

	"redrive/internal/audit"
)

// audit appends entries to the log in the transaction of what they record. The
// hash of each covers the one before, so that none can be changed or taken out
// without all the later ones telling.
func (t *tx) audit(entries ...audit.Entry) error {
	const insert = `INSERT INTO audit (seq, at, actor, address, action, subject, filter, count, before, after, hash)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)`
	for _, e := range entries {
		e.Seq = t.head.seq + 1
		e.Hash = chained(t.head.hash, e)
		_, err := t.exec(insert, e.Seq, micros(e.At), e.Actor.Name, e.Actor.Address, e.Action, e.Subject, e.Filter, e.Count,
			e.Before, e.After, e.Hash)
		if err != nil {
			return fmt.Errorf("write the audit log: %w", err)
		}
		t.head = auditHead{e.Seq, e.Hash}
		t.proven = true
	}
	return nil
}

// flushHead keeps the newest hash beside the log, in place of the one from which
// the writer went on: nobody else may have moved it.
func (t *tx) flushHead() error {
	if t.head.seq == t.rollup.audit.seq {
		return nil
	}
	const update = `UPDATE audit_head SET seq = $1, hash = $2 WHERE hash = coalesce($3, x'')`
	n, err := t.exec(update, t.head.seq, t.head.hash, t.rollup.audit.hash)
	return expect(1, n, err)
}

// auditHead is the newest entry of the log.
type auditHead struct {
	seq  int64
	hash []byte
}

// chained is the hash of an entry: over the hash before and every field, each
// with its length, so that no two entries read alike.
func chained(before []byte, e audit.Entry) []byte {
	h := sha256.New()
	h.Write(before)
	number(h, e.Seq)
	number(h, micros(e.At))
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

// loadAudit goes on from the hash that was kept beside the log, not from the
// newest entry: after an end that was cut off the gap stays, for all to see. An
// entry that somebody added keeps its number.
func (r *rollup) loadAudit(src source) error {
	const query = `SELECT max(seq, coalesce((SELECT max(seq) FROM audit), 0)), hash FROM audit_head`
	return src.query(query, func(rows *sql.Rows) error { return rows.Scan(&r.audit.seq, &r.audit.hash) })
}
