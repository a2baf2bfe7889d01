// Package sqlsource attaches systems that keep their dead letters in tables of SQLite,
// PostgreSQL, MySQL or MariaDB, as a preset describes them.
//
// Reading takes a transaction that can only read, and ends after a while. An act is one
// transaction, whose last statement must find the record as the person saw it. When it
// does not, nothing was changed, and the row says why: it is gone, or has died again.
//
// Where the queue of a system is not in the database, the job is pushed there between the
// last statement and the commit, while the transaction holds the row. When the commit
// fails, the job is in both places. The act is then looked up, found undone and repeated,
// and a push that is repeated does nothing.
package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// Origin is an attached database.
type Origin struct {
	db        *sql.DB
	line      *bounded.Line // of its connections
	engine    engine
	preset    *preset.Preset
	codec     codec.Codec
	settings  preset.Settings
	zone      *time.Location
	columns   []string // of the list, by the names of fields
	list      string   // the list from its beginning
	more      string   // the list from :a and :b on
	same      string   // the version token of :key
	clean     bool     // an act needs the raw bytes
	raw       string   // the raw bytes of :key, where a replay has to look at them; else empty
	listTable string   // the table of the list
	work      Work     // the queue, where it is in another store; else nil
	step      int      // rows that the next page asks for

	nameless []source.Refusal // rows without a key, as the last check found them
	shares   bool             // rows of an own table had the same key when it was checked last
}

// Work is the queue of a system that is not in its database.
type Work interface {
	// Check looks whether jobs can be pushed: then the report says that a replay may be done.
	Check(ctx context.Context) (source.Report, error)
	// Push adds a job, to run at a time or at once, and once for each id. An error that is
	// no *preset.Refusal leaves open whether it did.
	Push(ctx context.Context, queue, id string, job []byte, at time.Time) error
	// Pushed reports whether a job was pushed with an id, as far as that can be told.
	Pushed(ctx context.Context, queue, id string) (bool, error)
	Close() error
}

// SendTo lets replays go to a queue, which the origin closes.
func (o *Origin) SendTo(w Work) { o.work = w }

// Open connects with the database that a URL names, as postgres://user:password@host/name,
// mysql://user:password@host/name or sqlite:///path/to/file. With ?mode=ro, a file is never
// written.
func Open(ctx context.Context, address string, p *preset.Preset, s preset.Settings) (_ *Origin, err error) {
	p, s, err = p.Complete(s)
	if err != nil {
		return nil, err
	}

	o := &Origin{preset: p, settings: s, zone: time.UTC, step: maxStep}
	if s.Zone != "" {
		o.zone, err = time.LoadLocation(s.Zone)
		if err != nil {
			return nil, fmt.Errorf("zone %q: %w", s.Zone, err)
		}
	}

	var ok bool

	o.codec, ok = codec.Get(p.Codec)
	if !ok { // unreachable: a test reads all presets
		return nil, fmt.Errorf("the preset %s names a codec that there is not: %s", p.Name, p.Codec)
	}

	o.engine, err = engineOf(address)
	if err != nil {
		return nil, err
	}

	o.line = bounded.New(o.engine.protocol)
	if !slices.Contains(p.Engines, o.engine.name) {
		return nil, fmt.Errorf("the preset %s is for %s, and the URL names %s", p.Name, strings.Join(p.Engines, ", "), o.engine.name)
	}

	if o.engine.file != "" {
		_, err := os.Stat(o.engine.file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file", o.engine.file)
		}
	}
	defer o.line.Begin(ctx, bounded.MaxAnswer)(&err)

	connector, err := o.engine.connects(o.line)
	if err != nil {
		return nil, errors.New("the URL cannot be read") // the error could have the password
	}

	o.db = sql.OpenDB(careful{connector})
	o.db.SetMaxOpenConns(2)
	o.db.SetConnMaxIdleTime(time.Minute)
	o.compose()

	if err := o.db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), o.db.Close())
	}

	return o, nil
}

// Close ends the connections.
func (o *Origin) Close() error {
	err := o.line.CloseError(o.db.Close())
	if o.work != nil {
		err = errors.Join(o.work.Close(), err)
	}

	return err
}

// patience is how long the database works at one question, in milliseconds. A
// connection that is closed from here does not end the work there.
const patience = "20000"

// reading runs do in a transaction that only reads.
func (o *Origin) reading(ctx context.Context, do func(*sql.Tx) error) error {
	t, err := o.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: true})
	if err != nil {
		return err
	}

	if o.engine.name == "postgres" {
		if _, err := t.ExecContext(ctx, "SET LOCAL statement_timeout = "+patience); err != nil {
			return errors.Join(err, t.Rollback())
		}
	}

	return errors.Join(do(t), t.Rollback())
}

// What a page may cost.
const (
	pageBytes = 16 << 20 // after which it ends, whatever its limit
	maxStep   = 500      // rows
)
