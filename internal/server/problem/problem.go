// Package problem is what an answer says when something is wrong with its request:
// [Of] is the one table from errors to answers, for browsers and programs alike.
//
// A handler that cannot answer returns an error. It never chooses a status itself: it
// names a [Kind], or returns what another package returned.
package problem

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/fault"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/rules"
)

// Kind is the kind of an error: what an answer's code names it, its status, and
// the headline of its page.
type Kind struct {
	Code   string
	Status int
	Title  string
}

// The kinds of errors.
var (
	Malformed     = Kind{"malformed", http.StatusBadRequest, "This request cannot be read"}
	BadParameter  = Kind{"invalid_parameter", http.StatusBadRequest, "Invalid address"} // in the address
	CrossOrigin   = Kind{"cross_origin", http.StatusForbidden, "Refused: the request came from another site"}
	UnknownCaller = Kind{"unauthorized", http.StatusUnauthorized, "Log in first"}
	UnknownLogin  = Kind{"wrong_login", http.StatusUnauthorized, "Log in first"}
	Forbidden     = Kind{"forbidden", http.StatusForbidden, "Your role does not allow this"}
	TooMany       = Kind{"too_many", http.StatusTooManyRequests, "Your address has reached a limit"}
	NotFound      = Kind{"not_found", http.StatusNotFound, "Not found"}
	removed       = Kind{"removed", http.StatusGone, "This job was removed"}
	WrongMethod   = Kind{"method_not_allowed", http.StatusMethodNotAllowed, "Method not allowed"}
	Conflict      = Kind{"conflict", http.StatusConflict, "Not possible in the current state"}
	KeyReused     = Kind{"key_reused", http.StatusConflict, "Idempotency key already used"}
	TooLarge      = Kind{"too_large", http.StatusRequestEntityTooLarge, "Request too large"}
	MediaType     = Kind{"unsupported_media_type", http.StatusUnsupportedMediaType, "Unsupported content type"}
	WrongHost     = Kind{"wrong_host", http.StatusMisdirectedRequest, "Unknown host name"}
	InvalidValue  = Kind{"invalid_value", http.StatusUnprocessableEntity, "Invalid value"} // in the body
	QueuesFull    = Kind{"too_many_queues", http.StatusUnprocessableEntity, "Too many queues"}
	Refused       = Kind{"refused_by_rule", http.StatusUnprocessableEntity, "Refused by a rule"}
	ResendRefused = Kind{"dead_letter_refused", http.StatusConflict, "The dead letter was refused again"}
	Unexpected    = Kind{"internal", http.StatusInternalServerError, "Something went wrong"}
	Busy          = Kind{"busy", http.StatusServiceUnavailable, "The database is busy"}
	Overloaded    = Kind{"overloaded", http.StatusServiceUnavailable, "Too many requests at once"}
	tooSlow       = Kind{"too_slow", http.StatusServiceUnavailable, "This took too long"}
	RulesTooSlow  = Kind{"rules_too_slow", http.StatusServiceUnavailable, "The rules took too long"} // unlike tooSlow, nothing was changed
	ReadOnly      = Kind{"read_only", http.StatusServiceUnavailable, "The database is read-only"}
	Unreachable   = Kind{"storage_unreachable", http.StatusServiceUnavailable, "The database does not answer"}
	Unsafe        = Kind{"storage_unsafe", http.StatusServiceUnavailable, "The database files are not safe to use"}
	Broken        = Kind{"storage_failed", http.StatusServiceUnavailable, "The database has failed"}
	Corrupt       = Kind{"storage_damaged", http.StatusServiceUnavailable, "The database is damaged"}
	StorageFull   = Kind{"storage_full", http.StatusInsufficientStorage, "The disk is full"}
)

// Problem is an error with all that its answer says.
type Problem struct {
	Kind    Kind
	Field   string
	Text    string
	First   *job.Conflict // what happened instead
	FirstID string        // what an idempotency key was used for first: the id of a job, or the number of an operation
}

// New is a problem of a kind.
func New(kind Kind, text string) *Problem { return &Problem{Kind: kind, Text: text} }

// In is a problem with a field.
func In(kind Kind, field, text string) *Problem {
	return &Problem{Kind: kind, Field: field, Text: text}
}

// Error names the field if there is one.
func (p *Problem) Error() string {
	if p.Field != "" {
		return p.Field + ": " + p.Text
	}
	return p.Text
}

