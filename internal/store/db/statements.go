package db

import (
	"container/list"
	"database/sql"
	"errors"
	"sync"
)

// statements keeps the queries that were used last prepared. Their number is
// bounded: a filter can be written in more shapes than fit into memory, and each
// is a text of its own.
type statements struct {
	mu     sync.Mutex
	limit  int
	kept   recent
	unused []*sql.Stmt // dropped, and to be closed
}

// statement is a prepared query.
type statement struct {
	*sql.Stmt
	query   string
	users   int  // who have it at this moment
	dropped bool // it is no longer kept: the last user closes it
}

func newStatements(limit int) *statements {
	return &statements{limit: max(1, limit), kept: recent{byQuery: map[string]*list.Element{}}}
}

// recent are statements in the order of their last use. The zero value has no map.
type recent struct {
	byQuery map[string]*list.Element
	order   list.List // of *statement, the one used last in front
}

// Len is the number of statements.
func (r *recent) Len() int { return r.order.Len() }

// use returns the statement of a query, or nil.
func (r *recent) use(query string) *statement {
	at, ok := r.byQuery[query]
	if !ok {
		return nil
	}

	r.order.MoveToFront(at)

	return at.Value.(*statement)
}

// add takes a statement whose query has none yet.
func (r *recent) add(s *statement) { r.byQuery[s.query] = r.order.PushFront(s) }

// drop removes the statement that was not used for the longest time. There has to be one.
func (r *recent) drop() *statement {
	old := r.order.Remove(r.order.Back()).(*statement)
	delete(r.byQuery, old.query)
	return old
}

// use returns the statement of a query, prepared by the function when none is kept.
// The caller says afterwards that it is done.
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

	found := s.kept.use(query)
	if found != nil {
		found.users++
	}

	return found
}

// keep adds a statement, unless another caller was faster, and returns the one to
// use with those that are to be closed.
func (s *statements) keep(query string, stmt *sql.Stmt) (used *statement, unused []*sql.Stmt) {
	s.mu.Lock()
	defer s.mu.Unlock()

	used = s.kept.use(query)
	if used != nil {
		s.unused = append(s.unused, stmt)
	} else {
		used = &statement{Stmt: stmt, query: query}
		s.kept.add(used)
	}

	used.users++

	// Make room again. A statement that someone uses is closed by its last user.
	for s.kept.Len() > s.limit {
		old := s.kept.drop()
		old.dropped = true
		if old.users == 0 {
			s.unused = append(s.unused, old.Stmt)
		}
	}

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
