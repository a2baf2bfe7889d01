package postgres

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"redrive/internal/fault"
	"redrive/internal/store/health"
)

// codeOf is PostgreSQL's code of an error, empty for any other error.
func codeOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// kindOf is the kind of an error of the database, nil for any other.
func kindOf(err error) error {
	code := codeOf(err)

	kind, known := kinds[code]
	if !known {
		kind = kindsOfClasses[code[:min(2, len(code))]]
	}

	found, obstructed := errors.AsType[*obstacle](err)

	switch {
	case errors.Is(err, fault.ErrBroken) || errors.Is(err, errMissed):
		return fault.ErrBroken
	case code == "" && obstructed:
		return found.kind
	case code == "" && isBrokenOff(err):
		return fault.ErrUnreachable
	}

	return kind
}

// kinds are those of the server's codes, as appendix A of PostgreSQL's manual lists them.
var kinds = map[string]error{
	codeMissed: fault.ErrBroken,
	codeTaken:  fault.ErrTakenOver,
	"XX001":    fault.ErrCorrupt, // data_corrupted
	"XX002":    fault.ErrCorrupt, // index_corrupted

	"53100":  fault.ErrStorageFull, // disk_full
	readOnly: fault.ErrReadOnly,

	"40001": fault.ErrBusy, // serialization_failure
	"40P01": fault.ErrBusy, // deadlock_detected
	"55P03": fault.ErrBusy, // lock_not_available
	"25P03": fault.ErrBusy, // idle_in_transaction_session_timeout: this process was slow
	"25P04": fault.ErrBusy, // transaction_timeout
	"57014": fault.ErrBusy, // query_canceled, because it took too long
	"42P05": fault.ErrBusy, // duplicate_prepared_statement: see isUnprepared
	"26000": fault.ErrBusy, // invalid_sql_statement_name

	"3D000": fault.ErrRefused,     // invalid_catalog_name: there is no such database
	"58030": fault.ErrUnreachable, // io_error: the server cannot use its own disk
}

// kindsOfClasses are those of codes that begin alike.
var kindsOfClasses = map[string]error{
	"08": fault.ErrUnreachable, // connection exception
	"28": fault.ErrRefused,     // invalid authorization
	"53": fault.ErrStarved,     // insufficient resources
	"57": fault.ErrUnreachable, // operator intervention: the server stops, or starts
}

// isBrokenOff reports whether an error is one of the network, and not of a caller that left or
// whose time was up.
func isBrokenOff(err error) bool {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return false
	}

	return errors.As(err, new(*pgconn.ConnectError)) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) ||
		errors.As(err, new(net.Error)) || errors.Is(err, net.ErrClosed) || pgconn.SafeToRetry(err)
}

// readOnly is the code of the error about a write on a server, or by a role, that can only read.
const readOnly = "25006"

// asReadOnly gives the error about a transaction that cannot begin to write the code of one about a
// write. A replica says only that it does not support such a beginning.
func asReadOnly(err error) error {
	const unsupported = "0A000"

	said, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || said.Code != unsupported {
		return err
	}

	known := *said
	known.Code = readOnly

	return &known
}

// What the functions expect and check_lease of the schema raise.
const (
	codeMissed = "RD001"
	codeTaken  = "RD002"
)

// Fault gives an error of the database its kind and its words.
func (e *engine) Fault(err error) error {
	return faultOf(e.name, err)
}

// faultOf gives an error of a database its kind and its words.
func faultOf(database string, err error) error {
	kind := kindOf(err)
	if kind == nil || errors.As(err, new(*health.Fault)) {
		return err
	}

	return newFault(database, kind, err)
}

// newFault is a fault of a database, in words for people.
func newFault(database string, kind, err error) *health.Fault {
	return &health.Fault{Kind: kind, Words: advice(database, kind, err), Err: err, Where: slog.String("database", database)}
}

