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
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"redrive/internal/clip"
	"redrive/internal/source"
	"redrive/internal/source/bounded"
	"redrive/internal/source/codec"
	"redrive/internal/source/preset"
)

// Origin is an attached database.
type Origin struct {
	db       *sql.DB
	line     *bounded.Line // of its connections
	engine   engine
	preset   *preset.Preset
	codec    codec.Codec
	settings preset.Settings
	zone     *time.Location
	columns  []string // of the list, by the names of fields
	list     string   // the list from its beginning
	more     string   // the list from :a and :b on
	same     string   // the witness of :key
	clean    bool     // an act needs the raw bytes
	raw      string   // the raw bytes of :key, where a replay has to look at them; else empty
	lies     string   // the table of the list
	work     Work     // the queue, where it is in another store; else nil
	step     int      // rows that the next page asks for

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
		if o.zone, err = time.LoadLocation(s.Zone); err != nil {
			return nil, fmt.Errorf("zone %q: %w", s.Zone, err)
		}
	}

	var ok bool
	if o.codec, ok = codec.Get(p.Codec); !ok { // unreachable: a test reads all presets
		return nil, fmt.Errorf("the preset %s names a codec that there is not: %s", p.Name, p.Codec)
	}

	if o.engine, err = engineOf(address); err != nil {
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

// compose makes the statements of the list.
func (o *Origin) compose() {
	p := o.preset

	var fields []string
	var sizes, large []string // how large a field is that is too large, and its name
	for _, name := range fieldNames {
		text, ok := p.Fields[name]
		if !ok {
			continue
		}

		text = o.plain(name, text)
		if most := longest[name]; most > 0 {
			length := o.engine.length(text)
			sizes = append(sizes, fmt.Sprintf("WHEN %s > %d THEN %s", length, most, length))
			large = append(large, fmt.Sprintf("WHEN %s > %d THEN '%s'", length, most, name))
			text = fmt.Sprintf("CASE WHEN %s > %d THEN NULL ELSE %s END", length, most, text)
		}

		o.columns = append(o.columns, name)
		fields = append(fields, text+" AS "+o.engine.quote("f_"+name))
	}

	if len(sizes) > 0 {
		o.columns = append(o.columns, "size", "large")
		fields = append(fields, "CASE "+strings.Join(sizes, " ")+" ELSE 0 END AS "+o.engine.quote("f_size"),
			"CASE "+strings.Join(large, " ")+" ELSE '' END AS "+o.engine.quote("f_large"))
	}

	order := make([]string, len(p.Order))
	for i, field := range p.Order {
		order[i] = field + " DESC"
	}

	tail := " ORDER BY " + strings.Join(order, ", ") + " LIMIT :limit"

	where := p.Where
	if p.Unique != nil && p.Unique.By == p.Fields["key"] { // the check tells of rows without a key
		where += " AND " + p.Unique.By + " IS NOT NULL"
	}

	list := func(after string) string {
		head := "SELECT " + strings.Join(fields, ", ") + " FROM " + p.From + " WHERE " + where
		if len(p.Each) == 0 {
			return head + after + tail
		}

		lists := make([]string, len(p.Each))
		for i, condition := range p.Each {
			lists[i] = "(" + head + " AND " + condition + after + tail + ")"
		}

		return "SELECT * FROM (" + strings.Join(lists, " UNION ALL ") + ") AS lists ORDER BY " +
			o.engine.quote("f_a") + " DESC, " + o.engine.quote("f_b") + " DESC LIMIT :limit"
	}
	after := " AND " + p.Order[0] + " < :a"
	if len(p.Order) == 2 { // the first condition alone lets an index on both be used
		after = " AND " + p.Order[0] + " <= :a AND (" + strings.Join(p.Order, ", ") + ") < (:a, :b)"
	}

	o.list, o.more = list(""), list(after)
	o.same = "SELECT " + o.plain("witness", p.Fields["witness"]) + " FROM " + p.From + " WHERE " + p.Same
	if _, ok := codec.Fault(p.Codec); ok {
		o.raw = "SELECT " + o.plain("raw", p.Fields["raw"]) + " FROM " + p.From + " WHERE " + p.Same
	}

	preset.Expand(p.From, func(name string) string {
		o.lies = cmp.Or(o.lies, o.settings.Names[name])
		return ""
	}, func(string) string { return "" })

	o.clean = p.Work != nil
	for _, statements := range p.Replay {
		o.clean = o.clean || preset.Uses(statements, "clean") || preset.Uses(statements, "target")
	}
}

// plain is a field as the database keeps it. SQLite keeps a time as a text, of which the
// driver would make a time without its offset, and a statement could not compare that with
// the text any more. It leaves alone what is an expression.
func (o *Origin) plain(name, text string) string {
	if o.engine.name == "sqlite" && slices.Contains([]string{"witness", "failed_at", "created_at"}, name) {
		return "+(" + text + ")"
	}
	return text
}

// fieldNames are what a record can have, in the order in which it is read.
var fieldNames = []string{
	"key", "thread", "witness", "queue", "type", "raw", "error_type", "error", "trace", "history", "reason",
	"attempts", "limit", "failed_at", "created_at", "elsewhere", "a", "b",
}

// longest are the bytes that fields may have. The database leaves one out that has more,
// because the driver would have to hold all of it.
var longest = map[string]int{
	"raw": source.MaxRecord, "error": source.MaxRecord, "trace": source.MaxRecord, "history": source.MaxRecord,
	"thread": 100_000, "queue": 100_000, "type": 100_000, "error_type": 100_000, "reason": 100_000,
}

// fieldsAs are the names of fields in sentences.
var fieldsAs = map[string]string{
	"thread": "job's name", "queue": "queue's name", "type": "type", "error_type": "error's type", "reason": "reason",
	"error": "error message", "trace": "stack trace", "history": "history of failures",
}

// tooLarge is the refusal of a record with a field of so many bytes.
func tooLarge(key, field string, size int64) source.Refusal {
	if field == "raw" { // which is the record as other families know it
		return source.TooLarge(key, size)
	}

	has, limit := source.Sizes(size, int64(longest[field]))
	why := fmt.Sprintf("Its %s has %s, which is larger than the limit of %s.", fieldsAs[field], has, limit)

	return source.Refusal{Key: key, Why: why}
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

// Scan reads the records after a place, the newest first.
func (o *Origin) Scan(ctx context.Context, after string, limit int) (page source.Page, err error) {
	defer o.line.Begin(ctx, bounded.MaxRequest)(&err)

	limit = min(limit, o.step)
	query, args := o.after(after, limit)
	rowOf := map[identity]row{}
	last, n, size := "", 0, 0

	// A page that is full before its last row ends the connection: the driver would read
	// all the others first.
	reading, enough := context.WithCancel(ctx)
	defer enough()

	full := false
	err = o.reading(reading, func(t *sql.Tx) error {
		rows, err := t.QueryContext(reading, query, args...)
		if err != nil {
			return err
		}
		defer rows.Close()

		instants, err := instantsOf(rows)
		if err != nil {
			return err
		}

		for !full && rows.Next() {
			from, err := o.row(rows, instants)
			if err != nil {
				return err
			}

			last = o.place(from)
			if size := numberOf(from.value("size")); size > 0 {
				page.Refused = append(page.Refused, tooLarge(o.keep(from.value("key")), from.text("large"), size))
			} else {
				r := o.record(from)
				if _, twice := rowOf[identityOf(&r)]; !twice { // the mirror, too, keeps the first one
					rowOf[identityOf(&r)] = from
				}

				page.Records = append(page.Records, r)
			}

			n++
			size += from.size()
			full = n == limit || size > pageBytes
		}

		if n < limit && full {
			enough()
			return nil
		}

		return rows.Err()
	})
	if full && n < limit {
		err = nil // it was ended from here
	}

	if err == nil {
		o.fit(n, size)
	}

	if o.preset.Own {
		last = o.apart(&page, last, full)
	}

	if after == "" {
		page.Refused = append(page.Refused, o.nameless...)
	}

	page.Read = func(r *source.Record) { o.complete(r, rowOf[identityOf(r)]) }
	if full {
		page.Next = last
	}

	if err == nil && full && last == after {
		err = fmt.Errorf("the list stands still at %q: what it is ordered by does not fall from row to row", clip.Text(last, 64))
	}

	return page, err
}

// fit sets how many rows the next page asks for, by how large those of this one were.
func (o *Origin) fit(rows, bytes int) {
	switch {
	case bytes > pageBytes:
		o.step = max(1, rows-1)
	case bytes < pageBytes/4:
		o.step = min(maxStep, 2*o.step)
	}
}

// after is the query of the list from a place on.
func (o *Origin) after(place string, limit int) (query string, args []any) {
	statement, values := o.list, map[string]any{"limit": inline(fmt.Sprint(limit))}
	if place != "" {
		statement = o.more

		parts := strings.SplitN(place, "\n", 2)
		values["a"] = meant(parts[0])
		if len(parts) == 2 {
			values["b"] = meant(parts[1])
		}
	}

	query, args = o.bind(statement, values)

	return o.engine.bounded + query, args
}

// identity tells the records of a page apart.
type identity struct{ key, witness string }

func identityOf(r *source.Record) identity { return identity{r.Key, r.VersionToken} }

// row has the cells of one row of the list, in the order of the columns.
type row struct {
	columns []string // as in Origin
	cells   []any
}

// row reads the row at which a list is. instants says which of its columns have an instant.
func (o *Origin) row(rows *sql.Rows, instants []bool) (row, error) {
	cells := make([]any, len(o.columns))
	places := make([]any, len(cells))
	for i := range cells {
		places[i] = &cells[i]
	}

	err := rows.Scan(places...)
	if err != nil {
		return row{}, err
	}

	for i := range cells {
		at, ok := cells[i].(time.Time)
		if ok && instants[i] {
			cells[i] = instant(at)
		}
	}

	return row{o.columns, cells}, nil
}

// value is a field of the row, nil where the preset does not have it.
func (r row) value(name string) any {
	if i := slices.Index(r.columns, name); i >= 0 {
		return r.cells[i]
	}
	return nil
}

func (r row) text(name string) string { return textOf(r.value(name)) }

// size is the number of bytes of the row's texts.
func (r row) size() (n int) {
	for _, cell := range r.cells {
		switch cell := cell.(type) {
		case string:
			n += len(cell)
		case []byte:
			n += len(cell)
		}
	}

	return n
}

// place is where the list goes on after a row.
func (o *Origin) place(r row) string {
	if slices.Contains(o.columns, "b") {
		return o.keep(r.value("a")) + "\n" + o.keep(r.value("b"))
	}
	return o.keep(r.value("a"))
}

// record is what identifies the record of a row and tells whether it has changed.
func (o *Origin) record(from row) source.Record {
	r := source.Record{
		Key: o.keep(from.value("key")), Lineage: o.keep(from.value("thread")), VersionToken: o.keep(from.value("witness")), Place: o.lies,
	}
	if o.clean { // it is part of the mark
		r.Raw = []byte(from.text("raw"))
	}

	return r
}

// complete reads the rest of a record from its row.
func (o *Origin) complete(r *source.Record, from row) {
	r.Queue, r.Type, r.Trace = from.text("queue"), from.text("type"), from.text("trace")
	r.Attempts, r.Limit = int(numberOf(from.value("attempts"))), int(numberOf(from.value("limit")))
	r.FailedAt, r.CreatedAt = o.timeOf(from.value("failed_at")), o.timeOf(from.value("created_at"))

	r.Raw = []byte(from.text("raw"))
	r.Error.Type, r.Error.Message = from.text("error_type"), from.text("error")
	if h := from.text("history"); h != "" {
		r.History = historyOf(h)
	}

	o.codec.Read(r)

	if !o.clean {
		r.Raw = nil
	}

	if numberOf(from.value("elsewhere")) != 0 {
		r.Warnings = append(r.Warnings, o.preset.Refused)
	}

	if r.Type == "" {
		r.Type = "unknown"
	}
}

// inline is SQL of our own that stands in the statement itself.
type inline string

// bind puts the names of tables into a statement, and gives it the placeholders of the
// database with their values. A list has a placeholder for each of its values.
func (o *Origin) bind(statement string, values map[string]any) (query string, args []any) {
	numbers := map[string]int{}
	name := func(name string) string { return o.engine.table(o.settings.Names[name]) }
	query = preset.Expand(o.words(statement), name, func(name string) string {
		value, ok := values[name]
		if !ok {
			value = o.settings.Values[name]
		}

		switch value := value.(type) {
		case inline:
			return string(value)
		case []any:
			marks := make([]string, len(value))
			for i, v := range value {
				args = append(args, v)
				marks[i] = o.engine.mark(len(args))
			}

			return strings.Join(marks, ", ")
		}

		if n := numbers[name]; n > 0 && o.engine.numbered {
			return o.engine.mark(n)
		}

		args = append(args, value)
		numbers[name] = len(args)

		return o.engine.mark(len(args))
	})

	return query, args
}

// words puts the words of the database into a statement.
func (o *Origin) words(statement string) string {
	words := o.preset.Words[o.engine.name]
	name := func(name string) string {
		if text, ok := words[name]; ok {
			return text
		}
		return "{" + name + "}"
	}

	return preset.Expand(statement, name, func(value string) string { return ":" + value })
}
