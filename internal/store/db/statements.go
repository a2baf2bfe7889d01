package db

import (
	"database/sql"
	"errors"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// statements keeps the queries that were used last prepared. Their number is
// bounded: a filter can be written in more shapes than fit into memory, and each
// is a text of its own.
type statements struct {
	mu     sync.Mutex
	kept   *simplelru.LRU[string, *statement]
	unused []*sql.Stmt // dropped, and to be closed
}

// statement is a prepared query.
type statement struct {
	*sql.Stmt
	users   int  // who have it at this moment
	dropped bool // it is no longer kept: the last user closes it
}

func newStatements(limit int) *statements {
	s := &statements{}
	s.kept, _ = simplelru.NewLRU(max(1, limit), func(_ string, old *statement) { // no error: the limit is positive
		if old.dropped = true; old.users == 0 {
			s.unused = append(s.unused, old.Stmt)
		}
	})
	return s
}

// use returns the statement of a query, prepared by the function when none is kept.
// Whoever uses it says afterwards that they are done.
func (s *statements) use(query string, prepare func() (*sql.Stmt, error)) (*statement, error) {
	if found := s.find(query); found != nil {
		return found, nil
	}
	stmt, err := prepare() // without the lock: it may wait for a connection
	if err != nil {
		return nil, err
	}
	used, unused := s.keep(query, stmt)
	for _, stmt := range unused {
		err = errors.Join(err, stmt.Close())
	}
	if err != nil {
		return nil, errors.Join(err, s.done(used))
	}
	return used, nil
}

// find takes a statement that is kept, or nil.
func (s *statements) find(query string) *statement {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.kept.Get(query)
	if ok {
		found.users++
	}
	return found
}

// keep adds a statement, unless somebody else was faster, and returns the one to
// use with those that are to be closed.
func (s *statements) keep(query string, stmt *sql.Stmt) (used *statement, unused []*sql.Stmt) {
	s.mu.Lock()
	defer s.mu.Unlock()
	used, ok := s.kept.Get(query)
	if ok {
		s.unused = append(s.unused, stmt)
	} else {
		used = &statement{Stmt: stmt}
		s.kept.Add(query, used)
	}
	used.users++
	unused, s.unused = s.unused, nil
	return used, unused
}

// done gives a statement back.
func (s *statements) done(used *statement) error {
	s.mu.Lock()
	used.users--
	last := used.dropped && used.users == 0
	s.mu.Unlock()
	if last {
		return used.Close()
	}
	return nil
}
