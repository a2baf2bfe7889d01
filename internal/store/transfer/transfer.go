// Package transfer makes a database a copy of another one, of the same kind or of the other: it
// moves a store from a file to a server, and back.
//
// It knows no rule of the store. What there is to copy it asks the databases themselves, so that
// a table or a column that a later version adds is copied, too; the only tables that it knows by
// name are those that are left out, each for a reason (see leftOut).
//
// The source is locked for as long as it takes, and is left as it is. Each table is read once,
// in the order of its key, and written in batches. A batch is one transaction, which also notes
// how far the table has come (table migration). A run that was cut short therefore goes on where
// it was, and until the copy is complete no store opens it (moving.ErrUnfinished). It is complete
// once the rows of all tables are the same on both sides, and the checks of doctor pass there.
package transfer

import (
	"context"
	"errors"
	"fmt"

	"redrive/internal/store/db"
	"redrive/internal/store/location"
	"redrive/internal/store/moving"
	"redrive/internal/usage"
)

// Progress hears how many rows of all are done, of each of the steps.
type Progress func(step Step, done, all int64)

// Step is a part of the work that takes long.
type Step string

// The steps, in their order.
const (
	Copying  Step = "Copying"
	Checking Step = "Checking"
)

// Report is what was done.
type Report struct {
	Tables int
	Rows   int64
	Kept   int64 // rows that an earlier run had copied
	Mended int64 // texts that had characters which not every database can keep
}

// Run makes the database at one location a copy of that at another, or goes on with it. What was
// asked wrongly is refused before anything is written.
func Run(ctx context.Context, from, to location.Location, tell Progress) (r Report, err error) {
	source, err := openSource(ctx, from)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, source.close()) }()

	target, err := openTarget(ctx, to)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, target.close()) }()

	m := &move{source: source, target: target, tell: tell}

	err = m.plan(ctx)
	if err == nil {
		err = m.begin(ctx)
	}

	if err != nil {
		return r, errors.Join(err, target.abandon())
	}

	r.Tables, r.Kept = len(m.tables), m.copied()

	err = m.copy(ctx)
	if err == nil {
		err = m.finish(ctx)
	}

	if err != nil && !errors.Is(err, errUnsound) {
		err = fmt.Errorf("%s is not finished: %w; once that is solved, run the same command again, and it goes on where it was", to, err)
	}

	r.Rows, r.Mended = m.copied(), m.mended()

	return r, err
}

// errUnsound says that a copy is not what it has to be, which another run does not change.
var errUnsound = errors.New("the copy is not sound; begin again with a new, empty database, and report this")

// move is one run.
type move struct {
	source, target *end
	tell           Progress

	tables []moving.Table      // in the order in which they are copied
	states map[string]progress // by the names of the tables
	all    int64               // rows of the source
}

// progress is how far a table has come.
type progress struct {
	copied int64 // rows
	mended int64 // texts among them
}

// copied are the rows that the target has.
func (m *move) copied() (n int64) {
	for _, p := range m.states {
		n += p.copied
	}

	return n
}

// mended are the texts that are not as they were in the source.
func (m *move) mended() (n int64) {
	for _, p := range m.states {
		n += p.mended
	}

	return n
}

// plan finds the tables that both databases have, and how much there is to copy.
func (m *move) plan(ctx context.Context) error {
	ours, err := m.source.engine.Tables(ctx)
	if err != nil {
		return err
	}

	theirs, err := m.target.engine.Tables(ctx)
	if err != nil {
		return err
	}

	m.tables, err = common(ours, theirs)
	if err != nil {
		return err
	}

	for _, t := range m.tables {
		n, err := m.source.count(ctx, t)
		if err != nil {
			return err
		}

		m.all += n
	}

	return nil
}

// begin reads how far an earlier run has come, or notes in an empty target that this one begins.
func (m *move) begin(ctx context.Context) error {
	const noted = `SELECT name, source, mark, copied, mended FROM migration`

	mark, err := m.source.mark(ctx)
	if err != nil {
		return err
	}

	type note struct {
		name, source, mark string
		progress
	}

	notes, err := db.All(m.target.reader.In(ctx), noted, func(n *note) []any {
		return []any{&n.name, &n.source, &n.mark, &n.copied, &n.mended}
	})
	if err != nil {
		return fmt.Errorf("read how far a migration has come: %w", err)
	}

	m.states = map[string]progress{}
	for _, n := range notes {
		if n.mark != mark {
			return m.another(n.source)
		}

		m.states[n.name] = n.progress
	}

	if len(notes) > 0 {
		m.target.begun = true
		return nil
	}

	err = m.checkEmpty(ctx)
	if err != nil {
		return err
	}

	return m.note(ctx, mark)
}

// another says that an unfinished copy is of another database, or of an earlier state.
func (m *move) another(source string) error {
	if source == m.source.where.String() {
		return usage.Errorf("%s was written to since its migration into %s began; begin again with a new, empty database",
			m.source.where, m.target.where)
	}

	return usage.Errorf("%s is to become a copy of %s, and not of %s; name that database to go on with it, or a new, empty one after --to",
		m.target.where, source, m.source.where)
}

// note notes that the copy begins: from here on, no store opens the target.
func (m *move) note(ctx context.Context, mark string) error {
	const begins = `INSERT INTO migration (name, source, mark, copied, mended) VALUES ($1, $2, $3, 0, 0)`

	err := m.target.write(ctx, len(m.tables), func(t *db.Tx) error {
		for _, table := range m.tables {
			err := t.ExecExactly(1, begins, table.Name, m.source.where.String(), mark)
			if err != nil {
				return err
			}
		}

		return nil
	})
	if err != nil {
		return fmt.Errorf("note that a migration into %s begins: %w", m.target.where, err)
	}

	m.target.begun = true
	for _, table := range m.tables {
		m.states[table.Name] = progress{}
	}

	return nil
}
