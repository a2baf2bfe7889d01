package postgres

import (
	"context"
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

// kindOf is the kind of an error of the database, nil for any other. The codes are those of
// appendix A of PostgreSQL's manual.
func kindOf(err error) error {
	code := codeOf(err)
	switch {
	case errors.Is(err, fault.ErrBroken) || errors.Is(err, errMissed) || code == codeMissed || code == codeTaken:
		return fault.ErrBroken
	case code == "53100":
		return fault.ErrStorageFull
	case code == "53200" || code == "53300":
		return fault.ErrStarved
	case code == "25006":
		return fault.ErrReadOnly
	case code == "XX001" || code == "XX002":
		return fault.ErrCorrupt
	case code == "40001" || code == "40P01" || code == "55P03":
		return fault.ErrBusy
	case isServerGone(code) || code == "" && isBrokenOff(err):
		return fault.ErrUnreachable
	}

	return nil
}

// isServerGone reports whether a code says that the server stops, starts, or ends the connection.
func isServerGone(code string) bool {
	return strings.HasPrefix(code, "57P") || strings.HasPrefix(code, "08")
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

// What the functions expect and check_lease of the schema raise.
const (
	codeMissed = "RD001"
	codeTaken  = "RD002"
)

// Fault gives an error of the database its kind and its words.
func (e *engine) Fault(err error) error {
	kind := kindOf(err)
	if kind == nil || errors.As(err, new(*health.Fault)) {
		return err
	}

	return e.faultOf(kind, err)
}

// faultOf is a fault of the database, in words for people.
func (e *engine) faultOf(kind, err error) *health.Fault {
	return &health.Fault{Kind: kind, Words: e.advice(kind, err), Err: err, Where: slog.String("database", e.name)}
}

// advice says what happened to the database, and what to do.
func (e *engine) advice(kind, err error) string {
	switch kind {
	case fault.ErrUnsafe:
		return err.Error()
	case fault.ErrBusy:
		return fmt.Sprintf("the database %s is busy; try again", e.name)
	case fault.ErrUnreachable:
		return fmt.Sprintf("the server of the database %s does not answer; work continues as soon as it does", e.name)
	case fault.ErrStarved:
		return fmt.Sprintf("the server of the database %s has no connection or memory left; raise its limits, "+
			"and writing resumes automatically", e.name)
	case fault.ErrStorageFull:
		return fmt.Sprintf("the disk of the database %s is full; make room, and writing resumes automatically", e.name)
	case fault.ErrReadOnly:
		return fmt.Sprintf("the database %s is read-only; make it writable, then restart the program", e.name)
	case fault.ErrCorrupt:
		return fmt.Sprintf("the database %s is damaged; restore a backup", e.name)
	}

	return fmt.Sprintf("the database %s is not as this program left it; check what else writes to it, "+
		"then restart the program", e.name)
}

// Again reports whether another transaction was in the way of this one, or the connection was
// lost before the commit. A commit whose answer was lost is settled by then (see lost.go).
func (e *engine) Again(err error) bool {
	found, ok := errors.AsType[*health.Fault](err)
	return ok && (found.Kind == fault.ErrBusy || found.Kind == fault.ErrUnreachable)
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
