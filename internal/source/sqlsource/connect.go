package sqlsource

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"net"
	"net/url"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgproto3"
	"github.com/jackc/pgx/v5/stdlib"
	"modernc.org/sqlite"

	"redrive/internal/source/bounded"
)

// dialTimeout is how long a connection may take to be made.
const dialTimeout = 10 * time.Second

// postgres connects with the PostgreSQL that a URL names. The line reads above the
// encryption. Statements have no names on the server: behind a pooler that gives each
// transaction another session, these would mean nothing.
func postgres(address string) func(*bounded.Line) (driver.Connector, error) {
	return func(line *bounded.Line) (driver.Connector, error) {
		c, err := pgx.ParseConfig(address)
		if err != nil {
			return nil, err
		}

		if c.DefaultQueryExecMode == pgx.QueryExecModeCacheStatement {
			c.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
		}

		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			return line.Watch(ctx, &net.Dialer{Timeout: dialTimeout, KeepAlive: 5 * time.Minute}, network, address)
		}
		c.BuildFrontend = func(r io.Reader, w io.Writer) *pgproto3.Frontend {
			return pgproto3.NewFrontend(line.Reader(r), w)
		}

		return stdlib.GetConnector(*c), nil
	}
}

// mariadb connects with the MySQL or MariaDB that a URL names.
func mariadb(u *url.URL) func(*bounded.Line) (driver.Connector, error) {
	return func(line *bounded.Line) (driver.Connector, error) {
		c := mysql.NewConfig()

		c.User, c.Net = u.User.Username(), "tcp"

		c.Addr, c.DBName = u.Host, strings.TrimPrefix(u.Path, "/")
		c.Passwd, _ = u.User.Password()
		if u.Port() == "" && u.Host != "" {
			c.Addr += ":3306"
		}

		if socket := u.Query().Get("socket"); socket != "" {
			c.Net, c.Addr = "unix", socket
		}

		c.TLSConfig = u.Query().Get("tls")

		// An UPDATE counts the rows that it finds, also those that it leaves as they were.
		c.ClientFoundRows, c.Timeout = true, dialTimeout
		c.Logger = quiet{}
		c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
			return line.Dial(ctx, &net.Dialer{KeepAlive: 5 * time.Minute}, network, address, nil)
		}

		return mysql.NewConnector(c)
	}
}

// quiet is a log of what callers are told anyway.
type quiet struct{}

// Print writes nothing.
func (quiet) Print(...any) {}

// file opens a SQLite file.
func file(name string) func(*bounded.Line) (driver.Connector, error) {
	return func(*bounded.Line) (driver.Connector, error) { return opener(name), nil }
}

// opener makes connections to a SQLite file.
type opener string

// Connect opens the file.
func (o opener) Connect(context.Context) (driver.Conn, error) {
	return (&sqlite.Driver{}).Open(string(o))
}

// Driver is that of SQLite.
func (o opener) Driver() driver.Driver { return &sqlite.Driver{} }

// careful makes an error of a panic in a driver that connects, which it may do in a
// goroutine of the pool.
type careful struct{ driver.Connector }

// Connect makes a connection.
func (c careful) Connect(ctx context.Context) (conn driver.Conn, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the driver does not understand the server: %v", p)
		}
	}()

	return c.Connector.Connect(ctx)
}
