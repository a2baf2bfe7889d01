// Package sqlsource attaches systems that keep their dead letters in tables of SQLite,
// PostgreSQL, MySQL or MariaDB, as a preset describes them.
//
// Reading takes a transaction that can only read, and ends after a while. An act is one
// transaction, whose last statement must find the record as the person saw it. When it
// does not, nothing was changed, and the row says why: it is gone, or has died again.
package sqlsource

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver of PostgreSQL
	_ "modernc.org/sqlite"             // the driver of SQLite

	"redrive/internal/source"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// Origin is an attached database.
type Origin struct {
	db       *sql.DB
	engine   engine
	preset   *preset.Preset
	codec    codec.Codec
	settings preset.Settings
	zone     *time.Location
	columns  []string // of the list, by the names of fields
	list     string   // the list from its beginning
	more     string   // the list from :a and :b on
	same     string   // the witness of :key
}

// Open connects with the database that a URL names, as postgres://user:password@host/name,
// mysql://user:password@host/name or sqlite:///path/to/file.
func Open(ctx context.Context, address string, p *preset.Preset, s preset.Settings) (*Origin, error) {
	s, err := p.Complete(s)
	if err != nil {
		return nil, err
	}
	o := &Origin{preset: p, settings: s, zone: time.UTC}
	if s.Zone != "" {
		if o.zone, err = time.LoadLocation(s.Zone); err != nil {
			return nil, fmt.Errorf("zone %q: %w", s.Zone, err)
		}
	}
	var ok bool
	if o.codec, ok = codec.Get(p.Codec); !ok {
		return nil, fmt.Errorf("the preset %s names a codec that there is not: %s", p.Name, p.Codec)
	}
	if o.engine, err = engineOf(address); err != nil {
		return nil, err
	}
	if !slices.Contains(p.Engines, o.engine.name) {
		return nil, fmt.Errorf("the preset %s is for %s, and the URL names %s", p.Name, strings.Join(p.Engines, ", "), o.engine.name)
	}
	if o.db, err = sql.Open(o.engine.driver, o.engine.dsn); err != nil {
		return nil, errors.New("the URL cannot be read") // the error could have the password
	}
	o.db.SetMaxOpenConns(2)
	o.db.SetConnMaxIdleTime(time.Minute)
	o.compose()
	if err := o.db.PingContext(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("connect: %w", err), o.db.Close())
	}
	return o, nil
}

// Close ends the connections.
func (o *Origin) Close() error { return o.db.Close() }

// compose makes the statements of the list.
func (o *Origin) compose() {
	p := o.preset
	var fields []string
	for _, name := range fieldNames {
		if text, ok := p.Fields[name]; ok {
			o.columns = append(o.columns, name)
			fields = append(fields, text+" AS "+o.engine.quote("f_"+name))
		}
	}
	order := make([]string, len(p.Order))
	for i, field := range p.Order {
		order[i] = field + " DESC"
	}
	head := "SELECT " + strings.Join(fields, ", ") + " FROM " + p.From + " WHERE " + p.Where
	tail := " ORDER BY " + strings.Join(order, ", ") + " LIMIT :limit"
	a, b := o.engine.cast(p.Order[0], ":a"), ""
	after := " AND " + p.Order[0] + " < " + a
	if len(p.Order) == 2 { // the first condition alone lets an index on both be used
		b = o.engine.cast(p.Order[1], ":b")
		after = " AND " + p.Order[0] + " <= " + a + " AND (" + strings.Join(p.Order, ", ") + ") < (" + a + ", " + b + ")"
	}
	o.list, o.more = head+tail, head+after+tail
	o.same = "SELECT " + p.Fields["witness"] + " FROM " + p.From + " WHERE " + p.Same
}

// fieldNames are what a record can have, in the order in which it is read.
var fieldNames = []string{
	"key", "thread", "witness", "queue", "type", "raw", "error_type", "error", "trace", "history", "reason",
	"attempts", "limit", "failed_at", "created_at", "elsewhere", "a", "b",
}