// Of is the table from errors to answers. An error that is not in it is a
// mistake of ours: the answer says nothing about it, the log does.
func Of(err error) *Problem {
	var (
		own    *Problem
		first  *job.Conflict
		field  *invalid.Error
		ruled  *rules.Refused
		large  *http.MaxBytesError
		routed *echo.HTTPError
		no     *access.Refusal
		full   *queues.Full
		gone   *retention.Removed
	)

	// An error of the database file can bring its own advice, which goes before that of the
	// table.
	advice := func(otherwise string) string { return cmp.Or(adviceOn(err), otherwise) }
	switch {
	// What a handler chose, and what another package says with a type of its own.
	case errors.As(err, &own):
		return own
	case errors.As(err, &first):
		return &Problem{Kind: Conflict, Text: first.Problem, First: first}
	case errors.As(err, &field):
		return In(InvalidValue, field.Field, field.Problem)
	case errors.As(err, &ruled):
		return RefusedBy("", ruled)
	case errors.As(err, &full):
		return In(QueuesFull, "queue", full.Error())
	case errors.As(err, &large):
		return New(TooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
	// What the router found no handler for.
	case errors.As(err, &routed) && routed.Code == http.StatusNotFound:
		return New(NotFound, "nothing exists at this address")
	case errors.As(err, &routed) && routed.Code == http.StatusMethodNotAllowed:
		return New(WrongMethod, "this address does not accept this method")
	case errors.As(err, &no):
		return New(Conflict, no.Problem)
	case errors.Is(err, access.ErrUnknown):
		return New(NotFound, "there is no such user or token; it may have been removed")
	case errors.As(err, &gone):
		return New(removed, gone.Error())
	case errors.Is(err, job.ErrNotFound):
		return New(NotFound, "there is no such job, queue, error group or operation; it may have been removed")
	// Faults of the database. A special one comes before the one that it wraps: ErrOverloaded,
	// ErrStarved and ErrUnreachable are ErrBusy too, and ErrCorrupt is ErrBroken.
	case errors.Is(err, fault.ErrOverloaded):
		return New(Busy, "the disk cannot keep up with the writes; nothing was changed, try again")
	case errors.Is(err, fault.ErrStarved):
		return New(Busy, advice("the database lacks memory or file descriptors; try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrUnreachable):
		return New(Unreachable, advice("the database cannot be reached; try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrBusy):
		return New(Busy, advice("another process is keeping the database busy; try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrStorageFull):
		return New(StorageFull, advice("the disk is full; make room and try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrReadOnly):
		return New(ReadOnly, advice("the database file is read-only")+"; nothing was changed")
	case errors.Is(err, fault.ErrUnsafe):
		return New(Unsafe, advice("the database files are not safe to use")+"; nothing was changed")
	// After these two it is not certain that nothing was changed.
	case errors.Is(err, fault.ErrCorrupt):
		return New(Corrupt, advice("the database file is damaged; restore a backup"))
	case errors.Is(err, fault.ErrBroken):
		return New(Broken, advice("the database failed; restart the dashboard")+"; then check whether this change was made")
	case errors.Is(err, context.DeadlineExceeded):
		return New(tooSlow, "no answer in time")
	}

	return New(Unexpected, "internal error; the log has details")
}

// adviceOn is what an error of the database file says to do about it, in words for
// people; empty for any other error.
func adviceOn(err error) string {
	var file interface {
		error
		Advice() string
	}
	if errors.As(err, &file) {
		return file.Advice()
	}

	return ""
}

// RefusedBy is the answer about a job that a rule refused; path is where the job
// is in the body.
func RefusedBy(path string, r *rules.Refused) *Problem {
	return In(Refused, path, fmt.Sprintf("%s (rule %s)", r.Text, r.Rule))
}

// InAddress says that a wrong value is in the address of the request.
func InAddress(err error) error {
	if field := new(invalid.Error); errors.As(err, &field) {
		return In(BadParameter, field.Field, field.Problem)
	}
	return err
}

// Encode writes a problem, and the caller who acted first if there is one.
func (p *Problem) Encode() []byte {
	out := apitype.Problem{Error: apitype.ProblemError{
		Code:    p.Kind.Code,
		Message: p.Text,
		Field:   p.Field,
		First:   p.FirstID,
	}}
	if p.First != nil {
		out.ReplayedBy, out.ReplayedAt = p.First.ReplayedBy, apitype.At(p.First.ReplayedAt)
	}

	return apitype.Encode(out)
}
