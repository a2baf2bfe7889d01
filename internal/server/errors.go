package server

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
	"redrive/web/templates"
)

// kind is the kind of an error, as an answer's code names it.
type kind string

const (
	malformed     kind = "malformed"
	badParameter  kind = "invalid_parameter" // in the address
	crossOrigin   kind = "cross_origin"
	unknownCaller kind = "unauthorized"
	unknownLogin  kind = "wrong_login"
	forbidden     kind = "forbidden"
	tooMany       kind = "too_many"
	notFound      kind = "not_found"
	wrongMethod   kind = "method_not_allowed"
	conflict      kind = "conflict"
	tooLarge      kind = "too_large"
	mediaType     kind = "unsupported_media_type"
	wrongHost     kind = "wrong_host"
	invalidValue  kind = "invalid_value" // in the body
	refused       kind = "refused_by_rule"
	notForwarded  kind = "dead_letter_refused"
	unexpected    kind = "internal"
	busy          kind = "busy"
	overloaded    kind = "overloaded"
	slow          kind = "too_slow"
	readOnly      kind = "read_only"
	broken        kind = "storage_failed"
	corrupt       kind = "storage_damaged"
	storageFull   kind = "storage_full"
)

// answer is the status of a kind, and the headline of its page.
func (k kind) answer() (status int, title string) {
	switch k {
	case malformed:
		return http.StatusBadRequest, "This request cannot be read"
	case badParameter:
		return http.StatusBadRequest, "This address is not right"
	case crossOrigin:
		return http.StatusForbidden, "Refused: the request came from another site"
	case unknownCaller, unknownLogin:
		return http.StatusUnauthorized, "Log in first"
	case forbidden:
		return http.StatusForbidden, "Your role does not allow this"
	case tooMany:
		return http.StatusTooManyRequests, "Too many tries"
	case notFound:
		return http.StatusNotFound, "Nothing is here"
	case wrongMethod:
		return http.StatusMethodNotAllowed, "This cannot be done here"
	case conflict:
		return http.StatusConflict, "This cannot be done as things stand"
	case notForwarded:
		return http.StatusConflict, "The dead letter was refused again"
	case tooLarge:
		return http.StatusRequestEntityTooLarge, "This is too large"
	case mediaType:
		return http.StatusUnsupportedMediaType, "This kind of content is not accepted"
	case wrongHost:
		return http.StatusMisdirectedRequest, "Not known under this name"
	case invalidValue:
		return http.StatusUnprocessableEntity, "A value is not right"
	case refused:
		return http.StatusUnprocessableEntity, "Refused by a rule"
	case busy:
		return http.StatusServiceUnavailable, "The database is busy"
	case overloaded:
		return http.StatusServiceUnavailable, "Too much at once"
	case slow:
		return http.StatusServiceUnavailable, "This took too long"
	case readOnly:
		return http.StatusServiceUnavailable, "The database can only be read"
	case corrupt:
		return http.StatusServiceUnavailable, "The database is damaged"
	case broken:
		return http.StatusServiceUnavailable, "The database has failed"
	case storageFull:
		return http.StatusInsufficientStorage, "The disk is full"
	}
	return http.StatusInternalServerError, "Something went wrong"
}

// failure is an error with all that its answer says.
type failure struct {
	kind  kind
	field string
	text  string
	first *job.Conflict // what happened instead
}

func (f *failure) Error() string {
	if f.field != "" {
		return f.field + ": " + f.text
	}
	return f.text
}

