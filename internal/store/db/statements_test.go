package db

import (
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"testing"

	_ "modernc.org/sqlite"
)

// Ten thousand shapes of a query leave no more prepared than the limit, and none
// is closed while a caller uses it.
func TestStatements_KeepAsManyAsTheirLimit(t *testing.T) {
	const limit, callers = 16, 8
	pool, err := sql.Open("sqlite", "file:"+filepath.Join(t.TempDir(), "x.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	pool.SetMaxOpenConns(4)
	s := newStatements(limit)
	var all sync.WaitGroup
	var made sync.Map
	for caller := range callers {
		all.Go(func() {
			for i := range 10_000 / callers {
				text := fmt.Sprintf("SELECT %d", (caller+i)%2500)
				used, err := s.use(text, func() (*sql.Stmt, error) {
					stmt, err := pool.Prepare(text)
					made.Store(stmt, true)
					return stmt, err
				})
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				if err := used.QueryRow().Scan(&n); err != nil || n != (caller+i)%2500 {
					t.Errorf("%s returned %d, %v", text, n, err)
				}
				if err := s.done(used); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := s.kept.Len(); n != limit {
		t.Errorf("%d statements are kept, want %d", n, limit)
	}
	open := 0
	made.Range(func(stmt, _ any) bool {
		if rows, err := stmt.(*sql.Stmt).Query(); err == nil {
			open++
			if err := rows.Close(); err != nil {
				t.Error(err)
			}
		}
		return true
	})
	if open != limit {
		t.Errorf("%d statements are open, want the %d that are kept", open, limit)
	}
}
