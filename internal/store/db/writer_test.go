package db_test

import (
	"database/sql"
	"errors"
	"log/slog"
	"path/filepath"
	"testing"

	_ "modernc.org/sqlite"

	"redrive/internal/fault"
	"redrive/internal/store/db"
	"redrive/internal/store/health"
	"redrive/internal/store/sqlite"
)

// panicking is a participant that panics where it is told to.
type panicking struct{ flush, committed bool }

func (p *panicking) Flush(*db.Tx) error {
	if p.flush {
		panic("a defect")
	}
	return nil
}

func (p *panicking) Committed(*db.Tx) {
	if p.committed {
		panic("a defect")
	}
}

// A panic goes on to the caller, and the writer ends with it. Before that,
// the transaction is rolled back and what took part in it is told, so that neither
// another connection waits for its lock, nor the end of the program for what was reserved for it.
func TestWriter_RollsBackBeforeAPanicGoesOn(t *testing.T) {
	for name, c := range map[string]struct {
		participant panicking
		operation   bool // panics
		kept        int  // rows
	}{
		"in an operation":          {operation: true},
		"while participants flush": {participant: panicking{flush: true}},
		"while they make it known": {participant: panicking{committed: true}, kept: 1},
	} {
		t.Run(name, func(t *testing.T) {
			p := &panicking{}
			o := open(t, p)
			*p = c.participant // the writer began with a transaction of its own
			told := 0
			func() {
				defer func() {
					if got := recover(); got != "a defect" {
						t.Errorf("the panic is %v", got)
					}
				}()
				_ = o.writer.Do(t.Context(), 1, func(tx *db.Tx) error {
					tx.Undone(func() { told++ })
					if err := tx.Run(`INSERT INTO policies (policy, origins) VALUES ('a', 'b')`); err != nil {
						t.Error(err)
					}
					if c.operation {
						panic("a defect")
					}
					return nil
				})
			}()
			if told != 1 {
				t.Errorf("%d were told of the end, want 1", told)
			}
			n, err := db.Value[int](o.reader.In(t.Context()), `SELECT count(*) FROM policies`)
			if n != c.kept || err != nil {
				t.Errorf("%d rows, %v, want %d", n, err, c.kept)
			}
			if err := o.writer.Do(t.Context(), 1, func(*db.Tx) error { return nil }); !errors.Is(err, fault.ErrBroken) {
				t.Errorf("afterwards: %v", err)
			}

			other, err := sql.Open("sqlite", "file:"+o.path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = other.Exec(`BEGIN IMMEDIATE; ROLLBACK`)
			if err := errors.Join(err, other.Close()); err != nil {
				t.Errorf("the transaction is still open: %v", err)
			}
		})
	}
}

// The same holds beside the writer: the connection can begin another transaction.
func TestTransact_RollsBackBeforeAPanicGoesOn(t *testing.T) {
	health := health.New(slog.New(slog.DiscardHandler))
	engine, err := sqlite.File{Path: filepath.Join(t.TempDir(), "jobs.db"), Relaxed: true}.Open(t.Context(), health)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := engine.Writer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if got := recover(); got != "a defect" {
				t.Errorf("the panic is %v", got)
			}
		}()
		_ = db.Transact(t.Context(), conn, func(tx *db.Tx) error {
			if err := tx.Run(`INSERT INTO policies (policy, origins) VALUES ('a', 'b')`); err != nil {
				t.Error(err)
			}
			panic("a defect")
		})
	}()
	var n int
	err = db.Transact(t.Context(), conn, func(tx *db.Tx) error {
		n, err = db.Value[int](tx, `SELECT count(*) FROM policies`)
		return err
	})
	if n != 0 || err != nil {
		t.Errorf("%d rows, %v, want none", n, err)
	}
	if err := errors.Join(conn.Close(), engine.Close()); err != nil {
		t.Error(err)
	}
}
