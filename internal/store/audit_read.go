package store

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"redrive/internal/audit"
)

// Audit returns one page of the audit log, newest first, of the entries before
// the one named; 0 begins with the newest. Like Jobs it returns what was found
// when it takes too long.
func (s *Store) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var page audit.List
	query, args := auditQuery(f, before, limit)
	err := s.reading(ctx).query(query, func(rows *sql.Rows) error {
		e, err := scanEntry(rows)
		page.Entries = append(page.Entries, e)
		return err
	}, args...)
	if n := len(page.Entries); n > limit || err != nil && n > 0 {
		page.Entries = page.Entries[:min(limit, n)]
		page.Next = page.Entries[len(page.Entries)-1].Seq
	}
	return page, timedOut(ctx, err)
}

const auditColumns = `SELECT seq, at, actor, address, action, subject, filter, count, before, after, hash FROM audit`

func auditQuery(f audit.Filter, before int64, limit int) (string, []any) {
	var where conditions
	if before > 0 {
		where.add("seq < %s", before)
	}
	if f.Actor != "" {
		where.add("actor = %s", f.Actor)
	}
	if f.Subject != "" {
		where.add("subject = %s", f.Subject)
	}
	if prefix, ok := strings.CutSuffix(f.Action, ".*"); ok {
		where.add("action >= %s AND action < %s", prefix+".", prefix+"/") // '/' follows '.'
	} else if f.Action != "" {
		where.add("action = %s", f.Action)
	}
	if !f.From.IsZero() {
		where.add("at >= %s", micros(f.From))
	}
	if !f.To.IsZero() {
		where.add("at < %s", micros(f.To))
	}
	if f.Reveals != "" {
		where.add("(action <> %s OR actor = %s)", audit.Reveal, f.Reveals)
	}
	args := append(where.args, limit+1)
	return auditColumns + where.String() + fmt.Sprintf(" ORDER BY seq DESC LIMIT $%d + 0", len(args)), args
}

func scanEntry(rows *sql.Rows) (e audit.Entry, err error) {
	var at int64
	err = rows.Scan(&e.Seq, &at, &e.Actor.Name, &e.Actor.Address, &e.Action, &e.Subject, &e.Filter, &e.Count, &e.Before, &e.After, &e.Hash)
	e.At = time.UnixMicro(at).UTC()
	if at == 0 {
		e.At = time.Time{}
	}
	return e, err
}

// verifyAudit holds every entry against the hash before it, and the last one
// against the head that is kept beside the log. It reads in pieces, so that
// entries of any number fit into memory.
func verifyAudit(src source) (n int64, err error) {
	const (
		query = auditColumns + ` WHERE seq > $1 ORDER BY seq LIMIT 1000 + 0`
		top   = `SELECT seq, hash FROM audit_head`
	)
	var last, head auditHead
	for more := true; more; {
		more = false
		err := src.query(query, func(rows *sql.Rows) error {
			e, err := scanEntry(rows)
			if err != nil {
				return err
			}
			if e.Seq != last.seq+1 {
				return &audit.Broken{Seq: last.seq + 1, Problem: "is missing"}
			}
			if !bytes.Equal(e.Hash, chained(last.hash, e)) {
				return &audit.Broken{Seq: e.Seq, Problem: "is not as it was written"}
			}
			last, more = auditHead{e.Seq, e.Hash}, true
			return nil
		}, last.seq)
		if err != nil {
			return last.seq, err
		}
	}
	if err := src.query(top, func(rows *sql.Rows) error { return rows.Scan(&head.seq, &head.hash) }); err != nil {
		return last.seq, err
	}
	switch {
	case last.seq < head.seq:
		return last.seq, &audit.Broken{Seq: last.seq + 1, Problem: fmt.Sprintf("is missing, with every later one: the log had %d", head.seq)}
	case last.seq != head.seq || last.seq > 0 && !bytes.Equal(last.hash, head.hash):
		return last.seq, &audit.Broken{Seq: last.seq, Problem: "was not written by this program"}
	}
	return last.seq, nil
}