// advice says what happened to a database, and what to do.
func advice(database string, kind, err error) string {
	found, obstructed := errors.AsType[*obstacle](err)
	if obstructed && kind == found.kind {
		return fmt.Sprintf(found.words, database)
	}

	switch kind {
	case fault.ErrUnsafe:
		return err.Error()
	case fault.ErrBusy:
		return fmt.Sprintf("the database %s is busy; try again", database)
	case fault.ErrRefused:
		return fmt.Sprintf("the server of the database %s refuses this program; correct the address of the database, "+
			"or what the server allows", database)
	case fault.ErrUnreachable:
		if codeOf(err) != "" {
			return fmt.Sprintf("the server of the database %s refuses to work; work continues as soon as it no longer does", database)
		}

		if errors.Is(err, errNotPrimary) {
			return fmt.Sprintf("no host of the database %s that answers takes writes; work continues as soon as one does", database)
		}

		return fmt.Sprintf("the server of the database %s does not answer; work continues as soon as it does", database)
	case fault.ErrStarved:
		return fmt.Sprintf("the server of the database %s has no connection or memory left; raise its limits, "+
			"and writing resumes automatically", database)
	case fault.ErrStorageFull:
		return fmt.Sprintf("the disk of the database %s is full; make room, and writing resumes automatically", database)
	case fault.ErrReadOnly:
		return fmt.Sprintf("the database %s is read-only, as on a replica; let it be written, and writing resumes automatically", database)
	case fault.ErrCorrupt:
		return fmt.Sprintf("the database %s is damaged; restore a backup", database)
	}

	return fmt.Sprintf("the database %s is not as this program left it; check what else writes to it, "+
		"then restart the program", database)
}

// adviceOnName says of the server of the database %s that its name cannot be looked up, and what to do. It
// does not tell the name: people read it who have not logged in.
const adviceOnName = "the name of the host of the database %s is not known; correct the address of the database, " +
	"or wait: work continues as soon as the name is known"

// adviceOnTLS says of the server of the database %s what is wrong with its certificate, or that it has none,
// and what to do. It is empty for any other error.
func adviceOnTLS(err error) string {
	const noTLS = "server refused TLS connection" // an error of the driver that has no type

	invalid, isInvalid := errors.AsType[x509.CertificateInvalidError](err)

	switch {
	case strings.Contains(err.Error(), noTLS):
		return "the server of the database %s offers no TLS, which sslmode in its address demands; " +
			"correct the address of the database, or turn ssl on at the server"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "the certificate of the server of the database %s is signed by an authority that this machine does not trust; " +
			"name a file with the certificate of the authority as sslrootcert in the address of the database"
	case errors.As(err, new(x509.HostnameError)):
		return "the certificate of the server of the database %s is for another name; " +
			"name the host in the address of the database as the certificate does, or renew the certificate"
	case isInvalid && invalid.Reason == x509.Expired:
		return "the certificate of the server of the database %s has expired, or the clock of this machine is wrong; " +
			"renew the certificate, or set the clock"
	case isInvalid || errors.As(err, new(*tls.CertificateVerificationError)):
		return "the certificate of the server of the database %s is not accepted; replace the certificate, " +
			"or correct sslmode and sslrootcert in the address of the database"
	}

	return ""
}

// Again reports whether another transaction was in the way of this one, or the connection was
// lost before the commit. A commit whose answer was lost is settled by then (see lost.go).
func (e *engine) Again(err error) bool {
	found, ok := errors.AsType[*health.Fault](err)
	if !ok || codeOf(err) == queryCancelled { // what took too long does so again
		return false
	}

	return found.Kind == fault.ErrBusy || found.Kind == fault.ErrStarved || errors.Is(found.Kind, fault.ErrUnreachable)
}

// Taken names the unique value because of which a row was refused.
func (e *engine) Taken(err error) string {
	refused, ok := errors.AsType[*pgconn.PgError](err)
	if !ok || refused.Code != "23505" {
		return ""
	}

	return taken[refused.ConstraintName]
}

// taken are the unique values by the names of their constraints.
var taken = map[string]string{
	"jobs_id_key":                 "jobs.id",
	"policies_policy_origins_key": "policies.policy, policies.origins",
	"groups_fingerprint_key":      "groups.fingerprint",
	"mirrored_source_key_key":     "mirrored.source, mirrored.key",
	"job_keys_key":                "job_keys.key, job_keys.caller",
	"operations_key":              "operations.key, operations.key_caller",
}