// Check looks whether the tables are those of the preset, and reads one record.
func (o *Origin) Check(ctx context.Context) (source.Report, error) {
	var version sql.NullString
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.preset.Probe, nil)
		return t.QueryRowContext(ctx, query, args...).Scan(&version)
	})
	if err != nil {
		return source.Report{}, fmt.Errorf("this is not %s, or its tables have other names: %w", o.preset.Title, err)
	}
	if _, err := o.Scan(ctx, "", 1); err != nil {
		return source.Report{}, err
	}
	r := source.Report{Version: version.String, Warnings: o.preset.Hazards}
	if version.String == "0" || version.String == "" { // the probe only looks at the tables
		r.Version = o.preset.Version
	}
	return r, nil
}

// reading runs do in a transaction that only reads.
func (o *Origin) reading(ctx context.Context, do func(*sql.Tx) error) error {
	t, err := o.db.BeginTx(ctx, &sql.TxOptions{ReadOnly: o.engine.readOnly})
	if err != nil {
		return err
	}
	return errors.Join(do(t), t.Rollback())
}

// Scan reads the records after a place, the newest first.
func (o *Origin) Scan(ctx context.Context, after string, limit int) (page source.Page, err error) {
	statement, values := o.list, map[string]any{"limit": inline(fmt.Sprint(limit))}
	if after != "" {
		statement = o.more
		place := strings.SplitN(after, "\n", 2)
		values["a"] = place[0]
		if len(place) == 2 {
			values["b"] = place[1]
		}
	}
	query, args := o.bind(statement, values)
	last := ""
	err = o.reading(ctx, func(t *sql.Tx) error {
		rows, err := t.QueryContext(ctx, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			r, place, err := o.read(rows)
			if err != nil {
				return err
			}
			page.Records, last = append(page.Records, r), place
		}
		return rows.Err()
	})
	if len(page.Records) == limit {
		page.Next = last
	}
	return page, err
}

// read makes a record of a row.
func (o *Origin) read(rows *sql.Rows) (r source.Record, place string, err error) {
	cells := make([]any, len(o.columns))
	places := make([]any, len(cells))
	for i := range cells {
		places[i] = &cells[i]
	}
	if err := rows.Scan(places...); err != nil {
		return r, "", err
	}
	row := map[string]any{}
	for i, name := range o.columns {
		row[name] = cells[i]
	}
	text := func(name string) string { return textOf(row[name]) }
	r = source.Record{
		Key: text("key"), Thread: text("thread"), Witness: text("witness"), Place: o.settings.Names["table"],
		Queue: text("queue"), Type: text("type"), Trace: text("trace"),
		Attempts: int(numberOf(row["attempts"])), Limit: int(numberOf(row["limit"])),
		FailedAt: o.timeOf(row["failed_at"]), CreatedAt: o.timeOf(row["created_at"]),
	}
	r.Raw = []byte(text("raw"))
	r.Error.Type, r.Error.Message = text("error_type"), text("error")
	if h := text("history"); h != "" {
		r.History = historyOf(h)
	}
	o.codec.Read(&r)
	if numberOf(row["elsewhere"]) != 0 {
		r.Warnings = append(r.Warnings, o.preset.Refused)
	}
	if r.Type == "" {
		r.Type = "unknown"
	}
	if place = text("a"); slices.Contains(o.columns, "b") {
		place += "\n" + text("b")
	}
	return r, place, nil
}

