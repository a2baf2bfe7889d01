package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
)

// endpoint is what the connections to a database have in common.
type endpoint struct {
	config *pgconn.Config
	reads  *pgconn.Config // of connections that only read, which a replica does not serve
	hosts  *hosts

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
	if config.ValidateConnect == nil && len(eachHost(config)) > 1 {
		config.ValidateConnect = takesWrites
	}

	parses, err = takeMode(config)

	return config, parses, err
}

// errNotPrimary says that a host takes no writes.
var errNotPrimary = errors.New("this host takes no writes")

// takesWrites refuses a replica. That transactions of a role only read by default says nothing of the
// server: those of this program say that they write.
func takesWrites(ctx context.Context, server *pgconn.PgConn) error {
	const query = `SELECT pg_is_in_recovery()`

	got := server.ExecParams(ctx, query, nil, nil, nil, nil).Read()
	if got.Err == nil && string(got.Rows[0][0]) != "f" {
		return errNotPrimary
	}

	return got.Err
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
func newEndpoint(config *pgconn.Config, of *hosts, parses bool) *endpoint {
	e := &endpoint{config: config, reads: config.Copy(), hosts: of}
	e.parses.Store(parses)

	e.reads.BuildContextWatcherHandler = interrupting

	// A replica would show the past, also where the address names one host only.
	if e.reads.ValidateConnect == nil {
		e.reads.ValidateConnect = takesWrites
	}

	suits := e.reads.ValidateConnect
	e.reads.ValidateConnect = func(ctx context.Context, server *pgconn.PgConn) error {
		err := suits(ctx, server)
		if err != nil || e.parses.Load() { // a session of a pooler is others' as well
			return err
		}

		return withoutCompiling(ctx, server)
	}

	return e
}

// withoutCompiling keeps a session from compiling plans (jit), which takes longer than most queries run:
// the cost of a plan is that of a whole list, of which a page is read.
func withoutCompiling(ctx context.Context, server *pgconn.PgConn) error {
	_, err := server.Exec(ctx, `SET jit = off`).ReadAll()
	return err
}

// connect opens a connection, which only reads or not.
func (e *endpoint) connect(ctx context.Context, reads bool) (*pgconn.PgConn, error) {
	config := e.config
	if reads {
		config = e.reads
	}

	server, err := e.hosts.connect(ctx, config)
	return server, silentOf(ctx, err)
}

// hosts remembers which host of an address has answered last. It is tried first: one that is silent
// takes all the time that connecting may take.
type hosts struct {
	last atomic.Pointer[host]
}

// host is one of those that an address names.
type host struct {
	name string
	port uint16
}

// eachHost gives each host of an address a configuration of its own, which can have several ways
// to connect to it, with and without TLS.
func eachHost(config *pgconn.Config) (all []*pgconn.Config) {
	ways := append([]*pgconn.FallbackConfig{{Host: config.Host, Port: config.Port, TLSConfig: config.TLSConfig}}, config.Fallbacks...)

	for _, way := range ways {
		known := slices.IndexFunc(all, func(c *pgconn.Config) bool { return hostOf(c) == host{way.Host, way.Port} })
		if known >= 0 {
			all[known].Fallbacks = append(all[known].Fallbacks, way)
			continue
		}

		only := config.Copy()
		only.Host, only.Port, only.TLSConfig = way.Host, way.Port, way.TLSConfig
		only.Fallbacks = nil
		all = append(all, only)
	}

	return all
}

// hostOf is the host of a configuration that names only one.
func hostOf(config *pgconn.Config) host { return host{config.Host, config.Port} }

// dial connects to the first host that answers and suits, beginning with the one that did so last.
func (h *hosts) dial(ctx context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	all := eachHost(config)

	last := h.last.Load()
	known := slices.IndexFunc(all, func(c *pgconn.Config) bool { return last != nil && hostOf(c) == *last })
	if known > 0 {
		all = slices.Concat(all[known:], all[:known])
	}

	var failed []error
	for _, c := range all {
		server, err := pgconn.ConnectConfig(ctx, c)
		if err == nil {
			answered := hostOf(c)
			h.last.Store(&answered)

			return server, nil
		}

		// That one host was silent does not hide what another one says.
		failed = append(failed, silentOf(ctx, obstacleOf(ctx, c, err)))

		if isRefusedByAll(err) {
			break
		}
	}

	return nil, joined(failed)
}

// isRefusedByAll reports whether a host refuses what every host would: they have the same roles and
// databases, while each says for itself from where it lets them in.
func isRefusedByAll(err error) bool {
	const wrongPassword, noDatabase = "28P01", "3D000"

	code := codeOf(err)

	return code == wrongPassword || code == noDatabase
}

// joined joins the errors of hosts. Together they are a refusal only if every host that answered
// refuses: where another one does not take writes yet, or starts, waiting for it helps. Nor does a host
// without a name say anything of the others.
func joined(failed []error) error {
	refuses := func(err error) bool { return errors.Is(kindOf(err), fault.ErrRefused) }
	waits := func(err error) bool { return !refuses(err) && (codeOf(err) != "" || errors.Is(err, errNotPrimary)) }
	named := func(err error) bool { return !isUnnamed(err) }

	oneWaits, oneIsNamed := slices.ContainsFunc(failed, waits), slices.ContainsFunc(failed, named)

	for i, err := range failed {
		if oneWaits && refuses(err) || oneIsNamed && isUnnamed(err) {
			failed[i] = errors.New(err.Error()) // its words without its kind
		}
	}

	return errors.Join(failed...)
}

// obstacle is what keeps this program from speaking to a server at all, and does not end like a silence.
type obstacle struct {
	kind  error
	words string // what happened to the server of the database %s, and what to do
	err   error
}

func (o *obstacle) Error() string { return o.err.Error() }

// isUnnamed reports whether the name of a host could not be looked up.
func isUnnamed(err error) bool {
	found, ok := errors.AsType[*obstacle](err)
	return ok && errors.As(found.err, new(*net.DNSError))
}

// obstacleOf makes what keeps this program from speaking to a host an obstacle, unless a caller has left or
// its time was up. A name can still be made, such as that of a container that has not started. What is wrong
// with TLS lasts, where the host has no way without it.
func obstacleOf(ctx context.Context, config *pgconn.Config, err error) error {
	if ctx.Err() != nil || codeOf(err) != "" {
		return err
	}

	if errors.As(err, new(*net.DNSError)) {
		return &obstacle{fault.ErrUnreachable, adviceOnName, err}
	}

	plain := func(way *pgconn.FallbackConfig) bool { return way.TLSConfig == nil }
	if config.TLSConfig == nil || slices.ContainsFunc(config.Fallbacks, plain) {
		return err
	}

	words := adviceOnTLS(err)
	if words == "" {
		return err
	}

	return &obstacle{fault.ErrRefused, words, err}
}

// connect opens a connection, in whose session statements mean what they mean elsewhere.
func (h *hosts) connect(ctx context.Context, config *pgconn.Config) (*pgconn.PgConn, error) {
	server, err := h.dial(ctx, config)
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
