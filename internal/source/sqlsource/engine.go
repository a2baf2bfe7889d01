package sqlsource

import (
	"database/sql/driver"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgconn"
	"modernc.org/sqlite"

	"redrive/internal/source"
	"redrive/internal/source/bounded"
)

// engine is what differs between databases.
type engine struct {
	name     string
	protocol bounded.Protocol
	connects func(*bounded.Line) (driver.Connector, error)

	file     string // of SQLite
	quotes   string // around a name
	numbered bool   // placeholders have numbers
	bounded  string // before a question, so that the database ends it after a while
	tables   string // lists tables
}

// engineOf reads a URL. Errors never have its password.
func engineOf(address string) (engine, error) {
	u, err := url.Parse(address)
	if err != nil {
		return engine{}, errors.New("the URL cannot be read")
	}

	switch u.Scheme {
	case "postgres", "postgresql":
		return engine{name: "postgres", protocol: bounded.Postgres, connects: postgres(address), quotes: `"`, numbered: true,
			tables: `SELECT table_schema || '.' || table_name FROM information_schema.tables
				WHERE table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1`}, nil
	case "mysql", "mariadb":
		protocol := bounded.MySQL
		if secure := u.Query().Get("tls"); secure != "" && secure != "false" {
			protocol = bounded.Plain // the driver encrypts, so that only bytes can be counted
		}

		return engine{name: "mysql", protocol: protocol, connects: mariadb(u), quotes: "`",
			bounded: "/*M! SET STATEMENT max_statement_time = 20 FOR */ ", // MySQL takes it for a comment
			tables:  "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() ORDER BY 1"}, nil
	case "sqlite":
		if u.Host != "" {
			return engine{}, fmt.Errorf("%s%s: no such file: write the path from the root, with three slashes, as in sqlite:///srv/%[1]s%[2]s",
				u.Host, u.Path)
		}

		query := url.Values{"_pragma": {"busy_timeout(5000)", "foreign_keys(1)"}, "_txlock": {"immediate"}, "mode": {"rw"}}
		if u.Query().Get("mode") == "ro" {
			query.Set("mode", "ro")
		}

		name := url.URL{Scheme: "file", Opaque: (&url.URL{Path: u.Path}).EscapedPath(), RawQuery: query.Encode()}

		return engine{name: "sqlite", protocol: bounded.Plain, connects: file(name.String()), file: u.Path, quotes: `"`,
			tables: "SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY 1"}, nil
	}

	return engine{}, fmt.Errorf("a URL of %q names no database: use postgres, mysql or sqlite", u.Scheme)
}

// quote makes a name of any text.
func (e engine) quote(name string) string {
	return e.quotes + strings.ReplaceAll(name, e.quotes, e.quotes+e.quotes) + e.quotes
}

// length is how many bytes an expression has as a text.
func (e engine) length(expression string) string {
	if e.name == "postgres" {
		expression = "(" + expression + ")::text"
	}
	return "octet_length(" + expression + ")"
}

// mark is the placeholder of the value with a number, from 1.
func (e engine) mark(n int) string {
	if e.numbered {
		return fmt.Sprintf("$%d", n)
	}
	return "?"
}

// table is the name of a table, perhaps with its schema.
func (e engine) table(name string) string {
	parts := strings.Split(name, ".")
	for i := range parts {
		parts[i] = e.quote(parts[i])
	}

	return strings.Join(parts, ".")
}

// kind is what an error of a database means.
type kind int

const (
	lost    kind = iota // the outcome is unknown: an error of the connection, or one that can be another next time
	refused             // the database has read the statement and does not carry it out
	denied              // neither for this user
)

// denials are the errors of the databases that say that this user lacks a right, or that
// no user may write.
var denials = []string{
	"42501", "25006", // PostgreSQL: no right; read only
	"1044", "1142", "1143", "1227", "1290", "1370", "1792", "1836", // MySQL: no right; read only
	"SQLite 8", // the file cannot be written
}

// Errors that can be others when the statement is sent once more: locks, deadlocks,
// restarts, and what the machine lacks.
var passing = []string{"1040", "1053", "1205", "1213", "1317", "3024", "1969", "55P03", "SQLite 5", "SQLite 6", "SQLite 10", "SQLite 13"}

// errReadOnly is what a server without writes would say.
var errReadOnly = errors.New("the server takes no writes, because it is a replica or its transactions are read only")

// errorOf reads an error: its code, what it means, and what the database says.
func errorOf(err error) (code string, k kind, says string) {
	if e := new(pgconn.PgError); errors.As(err, &e) {
		code, says = e.Code, e.Message
	} else if e := new(mysql.MySQLError); errors.As(err, &e) {
		code, says = fmt.Sprint(e.Number), e.Message
	} else if e := new(sqlite.Error); errors.As(err, &e) {
		code, says = fmt.Sprint("SQLite ", e.Code()&0xff), e.Error()
	}

	switch {
	case errors.Is(err, errReadOnly):
		return "", denied, errReadOnly.Error()
	case slices.Contains(denials, code):
		return code, denied, says
	case code == "" || slices.Contains(passing, code):
		return code, lost, says
	case len(code) == 5 && slices.Contains([]string{"08", "40", "53", "57", "58"}, code[:2]): // classes of PostgreSQL
		return code, lost, says
	}

	return code, refused, says
}

// answer is how an act ended that the database answered with an error; ok is false when
// the error is no answer.
func answer(err error, known map[string]source.State) (state source.State, why string, ok bool) {
	code, k, says := errorOf(err)
	if state, ok := known[code]; ok {
		return state, "The database says: " + says + ".", true
	}

	switch k {
	case denied:
		return source.Refused, "The database user does not have the rights for this: " + says + ".", true
	case refused:
		return source.Refused, "The database did not accept this: " + says + ".", true
	}

	return "", "", false
}
