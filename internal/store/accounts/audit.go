package accounts

import (
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"redrive/internal/audit"
	"redrive/internal/store/db"
)

// Audit returns one page of the audit log, newest first, of the entries before
// the one named; 0 begins with the newest. Like Jobs it returns what was found
// when it takes too long.
func (b *Book) Audit(ctx context.Context, f audit.Filter, before int64, limit int) (audit.List, error) {
	ctx, cancel := context.WithTimeout(ctx, db.Patience)
	defer cancel()
	var page audit.List
	query, args := auditQuery(f, before, limit)
	err := b.reader.In(ctx).Query(query, func(rows *sql.Rows) error {
		e, err := scanEntry(rows)
		page.Entries = append(page.Entries, e)
		return err
	}, args...)
	if n := len(page.Entries); n > limit || err != nil && n > 0 {
		page.Entries = page.Entries[:min(limit, n)]
		page.Next = page.Entries[len(page.Entries)-1].Seq
	}
	return page, db.TimedOut(ctx, err)
}

const auditColumns = `SELECT seq, at, actor, address, action, subject, filter, count, before, after, hash FROM audit`

func auditQuery(f audit.Filter, before int64, limit int) (string, []any) {
	var where db.Where
	if before > 0 {
		where.Add("seq < %s", before)
	}
	if f.Actor != "" {
		where.Add("actor = %s", f.Actor)
	}
	if f.Subject != "" {
		where.Add("subject = %s", f.Subject)
	}
	if prefix, ok := strings.CutSuffix(f.Action, ".*"); ok {
		where.Add("action >= %s AND action < %s", prefix+".", prefix+"/") // '/' follows '.'
	} else if f.Action != "" {
		where.Add("action = %s", f.Action)
	}
	if !f.From.IsZero() {
		where.Add("at >= %s", db.Micros(f.From))
	}
	if !f.To.IsZero() {
		where.Add("at < %s", db.Micros(f.To))
	}
	if f.Reveals != "" {
		where.Add("(action <> %s OR actor = %s)", audit.Reveal, f.Reveals)
	}
	last, args := where.Limit(limit + 1)
	return auditColumns + where.String() + " ORDER BY seq DESC" + last, args
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

// Verify holds every entry against the hash before it, and the last one
// against the head that is kept beside the log. It reads in pieces, so that
// entries of any number fit into memory.
func Verify(src db.Source) (n int64, err error) {
	const (
		query  = auditColumns + ` WHERE seq > $1 ORDER BY seq LIMIT 1000 + 0`
		newest = `SELECT seq, hash FROM audit_head`
	)
	var last, top head
	for more := true; more; {
		more = false
		err := src.Query(query, func(rows *sql.Rows) error {
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
			last, more = head{e.Seq, e.Hash}, true
			return nil
		}, last.seq)
		if err != nil {
			return last.seq, err
		}
	}
	if err := src.Query(newest, func(rows *sql.Rows) error { return rows.Scan(&top.seq, &top.hash) }); err != nil {
		return last.seq, err
	}
	switch {
	case last.seq < top.seq:
		return last.seq, &audit.Broken{Seq: last.seq + 1, Problem: fmt.Sprintf("is missing, with every later one: the log had %d", top.seq)}
	case last.seq != top.seq || last.seq > 0 && !bytes.Equal(last.hash, top.hash):
		return last.seq, &audit.Broken{Seq: last.seq, Problem: "was not written by this program"}
	}
	return last.seq, nil
}
