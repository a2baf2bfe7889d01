package db

import "database/sql"

// Tx is one transaction of the writer.
type Tx struct {
	conn    Conn
	wrote   bool
	touched bool
}

// Exec runs a statement and returns the number of rows that it changed. Texts
// among the arguments are cleaned.
func (t *Tx) Exec(query string, args ...any) (int64, error) {
	clean(args)
	return t.conn.Exec(query, args...)
}

// Query calls each for every row.
func (t *Tx) Query(query string, each func(*sql.Rows) error, args ...any) error {
	clean(args)
	return t.conn.Query(query, each, args...)
}

// clean makes the texts among arguments such that every database can keep them.
func clean(args []any) {
	for i, a := range args {
		if text, ok := a.(string); ok {
			if c := Clean(text); c != text {
				args[i] = c
			}
		}
	}
}

// ExecExactly runs a statement that has to change exactly n rows.
func (t *Tx) ExecExactly(n int, query string, args ...any) error {
	changed, err := t.Exec(query, args...)
	return Expect(int64(n), changed, err)
}

// Wrote notes that the transaction writes to the disk, which proves that this is
// possible. It is enough to note it of the writes that must be proven.
func (t *Tx) Wrote() { t.wrote = true }

// Touch notes that something changed that pages show, although no job moved.
func (t *Tx) Touch() { t.touched = true }

// Touched reports whether Touch was called.
func (t *Tx) Touched() bool { return t.touched }
