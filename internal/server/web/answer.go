package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/labstack/echo/v4"

	"redrive/internal/access"
	"redrive/internal/apitype"
	"redrive/internal/fault"
	"redrive/internal/invalid"
	"redrive/internal/job"
	"redrive/internal/queues"
	"redrive/internal/retention"
	"redrive/internal/rules"
	"redrive/internal/server/view"
)

// WantsJSON reports whether the answer is for a program.
func WantsJSON(r *http.Request) bool {
	return r.URL.Path == "/live" || strings.HasPrefix(r.URL.Path, "/api/") || strings.Contains(r.Header.Get("Accept"), "application/json")
}

// IsForm reports whether a route belongs to the pages, whose acts are forms, and
// not to the API.
func IsForm(c echo.Context) bool { return !strings.HasPrefix(c.Path(), "/api/") }

// IsRead reports whether a request changes nothing.
func IsRead(r *http.Request) bool { return r.Method == http.MethodGet || r.Method == http.MethodHead }

// RequestID names a request, in its answer and in the log.
func RequestID(c echo.Context) string { return c.Response().Header().Get(echo.HeaderXRequestID) }

// LastSegment is the last part of a route.
func LastSegment(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// JSON answers with one object: the members of all parts, of which a nil one has
// none.
func JSON(c echo.Context, status int, parts ...any) error {
	return c.JSONBlob(status, append(apitype.Encode(parts...), '\n'))
}

// Done answers a form: in place when a script asks, otherwise by redirecting the
// browser to the page with the form.
func Done(c echo.Context, elsewhere string, says ...any) error {
	if WantsJSON(c.Request()) {
		return JSON(c, http.StatusOK, says...)
	}

	if page, ok := LocalPath(c.FormValue("back")); ok {
		elsewhere = page
	}

	return c.Redirect(http.StatusSeeOther, elsewhere)
}

// Download sends the exact bytes of something as a file. They are never shown as
// a page, whatever is in them.
func Download(c echo.Context, name, kind string, data []byte) error {
	suffix := ".json"
	if !json.Valid(data) {
		kind, suffix = "application/octet-stream", ".bin"
	}

	c.Response().Header().Set("Content-Disposition", `attachment; filename="`+name+suffix+`"`)

	return c.Blob(http.StatusOK, kind, data)
}

// LocalPath returns the way back that a form names, if it stays on this host in
// the eyes of every browser: it begins with one slash, and has nothing that a
// browser takes for another slash or skips.
func LocalPath(back string) (string, bool) {
	if !strings.HasPrefix(back, "/") || strings.HasPrefix(back, "//") || len(back) > 2048 {
		return "", false
	}

	for i := range len(back) {
		if c := back[i]; c <= ' ' || c == '\\' || c >= 0x7f {
			return "", false
		}
	}

	u, err := url.Parse(back)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil {
		return "", false
	}

	return back, true
}

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
	Unsafe        = Kind{"storage_unsafe", http.StatusServiceUnavailable, "The database files are not safe to use"}
	Broken        = Kind{"storage_failed", http.StatusServiceUnavailable, "The database has failed"}
	Corrupt       = Kind{"storage_damaged", http.StatusServiceUnavailable, "The database is damaged"}
	StorageFull   = Kind{"storage_full", http.StatusInsufficientStorage, "The disk is full"}
)

// Failure is an error with all that its answer says.
type Failure struct {
	Kind    Kind
	Field   string
	Text    string
	First   *job.Conflict // what happened instead
	FirstID string        // what an idempotency key was used for first: the id of a job, or the number of an operation
}

// Fail is a failure of a kind.
func Fail(kind Kind, text string) *Failure { return &Failure{Kind: kind, Text: text} }

// FailIn is a failure that is about a field.
func FailIn(kind Kind, field, text string) *Failure {
	return &Failure{Kind: kind, Field: field, Text: text}
}

// Error names the field if there is one.
func (f *Failure) Error() string {
	if f.Field != "" {
		return f.Field + ": " + f.Text
	}
	return f.Text
}

