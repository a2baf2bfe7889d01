// Package location reads where a database is: in a file, or on a server of PostgreSQL. It is the
// one place that knows both databases.
package location

import (
	"errors"
	"net/url"
	"strings"

	"redrive/internal/store/db"
	"redrive/internal/store/moving"
	"redrive/internal/store/postgres"
	"redrive/internal/store/sqlite"
)

// Location is where a database is.
type Location struct {
	text   string // as it was written
	server bool
}

// schemes are those of the addresses of servers.
var schemes = []string{"postgres://", "postgresql://"}

// Of reads a location: the address of a server, or the path of a file.
func Of(text string) Location {
	for _, scheme := range schemes {
		if strings.HasPrefix(strings.ToLower(text), scheme) {
			return Location{text, true}
		}
	}

	return Location{text, false}
}

// inSchema is the parameter of an address that names the schema.
const inSchema = "search_path"

// IsServer reports whether the database is on a server.
func (l Location) IsServer() bool { return l.server }

// String is the location without a password, and of the parameters only the schema, which tells databases
// apart. An address that cannot be read is not shown.
func (l Location) String() string {
	if !l.server {
		return l.text
	}

	// Parameters can have a password, too. So can what follows the host when the password has
	// marks in it that are not escaped: a part of it is taken for a path, or for parameters.
	address, err := url.Parse(l.text)
	if err != nil || strings.Contains(l.text, "@") && address.User == nil {
		return "the database at an address that may have a password where none belongs"
	}

	schema := address.Query().Get(inSchema)
	address.RawQuery, address.Fragment = "", ""

	if schema != "" {
		address.RawQuery = url.Values{inSchema: {schema}}.Encode()
	}

	return address.Redacted()
}

// Database is the database there. A relaxed one does not wait for the disk at each commit.
func (l Location) Database(relaxed bool) db.Database {
	if l.server {
		return postgres.Server{DSN: l.text, Relaxed: relaxed}
	}

	return sqlite.File{Path: l.text, Relaxed: relaxed}
}

// For is the database there, for a purpose.
func (l Location) For(purpose moving.Purpose) db.Database {
	if l.server {
		return postgres.Server{DSN: l.text, For: purpose}
	}

	return sqlite.File{Path: l.text, For: purpose}
}

// ErrNoFile says that a database is on a server.
var ErrNoFile = errors.New("the database is on a server of PostgreSQL and not in a file")

// File is the database in a file, or ErrNoFile.
func (l Location) File() (sqlite.File, error) {
	if l.server {
		return sqlite.File{}, ErrNoFile
	}

	return sqlite.File{Path: l.text}, nil
}

// Server is the database on a server. ok is false for a file.
func (l Location) Server() (server postgres.Server, ok bool) {
	return postgres.Server{DSN: l.text}, l.server
}