// describe is the table from errors to answers. What it does not know is our
// own fault: the answer then says nothing about it, the log does.
func describe(err error) failure {
	var (
		own    *failure
		first  *job.Conflict
		field  *invalid.Error
		ruled  *rules.Refused
		large  *http.MaxBytesError
		routed *echo.HTTPError
		no     *access.Refusal
	)
	advice := func(otherwise string) string {
		return cmp.Or(view.Advice(err), otherwise)
	}
	switch {
	case errors.As(err, &own):
		return *own
	case errors.As(err, &first):
		return failure{conflict, "", first.Problem, first}
	case errors.As(err, &field):
		return failure{invalidValue, field.Field, field.Problem, nil}
	case errors.As(err, &ruled):
		return *refusal("", ruled)
	case errors.As(err, &large):
		return failure{tooLarge, "", fmt.Sprintf("the body is larger than %d bytes", large.Limit), nil}
	case errors.As(err, &routed) && routed.Code == http.StatusNotFound:
		return failure{notFound, "", "there is nothing at this address", nil}
	case errors.As(err, &routed) && routed.Code == http.StatusMethodNotAllowed:
		return failure{wrongMethod, "", "this address does not accept this method", nil}
	case errors.As(err, &no):
		return failure{conflict, "", no.Problem, nil}
	case errors.Is(err, access.ErrUnknown):
		return failure{notFound, "", "there is no such user or token; it may have been removed", nil}
	case errors.Is(err, job.ErrNotFound):
		return failure{notFound, "", "there is no such job, queue, error group or operation; it may have been removed", nil}
	case errors.Is(err, job.ErrBusy):
		return failure{busy, "", "another process keeps the database busy; nothing was changed, try again", nil}
	case errors.Is(err, job.ErrStorageFull):
		return failure{storageFull, "", advice("the disk is full; make room and try again") + "; nothing was changed", nil}
	case errors.Is(err, job.ErrReadOnly):
		return failure{readOnly, "", advice("the database file can only be read") + "; nothing was changed", nil}
	case errors.Is(err, job.ErrCorrupt):
		return failure{corrupt, "", advice("the database file is damaged; restore a backup"), nil}
	case errors.Is(err, job.ErrBroken):
		return failure{broken, "", advice("the database failed and the program must be started again") + "; look there whether this was done", nil}
	case errors.Is(err, context.DeadlineExceeded):
		return failure{slow, "", "no answer in time", nil}
	}
	return failure{unexpected, "", "it was our fault, and the log says more", nil}
}

// refusal is the answer about a job that a rule refused; path is where it
// stands in the body.
func refusal(path string, r *rules.Refused) *failure {
	return &failure{refused, path, fmt.Sprintf("%s (rule %s)", r.Text, r.Rule), nil}
}

// inAddress says that a wrong value stands in the address of the request.
func inAddress(err error) error {
	var field *invalid.Error
	if errors.As(err, &field) {
		return &failure{badParameter, field.Field, field.Problem, nil}
	}
	return err
}

// refuse answers an error. It is echo's HTTPErrorHandler.
func (s *Server) refuse(err error, c echo.Context) {
	if errors.Is(err, context.Canceled) { // the client has left: nobody reads an answer, and nothing is wrong
		s.Log.Debug("the client left", "request", requestID(c), "path", c.Path(), "error", err)
		return
	}
	f := describe(err)
	status, title := f.kind.answer()
	if status >= http.StatusInternalServerError && f.kind != overloaded {
		s.Log.Error("request failed", "request", requestID(c), "path", c.Path(), "status", status, "error", err)
	}
	if c.Response().Committed {
		return // half an answer is out; the connection ends
	}
	if f.kind == unknownCaller {
		if forBrowsers(c) {
			s.sendToLogin(c)
			return
		}
		c.Response().Header().Set("WWW-Authenticate", "Bearer")
	}
	if status == http.StatusServiceUnavailable {
		c.Response().Header().Set("Retry-After", "2")
	}
	switch {
	case f.kind == unexpected:
		f.text += " under request " + requestID(c)
	case errors.Is(err, context.DeadlineExceeded) && isRead(c.Request()):
		f.text += "; try again"
	case errors.Is(err, context.DeadlineExceeded):
		f.text += "; the change may still be made, so look before you try again"
	}
	if wantsJSON(c.Request()) {
		err = c.JSONBlob(status, encodeFailure(f))
	} else {
		err = s.problemPage(c, f, status, title)
	}
	if err != nil {
		s.Log.Warn("an error could not be shown", "request", requestID(c), "error", err)
	}
	if !c.Response().Committed {
		c.Response().WriteHeader(status)
	}
}

// isRead reports whether a request changes nothing.
func isRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

func (s *Server) problemPage(c echo.Context, f failure, status int, title string) error {
	frame := s.frame(c, title, "")
	if f.first != nil && f.first.Job.ID != "" {
		return s.page(c, status, templates.Conflict{Frame: frame, Action: lastSegment(c.Path()), Err: f.first}.Page())
	}
	view := templates.Problem{Frame: frame, Status: status, Title: title, Text: f.Error(), RequestID: requestID(c)}
	return s.page(c, status, view.Page())
}
