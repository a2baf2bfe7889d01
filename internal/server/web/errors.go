package web

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/rules"
	"redrive/internal/server/view"
	"redrive/internal/wire"
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
	BadParameter  = Kind{"invalid_parameter", http.StatusBadRequest, "This address is not right"} // in the address
	CrossOrigin   = Kind{"cross_origin", http.StatusForbidden, "Refused: the request came from another site"}
	UnknownCaller = Kind{"unauthorized", http.StatusUnauthorized, "Log in first"}
	UnknownLogin  = Kind{"wrong_login", http.StatusUnauthorized, "Log in first"}
	Forbidden     = Kind{"forbidden", http.StatusForbidden, "Your role does not allow this"}
	TooMany       = Kind{"too_many", http.StatusTooManyRequests, "Too many tries"}
	NotFound      = Kind{"not_found", http.StatusNotFound, "Nothing is here"}
	WrongMethod   = Kind{"method_not_allowed", http.StatusMethodNotAllowed, "This cannot be done here"}
	Conflict      = Kind{"conflict", http.StatusConflict, "This cannot be done as things stand"}
	TooLarge      = Kind{"too_large", http.StatusRequestEntityTooLarge, "This is too large"}
	MediaType     = Kind{"unsupported_media_type", http.StatusUnsupportedMediaType, "This kind of content is not accepted"}
	WrongHost     = Kind{"wrong_host", http.StatusMisdirectedRequest, "Not known under this name"}
	InvalidValue  = Kind{"invalid_value", http.StatusUnprocessableEntity, "A value is not right"} // in the body
	Refused       = Kind{"refused_by_rule", http.StatusUnprocessableEntity, "Refused by a rule"}
	NotForwarded  = Kind{"dead_letter_refused", http.StatusConflict, "The dead letter was refused again"}
	Unexpected    = Kind{"internal", http.StatusInternalServerError, "Something went wrong"}
	Busy          = Kind{"busy", http.StatusServiceUnavailable, "The database is busy"}
	Overloaded    = Kind{"overloaded", http.StatusServiceUnavailable, "Too much at once"}
	TooSlow       = Kind{"too_slow", http.StatusServiceUnavailable, "This took too long"}
	ReadOnly      = Kind{"read_only", http.StatusServiceUnavailable, "The database can only be read"}
	Broken        = Kind{"storage_failed", http.StatusServiceUnavailable, "The database has failed"}
	Corrupt       = Kind{"storage_damaged", http.StatusServiceUnavailable, "The database is damaged"}
	StorageFull   = Kind{"storage_full", http.StatusInsufficientStorage, "The disk is full"}
)

// Failure is an error with all that its answer says.
type Failure struct {
	Kind  Kind
	Field string
	Text  string
	First *job.Conflict // what happened instead
}

// Fail is a failure of a kind.
func Fail(kind Kind, text string) *Failure { return &Failure{Kind: kind, Text: text} }

// FailIn is a failure that is about a field.
func FailIn(kind Kind, field, text string) *Failure {
	return &Failure{Kind: kind, Field: field, Text: text}
}

func (f *Failure) Error() string {
	if f.Field != "" {
		return f.Field + ": " + f.Text
	}
	return f.Text
}

// Describe is the table from errors to answers. What it does not know is our
// own fault: the answer then says nothing about it, the log does.
func Describe(err error) *Failure {
	var (
		own    *Failure
		first  *job.Conflict
		field  *invalid.Error
		ruled  *rules.Refused
		large  *http.MaxBytesError
		routed *echo.HTTPError
		no     *access.Refusal
	)
	advice := func(otherwise string) string { return cmp.Or(view.Advice(err), otherwise) }
	switch {
	case errors.As(err, &own):
		return own
	case errors.As(err, &first):
		return &Failure{Kind: Conflict, Text: first.Problem, First: first}
	case errors.As(err, &field):
		return FailIn(InvalidValue, field.Field, field.Problem)
	case errors.As(err, &ruled):
		return RefusedBy("", ruled)
	case errors.As(err, &large):
		return Fail(TooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
	case errors.As(err, &routed) && routed.Code == http.StatusNotFound:
		return Fail(NotFound, "there is nothing at this address")
	case errors.As(err, &routed) && routed.Code == http.StatusMethodNotAllowed:
		return Fail(WrongMethod, "this address does not accept this method")
	case errors.As(err, &no):
		return Fail(Conflict, no.Problem)
	case errors.Is(err, access.ErrUnknown):
		return Fail(NotFound, "there is no such user or token; it may have been removed")
	case errors.Is(err, job.ErrNotFound):
		return Fail(NotFound, "there is no such job, queue, error group or operation; it may have been removed")
	case errors.Is(err, job.ErrBusy):
		return Fail(Busy, "another process keeps the database busy; nothing was changed, try again")
	case errors.Is(err, job.ErrStorageFull):
		return Fail(StorageFull, advice("the disk is full; make room and try again")+"; nothing was changed")
	case errors.Is(err, job.ErrReadOnly):
		return Fail(ReadOnly, advice("the database file can only be read")+"; nothing was changed")
	case errors.Is(err, job.ErrCorrupt):
		return Fail(Corrupt, advice("the database file is damaged; restore a backup"))
	case errors.Is(err, job.ErrBroken):
		return Fail(Broken, advice("the database failed and the program must be started again")+"; look there whether this was done")
	case errors.Is(err, context.DeadlineExceeded):
		return Fail(TooSlow, "no answer in time")
	}
	return Fail(Unexpected, "it was our fault, and the log says more")
}

// RefusedBy is the answer about a job that a rule refused; path is where it stands
// in the body.
func RefusedBy(path string, r *rules.Refused) *Failure {
	return FailIn(Refused, path, fmt.Sprintf("%s (rule %s)", r.Text, r.Rule))
}

// InAddress says that a wrong value stands in the address of the request.
func InAddress(err error) error {
	if field := new(invalid.Error); errors.As(err, &field) {
		return FailIn(BadParameter, field.Field, field.Problem)
	}
	return err
}

// Tolerate turns the end of a list's deadline into a fact about the answer: what
// was found is shown.
func Tolerate(err error) (slow bool, _ error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// InTime does so with what was read until then.
func InTime[T any](found T, err error) (_ T, slow bool, _ error) {
	slow, err = Tolerate(err)
	return found, slow, err
}

// Encode writes a failure, and who was first if somebody was.
func (f *Failure) Encode() []byte {
	type fault struct {
		Code    string `json:"code"`
		Message string `json:"message"`
		Field   string `json:"field,omitempty"`
	}
	answer := struct {
		Error      fault  `json:"error"`
		ReplayedBy string `json:"replayed_by,omitempty"`
		ReplayedAt string `json:"replayed_at,omitempty"`
	}{Error: fault{f.Kind.Code, f.Text, f.Field}}
	if f.First != nil {
		answer.ReplayedBy, answer.ReplayedAt = f.First.ReplayedBy, wire.FormatTime(f.First.ReplayedAt)
	}
	return Encode(answer)
}