// Describe is the table from errors to answers. An error that is not in it is a
// mistake of ours: the answer says nothing about it, the log does.
func Describe(err error) *Failure {
	var (
		own    *Failure
		first  *job.Conflict
		field  *invalid.Error
		ruled  *rules.Refused
		large  *http.MaxBytesError
		routed *echo.HTTPError
		no     *access.Refusal
		full   *queues.Full
		gone   *retention.Removed
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
	case errors.As(err, &full):
		return FailIn(QueuesFull, "queue", full.Error())
	case errors.As(err, &large):
		return Fail(TooLarge, fmt.Sprintf("the body is larger than %d bytes", large.Limit))
	case errors.As(err, &routed) && routed.Code == http.StatusNotFound:
		return Fail(NotFound, "nothing exists at this address")
	case errors.As(err, &routed) && routed.Code == http.StatusMethodNotAllowed:
		return Fail(WrongMethod, "this address does not accept this method")
	case errors.As(err, &no):
		return Fail(Conflict, no.Problem)
	case errors.Is(err, access.ErrUnknown):
		return Fail(NotFound, "there is no such user or token; it may have been removed")
	case errors.As(err, &gone):
		return Fail(removed, gone.Error())
	case errors.Is(err, job.ErrNotFound):
		return Fail(NotFound, "there is no such job, queue, error group or operation; it may have been removed")
	case errors.Is(err, fault.ErrOverloaded):
		return Fail(Busy, "the disk cannot keep up with the writes; nothing was changed, try again")
	case errors.Is(err, fault.ErrStarved):
		return Fail(Busy, advice("the database lacks memory or file descriptors; try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrBusy):
		return Fail(Busy, "another process is keeping the database busy; nothing was changed, try again")
	case errors.Is(err, fault.ErrStorageFull):
		return Fail(StorageFull, advice("the disk is full; make room and try again")+"; nothing was changed")
	case errors.Is(err, fault.ErrReadOnly):
		return Fail(ReadOnly, advice("the database file is read-only")+"; nothing was changed")
	case errors.Is(err, fault.ErrUnsafe):
		return Fail(Unsafe, advice("the database files are not safe to use")+"; nothing was changed")
	case errors.Is(err, fault.ErrCorrupt):
		return Fail(Corrupt, advice("the database file is damaged; restore a backup"))
	case errors.Is(err, fault.ErrBroken):
		return Fail(Broken, advice("the database failed; restart the dashboard")+"; then check whether this change was made")
	case errors.Is(err, context.DeadlineExceeded):
		return Fail(tooSlow, "no answer in time")
	}

	return Fail(Unexpected, "internal error; the log has details")
}

// RefusedBy is the answer about a job that a rule refused; path is where the job
// is in the body.
func RefusedBy(path string, r *rules.Refused) *Failure {
	return FailIn(Refused, path, fmt.Sprintf("%s (rule %s)", r.Text, r.Rule))
}

// InAddress says that a wrong value is in the address of the request.
func InAddress(err error) error {
	if field := new(invalid.Error); errors.As(err, &field) {
		return FailIn(BadParameter, field.Field, field.Problem)
	}
	return err
}

// Tolerate turns the end of a deadline into a fact about the answer: what was
// found by then is shown.
func Tolerate(err error) (slow bool, _ error) {
	if errors.Is(err, context.DeadlineExceeded) {
		return true, nil
	}
	return false, err
}

// InTime is Tolerate for a result.
func InTime[T any](found T, err error) (_ T, slow bool, _ error) {
	slow, err = Tolerate(err)
	return found, slow, err
}

// Encode writes a failure, and the caller who acted first if there is one.
func (f *Failure) Encode() []byte {
	problem := apitype.Problem{Error: apitype.ProblemError{
		Code:    f.Kind.Code,
		Message: f.Text,
		Field:   f.Field,
		First:   f.FirstID,
	}}
	if f.First != nil {
		problem.ReplayedBy, problem.ReplayedAt = f.First.ReplayedBy, apitype.At(f.First.ReplayedAt)
	}

	return apitype.Encode(problem)
}