// Act does what the acts say, each in a transaction of its own.
func (o *Origin) Act(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	var all []source.Result
	for _, a := range acts {
		r, err := o.act(ctx, a)
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (o *Origin) act(ctx context.Context, a source.Act) (source.Result, error) {
	values := map[string]any{"key": a.Key, "witness": a.Witness, "unix": inline(fmt.Sprint(time.Now().Unix()))}
	statements := o.preset.Discard
	if a.Kind == source.Replay {
		statements = o.preset.Replay[a.Mode]
		clean, err := o.codec.Clean(a.Raw, a.Mode, time.Now())
		if err != nil {
			return source.Result{ID: a.ID, State: source.Refused, Why: err.Error()}, nil
		}
		values["clean"] = o.engine.payload(clean)
	}
	if len(statements) == 0 {
		return source.Result{ID: a.ID, State: source.Refused, Why: fmt.Sprintf("%s has no %s %s", o.preset.Title, a.Kind, a.Mode)}, nil
	}
	done, committing, err := o.transact(ctx, statements, values)
	switch {
	case err == nil && done:
		return source.Result{ID: a.ID, State: source.Done}, nil
	case committing: // the answer was lost on the way
		return source.Result{}, err
	case err != nil:
		return o.failed(a, err)
	}
	return o.why(ctx, a)
}

// transact runs statements, of which the last one must change one row. committing says
// that the commit failed: nobody knows whether it took place.
func (o *Origin) transact(ctx context.Context, statements []string, values map[string]any) (done, committing bool, err error) {
	t, err := o.db.BeginTx(ctx, nil)
	if err != nil {
		return false, false, err
	}
	changed := int64(0)
	for _, statement := range statements {
		query, args := o.bind(statement, values)
		result, err := t.ExecContext(ctx, query, args...)
		if err == nil {
			changed, err = result.RowsAffected()
		}
		if err != nil {
			return false, false, errors.Join(err, t.Rollback())
		}
	}
	if changed != 1 {
		return false, false, t.Rollback()
	}
	if err := t.Commit(); err != nil {
		return false, true, err
	}
	return true, false, nil
}

// failed is how an act ended that the database refused. Anything but a refusal is an
// error of the connection.
func (o *Origin) failed(a source.Act, err error) (source.Result, error) {
	code := ""
	if e := new(pgconn.PgError); errors.As(err, &e) {
		code = e.Code
	}
	if e := new(mysql.MySQLError); errors.As(err, &e) {
		code = fmt.Sprint(e.Number)
	}
	if state, ok := o.preset.Errors[code]; ok {
		return source.Result{ID: a.ID, State: state, Why: err.Error()}, nil
	}
	if o.engine.denies(code, err) {
		return source.Result{ID: a.ID, State: source.Refused, Why: err.Error()}, nil
	}
	return source.Result{}, err
}

// why says why an act found no row.
func (o *Origin) why(ctx context.Context, a source.Act) (source.Result, error) {
	r, err := o.find(ctx, a)
	if r.State == source.Asked {
		r.State, r.Why = source.Refused, o.preset.Refused
		if r.Why == "" {
			r.Why = "the record lies there unchanged, and yet the statement found no row"
		}
	}
	return r, err
}

// Find says where the records of acts are.
func (o *Origin) Find(ctx context.Context, acts []source.Act) ([]source.Result, error) {
	var all []source.Result
	for _, a := range acts {
		r, err := o.find(ctx, a)
		if err != nil {
			return all, err
		}
		all = append(all, r)
	}
	return all, nil
}

func (o *Origin) find(ctx context.Context, a source.Act) (source.Result, error) {
	r := source.Result{ID: a.ID, State: source.Gone}
	values := map[string]any{"key": a.Key}
	err := o.reading(ctx, func(t *sql.Tx) error {
		query, args := o.bind(o.same, values)
		var witness any
		err := t.QueryRowContext(ctx, query, args...).Scan(&witness)
		switch {
		case err == nil && textOf(witness) == a.Witness:
			r.State = source.Asked
		case err == nil:
			r.State, r.Why = source.Changed, "it has died again since"
		case errors.Is(err, sql.ErrNoRows) && o.preset.Alive != "":
			query, args := o.bind(o.preset.Alive, values)
			n := 0
			if err := t.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
				return err
			}
			if n > 0 {
				r.State = source.Done
			}
		case !errors.Is(err, sql.ErrNoRows):
			return err
		}
		return nil
	})
	return r, err
}

// inline is a number of our own that stands in the statement itself.
type inline string

var parameter = regexp.MustCompile(`'[^']*'|::|\{[a-z_]+\}|:[a-z_]+`)

// bind puts the names of tables into a statement, and gives it the placeholders of the
// database with their values.
func (o *Origin) bind(statement string, values map[string]any) (query string, args []any) {
	numbers := map[string]int{}
	query = parameter.ReplaceAllStringFunc(statement, func(token string) string {
		switch {
		case token[0] == '{':
			return o.engine.table(o.settings.Names[token[1:len(token)-1]])
		case token[0] != ':' || token == "::":
			return token
		}
		name := token[1:]
		value, ok := values[name]
		if !ok {
			value = o.settings.Values[name]
		}
		if text, ok := value.(inline); ok {
			return string(text)
		}
		if n := numbers[name]; n > 0 && o.engine.numbered {
			return fmt.Sprintf("$%d", n)
		}
		args = append(args, value)
		numbers[name] = len(args)
		if o.engine.numbered {
			return fmt.Sprintf("$%d", len(args))
		}
		return "?"
	})
	return query, args
}

// engine is what differs between databases.
type engine struct {
	name, driver, dsn string
	quotes            string // around a name
	numbered          bool   // placeholders have numbers
	readOnly          bool   // there are transactions that only read
}

// engineOf reads a URL. Errors never have its password.
func engineOf(address string) (engine, error) {
	u, err := url.Parse(address)
	if err != nil {
		return engine{}, errors.New("the URL cannot be read")
	}
	switch u.Scheme {
	case "postgres", "postgresql":
		return engine{"postgres", "pgx", address, `"`, true, true}, nil
	case "mysql", "mariadb":
		c := mysql.NewConfig()
		c.User, c.Net, c.Addr, c.DBName = u.User.Username(), "tcp", u.Host, strings.TrimPrefix(u.Path, "/")
		c.Passwd, _ = u.User.Password()
		if u.Port() == "" && u.Host != "" {
			c.Addr += ":3306"
		}
		if socket := u.Query().Get("socket"); socket != "" {
			c.Net, c.Addr = "unix", socket
		}
		c.ClientFoundRows, c.Timeout = true, 10*time.Second
		return engine{"mysql", "mysql", c.FormatDSN(), "`", false, true}, nil
	case "sqlite":
		query := url.Values{"_pragma": {"busy_timeout(5000)"}, "_txlock": {"immediate"}, "mode": {"rw"}}
		return engine{"sqlite", "sqlite", "file:" + u.Path + "?" + query.Encode(), `"`, false, false}, nil
	}
	return engine{}, fmt.Errorf("a URL of %q names no database: use postgres, mysql or sqlite", u.Scheme)
}

// quote makes a name of any text.
func (e engine) quote(name string) string {
	return e.quotes + strings.ReplaceAll(name, e.quotes, e.quotes+e.quotes) + e.quotes
}

// table is the name of a table, perhaps with its schema.
func (e engine) table(name string) string {
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = e.quote(parts[i])
	}
	return strings.Join(parts, ".")
}

// cast gives the place in a list the type of its column, which PostgreSQL wants.
func (e engine) cast(column, value string) string {
	switch {
	case e.name != "postgres":
		return value
	case strings.HasSuffix(column, "_at"):
		return "CAST(" + value + " AS timestamptz)"
	}
	return "CAST(" + value + " AS bigint)"
}

// payload is the bytes of a job as the database takes them.
func (e engine) payload(clean []byte) any { return string(clean) }

// denies reports whether an error says that the rights do not allow an act.
func (e engine) denies(code string, err error) bool {
	return code == "42501" || code == "1142" || code == "1143" || e.name == "sqlite" && strings.Contains(err.Error(), "readonly")
}
