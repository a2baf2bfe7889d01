package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"
)

// endpoint is what the connections to a database have in common.
type endpoint struct {
	config *pgconn.Config

	// parses tells that statements have no names, and are parsed each time they run: a pooler in
	// between gives each transaction another session.
	parses atomic.Bool

	// generation counts how often all connections were given up: those of an older generation are
	// not used again.
	generation atomic.Int64
}

// parse reads the address of a database, and whether statements are to be parsed each time they
// run. No error has its password.
func parse(dsn string) (config *pgconn.Config, parses bool, err error) {
	// The scheme of an address is the same in capitals.
	scheme, rest, found := strings.Cut(dsn, "://")
	if found {
		dsn = strings.ToLower(scheme) + "://" + rest
	}

	config, err = pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, false, fmt.Errorf("read the address of the database: %w", err)
	}

	// The sessions of this program can be told from others in the lists of the server.
	if config.RuntimeParams["application_name"] == "" {
		config.RuntimeParams["application_name"] = "redrive"
	}

	config.ConnectTimeout = cmp.Or(config.ConnectTimeout, connectWithin)
	config.DialFunc = dial

	// Of several hosts, one is the primary.
	elsewhere := func(f *pgconn.FallbackConfig) bool { return f.Host != config.Host || f.Port != config.Port }
	if config.ValidateConnect == nil && slices.ContainsFunc(config.Fallbacks, elsewhere) {
		config.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}

	parses, err = takeMode(config)

	return config, parses, err
}

// takeMode takes the parameter of an address that says how statements run, which the server does
// not know. Other programs with the same driver know it by this name, too.
func takeMode(config *pgconn.Config) (parses bool, err error) {
	const parameter = "default_query_exec_mode"

	mode := config.RuntimeParams[parameter]
	delete(config.RuntimeParams, parameter)

	switch mode {
	case "", "cache_statement":
		return false, nil
	case "exec":
		return true, nil
	}

	return false, fmt.Errorf("read the address of the database: %s=%s is not supported; "+
		"use exec behind a pooler whose transactions have no sessions of their own, and leave it out otherwise", parameter, mode)
}

// newEndpoint is the endpoint of an address that was parsed.
func newEndpoint(config *pgconn.Config, parses bool) *endpoint {
	e := &endpoint{config: config}
	e.parses.Store(parses)

	return e
}

// connect opens a connection.
func (e *endpoint) connect(ctx context.Context) (*pgconn.PgConn, error) {
	server, err := connect(ctx, e.config)
	return server, silentOf(ctx, err)
}

// connect opens a connection, in whose session statements mean what they mean elsewhere.
func connect(ctx context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	server, err := pgconn.ConnectConfig(ctx, config)
	if err != nil {
		return nil, err
	}

	err = prepareSession(ctx, server)
	if err != nil {
		return nil, errors.Join(err, server.Close(ctx))
	}

	return server, nil
}

// prepareSession undoes settings of the role or of the database with which statements would
// mean something else.
func prepareSession(ctx context.Context, server *pgconn.PgConn) error {
	var wrong []string
	for setting, want := range map[string]string{"client_encoding": "UTF8", "standard_conforming_strings": "on"} {
		if server.ParameterStatus(setting) != want {
			wrong = append(wrong, fmt.Sprintf("SET %s = '%s'", setting, want))
		}
	}

	if len(wrong) == 0 {
		return nil
	}

	return script(ctx, server, strings.Join(wrong, "; "))
}

// giveUp lets no connection be used again: all that are open may be to a server that is no
// longer the one that takes writes.
func (e *endpoint) giveUp() { e.generation.Add(1) }

// isUnprepared reports whether a statement failed because its name means another one, or none,
// to the session: behind a pooler, that is a session of another connection.
func isUnprepared(err error) bool {
	const duplicate, unknown = "42P05", "26000"

	code := codeOf(err)

	return code == duplicate || code == unknown
}
